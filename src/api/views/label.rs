//! How a daemon is distinguished from others, and where what it names can be looked up.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;

/// Letters of a name that a badge has room for.
const NAME_CHARS_MAX: usize = 32;

/// The environment of a daemon: production, a test, somebody's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentView {
    /// Its name.
    pub name: String,
    /// The colour of its badge.
    pub colour: Colour,
}

/// The colour of a badge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    /// Red.
    Red,
    /// Amber.
    Amber,
    /// Green.
    Green,
    /// Blue.
    Blue,
    /// Grey, if none is given.
    #[default]
    Grey,
}

impl Colour {
    const ALL: [Colour; 5] = [Colour::Red, Colour::Amber, Colour::Green, Colour::Blue, Colour::Grey];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Colour::Red => "red",
            Colour::Amber => "amber",
            Colour::Green => "green",
            Colour::Blue => "blue",
            Colour::Grey => "grey",
        }
    }
}

/// Reads `NAME` or `NAME:COLOUR`.
impl FromStr for EnvironmentView {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<EnvironmentView, Misuse> {
        let (name, colour) = match text.rsplit_once(':') {
            None => (text, Colour::default()),
            Some((name, word)) => {
                let colour = Colour::ALL.into_iter().find(|colour| colour.as_str() == word);
                let wrong = || {
                    let words = "red, amber, green, blue and grey";
                    Misuse::new("environment", format!("has the colour {word:?}, which is none of {words}"))
                };
                (name, colour.ok_or_else(wrong)?)
            }
        };
        let name = name.trim();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            let problem = format!("has no name of 1 to {NAME_CHARS_MAX} letters");
            return Err(Misuse::new("environment", problem));
        }
        Ok(EnvironmentView { name: name.to_owned(), colour })
    }
}

/// The address of a trace, with `{trace_id}` where its ID belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceUrl(String);

/// What stands for the ID of a trace.
const TRACE_ID: &str = "{trace_id}";

impl TraceUrl {
    /// The address of the trace that a `traceparent` names; `None` when it names none.
    pub fn of(&self, traceparent: &str) -> Option<String> {
        Some(self.0.replace(TRACE_ID, trace_id(traceparent)?))
    }
}

/// The ID of the trace that a `traceparent` names, 32 hexadecimal digits.
pub fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && id.bytes().any(|byte| byte != b'0')).then_some(id)
}

impl FromStr for TraceUrl {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<TraceUrl, Misuse> {
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        if !is_web
            || !text.contains(TRACE_ID)
            || text.chars().any(|character| character.is_control() || character == ' ')
        {
            let problem = format!("is no address of the web with {TRACE_ID} in it");
            return Err(Misuse::new("trace_url", problem));
        }
        Ok(TraceUrl(text.to_owned()))
    }
}

impl fmt::Display for TraceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is hidden of each message of a queue where people look; one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedactionView {
    /// A JSON pointer into the body, in which `*` stands for every member or element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// A standard header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The name of a property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_a_name_with_a_colour() {
        let read = |text: &str| text.parse::<EnvironmentView>().map(|read| (read.name, read.colour));
        assert_eq!(read("production:red"), Ok(("production".to_owned(), Colour::Red)));
        assert_eq!(read(" my test "), Ok(("my test".to_owned(), Colour::Grey)));
        for wrong in ["", ":red", "x:pink", "x:", &"x".repeat(33), "a\nb"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_trace_is_linked_by_its_id_and_nothing_else() {
        let url: TraceUrl = "https://traces.example/t/{trace_id}?x=1".parse().unwrap();
        let id = "0af7651916cd43dd8448eb211c80319c";
        let parent = format!("00-{id}-b7ad6b7169203331-01");
        assert_eq!(url.of(&parent), Some(format!("https://traces.example/t/{id}?x=1")));
        for wrong in ["", "00", "00-zz-b7-01", &format!("00-{}-b7-01", "0".repeat(32)), "00-\"><x>-1-1"] {
            assert_eq!(url.of(wrong), None, "{wrong}");
        }
        for wrong in ["javascript:{trace_id}", "https://x/", "https://x/{trace_id} y"] {
            assert!(wrong.parse::<TraceUrl>().is_err(), "{wrong}");
        }
    }
}
