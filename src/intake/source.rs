//! Where in a message something is read.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Misuse;
use crate::message::Message;

/// Where in a message something is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSource {
    /// A value inside the body, which is JSON.
    Pointer(Pointer),
    /// A standard header.
    Header(HeaderName),
    /// One of the sender's own properties.
    Property(String),
}

impl fmt::Display for FieldSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldSource::Pointer(pointer) => pointer.fmt(f),
            FieldSource::Header(header) => write!(f, "the header {}", header.as_str()),
            FieldSource::Property(name) => write!(f, "the property {name}"),
        }
    }
}

/// A header of which something can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeaderName {
    /// What the message is about.
    Subject,
    /// The ID of the message or request it belongs to.
    CorrelationId,
    /// Where an answer is expected.
    ReplyTo,
    /// The sender's ID of the message.
    MessageId,
    /// The MIME type of the body.
    ContentType,
}

impl HeaderName {
    /// All of them.
    pub const ALL: [HeaderName; 5] = [
        HeaderName::Subject,
        HeaderName::CorrelationId,
        HeaderName::ReplyTo,
        HeaderName::MessageId,
        HeaderName::ContentType,
    ];

    /// Its name in a definition and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            HeaderName::Subject => "subject",
            HeaderName::CorrelationId => "correlation_id",
            HeaderName::ReplyTo => "reply_to",
            HeaderName::MessageId => "message_id",
            HeaderName::ContentType => "content_type",
        }
    }

    /// Its text in a message.
    pub(crate) fn of(self, message: &Message) -> Option<&str> {
        let headers = &message.headers;
        let text = match self {
            HeaderName::Subject => &headers.subject,
            HeaderName::CorrelationId => &headers.correlation_id,
            HeaderName::ReplyTo => &headers.reply_to,
            HeaderName::MessageId => &message.message_id,
            HeaderName::ContentType => &headers.content_type,
        };
        text.as_deref()
    }
}

/// A JSON pointer (RFC 6901) to a value inside the body, not to all of it: `/order/id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer.
    ///
    /// # Errors
    /// [`Misuse`] when it is empty, does not begin with `/`, or has a `~` that is not `~0` or `~1`.
    pub fn new(text: &str) -> Result<Pointer, Misuse> {
        let wrong = |problem: &str| Misuse::new("pointer", format!("{text:?} {problem}"));
        if text.is_empty() {
            return Err(wrong("points to all of the body, not to a value in it"));
        }
        let Some(tokens) = text.strip_prefix('/') else {
            return Err(wrong("is no JSON pointer: it does not begin with `/`"));
        };
        let tokens: Option<Vec<String>> = tokens.split('/').map(unescaped).collect();
        match tokens {
            Some(tokens) => Ok(Pointer { text: text.to_owned(), tokens }),
            None => Err(wrong("is no JSON pointer: write `~0` for `~` and `~1` for `/`")),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn unescaped(token: &str) -> Option<String> {
    let escapes = token.split('~').skip(1);
    for escape in escapes {
        if !escape.starts_with(['0', '1']) {
            return None;
        }
    }
    // In this order: `~01` is `~1`, not `/`.
    Some(token.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_begins_with_a_slash_and_escapes_two_letters() {
        let tokens = |text: &str| Pointer::new(text).unwrap().tokens().to_vec();
        assert_eq!(tokens("/order/id"), ["order", "id"]);
        assert_eq!(tokens("/"), [""]);
        assert_eq!(tokens("/a~1b/c~0d/~01"), ["a/b", "c~d", "~1"]);
        for wrong in ["", "order_id", "order/id", "/a~", "/a~2"] {
            assert!(Pointer::new(wrong).is_err(), "{wrong}");
        }
    }
}
