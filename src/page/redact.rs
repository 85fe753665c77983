//! What a definition hides of its messages: values inside bodies, properties and headers. The API hides nothing; the page
//! is looked at over shoulders.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde_json::value::RawValue;

use crate::api::views::QueueEnvelope;
use crate::api::views::RedactionView;
use crate::page::api::ApiRefusal;
use crate::page::visitor::Visitor as Looker;
use crate::remote::RequestPath;

/// What stands for a value that is hidden.
pub(crate) const HIDDEN: &str = "\u{2022}\u{2022}\u{2022}";

/// What is hidden of each message of a queue.
#[derive(Debug, Default)]
pub(crate) struct Redaction {
    /// The names on the way to each value that is hidden inside a body.
    ways: Vec<Vec<String>>,
    properties: BTreeSet<String>,
    headers: BTreeSet<String>,
}

/// What is left of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyPreview {
    /// All of it.
    All,
    /// This much: something is hidden.
    Some(Vec<u8>),
    /// Nothing: where the values are that are to be hidden is not known, as it is no JSON.
    Nothing,
}

impl Redaction {
    /// What is hidden in a queue. Nothing, when there is no such queue any more.
    pub(crate) async fn of(visitor: &Looker, queue: &str) -> Result<Redaction, ApiRefusal> {
        match visitor.api.get::<QueueEnvelope>(&RequestPath::queue(queue)).await {
            Ok(queue) => Ok(Redaction::new(&queue.redact)),
            Err(problem) if problem.status == 404 => Ok(Redaction::default()),
            Err(problem) => Err(problem),
        }
    }

    fn new(views: &[RedactionView]) -> Redaction {
        let mut redaction = Redaction::default();
        for view in views {
            redaction.ways.extend(view.pointer.as_deref().map(way));
            redaction.properties.extend(view.property.clone());
            redaction.headers.extend(view.header.clone());
        }
        redaction
    }

    pub(crate) fn hides_property(&self, name: &str) -> bool {
        self.properties.contains(name)
    }

    pub(crate) fn hides_header(&self, name: &str) -> bool {
        self.headers.contains(name)
    }

    /// What is shown of a body.
    pub(crate) fn body(&self, body: &[u8]) -> BodyPreview {
        if self.ways.is_empty() || body.is_empty() {
            return BodyPreview::All;
        }
        let Ok(json) = serde_json::from_slice::<&RawValue>(body) else { return BodyPreview::Nothing };
        let ways: Vec<&[String]> = self.ways.iter().map(Vec::as_slice).collect();
        let mut out = String::with_capacity(body.len());
        match hide(json.get(), &ways, &mut out) {
            true => BodyPreview::Some(out.into_bytes()),
            false => BodyPreview::All,
        }
    }
}

/// The names on the way that a JSON pointer goes.
fn way(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}

/// Writes JSON with the values hidden to which a way leads, and everything else as it was sent; true when one was hidden.
/// Its depth is that of the ways, not that of the JSON.
fn hide(json: &str, ways: &[&[String]], out: &mut String) -> bool {
    if ways.iter().any(|way| way.is_empty()) {
        out.push('"');
        out.push_str(HIDDEN);
        out.push('"');
        return true;
    }
    let on = |name: &str| -> Vec<&[String]> {
        let leads = |way: &&&[String]| way[0] == name || way[0] == "*";
        ways.iter().filter(leads).map(|way| &way[1..]).collect()
    };
    let before = out.len();
    let mut is_hidden = false;
    let mut child = |name: &str, value: &str, out: &mut String| match on(name) {
        ways if ways.is_empty() => out.push_str(value),
        ways => is_hidden |= hide(value, &ways, out),
    };
    let begin = json.trim_start().bytes().next();
    let is_done = match begin {
        Some(b'{') => serde_json::from_str::<Members<'_>>(json).map(|Members(members)| {
            for (at, (name, value)) in members.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push(':');
                child(name, value.get(), out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(json).map(|elements| {
            for (at, value) in elements.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                child(&at.to_string(), value.get(), out);
            }
            out.push_str(if elements.is_empty() { "[]" } else { "]" });
        }),
        _ => {
            out.push_str(json);
            Ok(())
        }
    };
    if is_done.is_err() {
        // It was valid as a whole, so this cannot be; what cannot be read is not shown.
        out.truncate(before);
        out.push_str("null");
        return true;
    }
    is_hidden
}

/// The members of an object in their order, each as it was sent.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(pointers: &[&str], body: &str) -> String {
        let view = |pointer: &&str| RedactionView {
            pointer: Some((*pointer).to_owned()),
            ..RedactionView::default()
        };
        let views: Vec<RedactionView> = pointers.iter().map(view).collect();
        match Redaction::new(&views).body(body.as_bytes()) {
            BodyPreview::All => "all".to_owned(),
            BodyPreview::Nothing => "nothing".to_owned(),
            BodyPreview::Some(left) => String::from_utf8(left).unwrap(),
        }
    }

    #[test]
    fn what_a_pointer_names_is_hidden_and_the_rest_stays_as_it_was_sent() {
        let body =
            r#"{"id":18446744073709551616,"card":{"number":"4111","cvc":[1, 2]},"a/b":1,"b":1.10,"b":2}"#;
        assert_eq!(
            left(&["/card/number", "/a~1b"], body),
            format!(
                r#"{{"id":18446744073709551616,"card":{{"number":"{HIDDEN}","cvc":[1, 2]}},"a/b":"{HIDDEN}","b":1.10,"b":2}}"#
            )
        );
        assert_eq!(left(&["/b"], r#"{"b":1,"b":2}"#), format!(r#"{{"b":"{HIDDEN}","b":"{HIDDEN}"}}"#));
        assert_eq!(left(&["/card"], r#"{"card":{"x":1}}"#), format!(r#"{{"card":"{HIDDEN}"}}"#));
    }

    #[test]
    fn a_star_is_every_member_and_every_element() {
        let body = r#"{"lines":[{"iban":"DE","n":1},{"n":2},[]],"x":{}}"#;
        let expected = format!(r#"{{"lines":[{{"iban":"{HIDDEN}","n":1}},{{"n":2}},[]],"x":{{}}}}"#);
        assert_eq!(left(&["/lines/*/iban"], body), expected);
        assert_eq!(left(&["/*"], r#"[1,"a"]"#), format!(r#"["{HIDDEN}","{HIDDEN}"]"#));
        assert_eq!(left(&["/1"], "[1,2]"), format!(r#"[1,"{HIDDEN}"]"#));
    }

    #[test]
    fn a_body_that_is_no_json_is_not_shown_where_something_is_to_be_hidden() {
        assert_eq!(left(&["/card"], "card=4111"), "nothing");
        assert_eq!(left(&[], "card=4111"), "all");
        assert_eq!(left(&["/card"], r#"{"other":1}"#), "all");
        assert_eq!(left(&["/card/number"], r#"{"card":"4111"}"#), "all", "there is no such member");
    }
}
