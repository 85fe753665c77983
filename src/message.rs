//! Messages and the words for them: names, ids, places, properties.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::Misuse;
use crate::limits;

/// Makes a text newtype: cheap to clone, compared byte for byte, checked when made.
macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident, $field:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes one from text.
            ///
            /// # Errors
            /// [`Misuse`] when the text is empty, too long or has a forbidden character.
            pub fn new(text: impl AsRef<str>) -> Result<$name, Misuse> {
                let text = text.as_ref();
                let check: fn(&str) -> Result<(), String> = $check;
                check(text).map_err(|problem| Misuse::new($field, problem))?;
                Ok($name(Arc::from(text)))
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Misuse;

            fn try_from(text: String) -> Result<$name, Misuse> {
                $name::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Misuse;

            fn try_from(text: &str) -> Result<$name, Misuse> {
                $name::new(text)
            }
        }
    };
}

text_newtype!(
    /// Name of a queue: 1 to 128 characters `A-Z a-z 0-9 . _ -`, the first a letter or digit.
    QueueName,
    "queue name",
    check_queue_name
);

text_newtype!(
    /// The ID of a workflow inside a queue: any UTF-8 text of 1 to 128 bytes, compared byte for byte.
    WorkflowId,
    "workflow ID",
    |text| check_length(text, limits::WORKFLOW_ID_BYTES_MAX)
);

text_newtype!(
    /// The sender's ID of a message: any UTF-8 text of 1 to 128 bytes.
    MessageId,
    "message ID",
    |text| check_length(text, limits::MESSAGE_ID_BYTES_MAX)
);

fn check_length(text: &str, bytes_max: usize) -> Result<(), String> {
    match text.len() {
        0 => Err("is empty".to_owned()),
        length if length > bytes_max => Err(format!("has {length} bytes, at most {bytes_max} are allowed")),
        _ => Ok(()),
    }
}

fn check_queue_name(text: &str) -> Result<(), String> {
    check_length(text, limits::QUEUE_NAME_BYTES_MAX)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        return Err(format!(
            "has the character {c:?}; letters, digits and . _ - are allowed"
        ));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("does not begin with a letter or digit".to_owned());
    }
    Ok(())
}

/// The number the engine gives a message at acceptance: unique in its file, increasing, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SequenceNumber(u64);

impl SequenceNumber {
    /// Makes a sequence number from its value, as another process or a person gives it.
    pub const fn new(value: u64) -> SequenceNumber {
        SequenceNumber(value)
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sender's place of a message inside its workflow: 1, 2, 3 and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(NonZeroU64);

impl Position {
    /// The usual first position.
    pub const FIRST: Position = Position(NonZeroU64::MIN);

    /// Makes a position.
    ///
    /// # Errors
    /// [`Misuse`] for zero and for 2^48 and above, which is kept free so that no position can wrap.
    pub fn new(value: u64) -> Result<Position, Misuse> {
        let problem = || {
            Misuse::new(
                "position",
                format!("is {value}; it must be 1 to {}", limits::NUMBER_END - 1),
            )
        };
        let value = NonZeroU64::new(value).ok_or_else(problem)?;
        if value.get() < limits::NUMBER_END {
            Ok(Position(value))
        } else {
            Err(problem())
        }
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a message belongs inside its workflow; it must fit the queue's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    /// After everything accepted before it.
    #[default]
    Arrival,
    /// At a position the sender counts.
    Position(Position),
    /// Next after the message with this ID; `None` for the first of a workflow.
    After(Option<MessageId>),
}

/// The value of one property of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PropertyValue {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Bytes.
    Binary(Bytes),
}

impl PropertyValue {
    fn len(&self) -> usize {
        match self {
            PropertyValue::Text(text) => text.len(),
            PropertyValue::Binary(bytes) => bytes.len(),
            PropertyValue::Integer(_) | PropertyValue::Float(_) => 8,
            PropertyValue::Boolean(_) => 1,
        }
    }
}

impl From<&str> for PropertyValue {
    fn from(text: &str) -> PropertyValue {
        PropertyValue::Text(text.to_owned())
    }
}

impl From<String> for PropertyValue {
    fn from(text: String) -> PropertyValue {
        PropertyValue::Text(text)
    }
}

impl From<i64> for PropertyValue {
    fn from(number: i64) -> PropertyValue {
        PropertyValue::Integer(number)
    }
}

impl From<f64> for PropertyValue {
    fn from(number: f64) -> PropertyValue {
        PropertyValue::Float(number)
    }
}

impl From<bool> for PropertyValue {
    fn from(truth: bool) -> PropertyValue {
        PropertyValue::Boolean(truth)
    }
}

/// Properties of a message: the sender's own headers, by name.
pub type Properties = BTreeMap<String, PropertyValue>;

/// A message to send: a body, and what the sender says of it.
///
/// ```
/// use seriatim::Message;
///
/// let message = Message::new("paid").workflow("order-17").position(3).property("attempt", 1_i64);
/// assert_eq!(message.body().as_ref(), b"paid");
/// ```
///
/// Nothing is checked until it is sent; [`Misuse`] then names the field.
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub(crate) body: Bytes,
    pub(crate) workflow_id: Option<String>,
    pub(crate) position: Option<u64>,
    pub(crate) after: Option<Option<String>>,
    pub(crate) message_id: Option<String>,
    pub(crate) headers: Headers,
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) schedule_at: Option<Timestamp>,
}

/// The sender's standard headers and own properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Headers {
    /// What the message is about, in a word.
    pub subject: Option<String>,
    /// MIME type of the body.
    pub content_type: Option<String>,
    /// The ID of the message or request this one belongs to.
    pub correlation_id: Option<String>,
    /// Where an answer is expected.
    pub reply_to: Option<String>,
    /// The sender's own properties.
    pub properties: Properties,
}

impl Message {
    /// A message with this body and nothing else.
    pub fn new(body: impl Into<Bytes>) -> Message {
        Message {
            body: body.into(),
            ..Message::default()
        }
    }

    /// A message whose body is `value` as JSON.
    ///
    /// # Errors
    /// [`Misuse`] when the value cannot be written as JSON (a map with keys that are not text, say).
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Message, Misuse> {
        let body = serde_json::to_vec(value).map_err(|error| Misuse::new("body", error.to_string()))?;
        Ok(Message::new(body).content_type("application/json"))
    }

    /// Says which workflow the message belongs to.
    #[must_use]
    pub fn workflow(mut self, id: impl Into<String>) -> Message {
        self.workflow_id = Some(id.into());
        self
    }

    /// Says its position inside the workflow.
    #[must_use]
    pub fn position(mut self, position: u64) -> Message {
        self.position = Some(position);
        self
    }

    /// Says which message it follows, by message ID.
    #[must_use]
    pub fn after(mut self, predecessor: impl Into<String>) -> Message {
        self.after = Some(Some(predecessor.into()));
        self
    }

    /// Says that it is the first of an after-ordered workflow.
    #[must_use]
    pub fn first(mut self) -> Message {
        self.after = Some(None);
        self
    }

    /// Gives it an ID, by which duplicates are detected and successors name it.
    #[must_use]
    pub fn message_id(mut self, id: impl Into<String>) -> Message {
        self.message_id = Some(id.into());
        self
    }

    /// Sets the subject.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Message {
        self.headers.subject = Some(subject.into());
        self
    }

    /// Sets the MIME type of the body.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Message {
        self.headers.content_type = Some(content_type.into());
        self
    }

    /// Sets the correlation ID.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Message {
        self.headers.correlation_id = Some(id.into());
        self
    }

    /// Sets where an answer is expected.
    #[must_use]
    pub fn reply_to(mut self, address: impl Into<String>) -> Message {
        self.headers.reply_to = Some(address.into());
        self
    }

    /// Adds a property.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<PropertyValue>) -> Message {
        self.headers.properties.insert(name.into(), value.into());
        self
    }

    /// Lets the message expire this long after it is accepted, or after its scheduled instant.
    #[must_use]
    pub fn time_to_live(mut self, time_to_live: Duration) -> Message {
        self.time_to_live = Some(time_to_live);
        self
    }

    /// Keeps the message back until `at`. With a position it holds its place from the start.
    #[must_use]
    pub fn schedule_at(mut self, at: Timestamp) -> Message {
        self.schedule_at = Some(at);
        self
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Checks every field that needs no queue to be checked, and names the first that is wrong.
    pub(crate) fn check(self) -> Result<NewMessage, Misuse> {
        let place = match (self.position, self.after) {
            (Some(_), Some(_)) => {
                return Err(Misuse::new("position", "is given together with a predecessor"));
            }
            (Some(position), None) => Place::Position(Position::new(position)?),
            (None, Some(None)) => Place::After(None),
            (None, Some(Some(id))) => Place::After(Some(MessageId::new(id)?)),
            (None, None) => Place::Arrival,
        };
        if self
            .time_to_live
            .is_some_and(|ttl| ttl.is_zero() || ttl > limits::DURATION_MAX)
        {
            return Err(Misuse::new(
                "time to live",
                "must be more than zero and at most 100 years",
            ));
        }
        if self.body.len() > limits::BODY_BYTES_CEILING {
            return Err(Misuse::new(
                "body",
                format!("has {} bytes; no queue takes that many", self.body.len()),
            ));
        }
        self.headers.check()?;
        Ok(NewMessage {
            workflow_id: self.workflow_id.map(WorkflowId::new).transpose()?,
            place,
            message_id: self.message_id.map(MessageId::new).transpose()?,
            time_to_live: self.time_to_live,
            schedule_at: self.schedule_at,
            headers: self.headers,
            body: self.body,
        })
    }
}

impl Headers {
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        let texts = [
            ("subject", &self.subject),
            ("content type", &self.content_type),
            ("correlation ID", &self.correlation_id),
            ("reply-to", &self.reply_to),
        ];
        for (field, text) in texts {
            let length = text.as_ref().map_or(0, String::len);
            if length > limits::HEADER_BYTES_MAX {
                let problem = format!(
                    "has {length} bytes, at most {} are allowed",
                    limits::HEADER_BYTES_MAX
                );
                return Err(Misuse::new(field, problem));
            }
        }
        let length = properties_len(&self.properties);
        if length > limits::PROPERTIES_BYTES_MAX {
            let problem = format!(
                "have {length} bytes, at most {} are allowed",
                limits::PROPERTIES_BYTES_MAX
            );
            return Err(Misuse::new("properties", problem));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        let texts = [
            &self.subject,
            &self.content_type,
            &self.correlation_id,
            &self.reply_to,
        ];
        let texts: usize = texts
            .iter()
            .map(|text| text.as_ref().map_or(0, String::len))
            .sum();
        texts + properties_len(&self.properties)
    }
}

/// Bytes of all names and values together.
pub(crate) fn properties_len(properties: &Properties) -> usize {
    properties
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

/// A message that passed the boundary: every field is well formed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewMessage {
    pub(crate) workflow_id: Option<WorkflowId>,
    pub(crate) place: Place,
    pub(crate) message_id: Option<MessageId>,
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) schedule_at: Option<Timestamp>,
    pub(crate) headers: Headers,
    pub(crate) body: Bytes,
}

impl NewMessage {
    /// Bytes the message counts against limits.
    pub(crate) fn len(&self) -> usize {
        self.body.len() + self.headers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_name_is_a_plain_file_name() {
        for name in ["orders", "a", "0.9_x-y", &"q".repeat(128)] {
            assert!(QueueName::new(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "..",
            ".hidden",
            "a/b",
            "a b",
            "\u{e9}",
            "-x",
            &"q".repeat(129),
        ] {
            assert!(QueueName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_workflow_id_is_any_text_up_to_128_bytes() {
        assert!(WorkflowId::new("\0 ../\u{1F600}").is_ok());
        assert!(WorkflowId::new("").is_err());
        assert!(WorkflowId::new("\u{1F600}".repeat(33)).is_err());
    }

    #[test]
    fn a_message_that_is_wrong_is_told_which_field() {
        let field = |message: Message| message.check().unwrap_err().field().to_owned();
        assert_eq!(field(Message::new("").position(0)), "position");
        assert_eq!(field(Message::new("").position(u64::MAX)), "position");
        assert_eq!(field(Message::new("").position(1).after("a")), "position");
        assert_eq!(field(Message::new("").workflow("")), "workflow ID");
        assert_eq!(field(Message::new("").message_id("")), "message ID");
        assert_eq!(
            field(Message::new("").time_to_live(Duration::ZERO)),
            "time to live"
        );
        assert_eq!(field(Message::new("").subject("x".repeat(2_000))), "subject");
        assert_eq!(
            field(Message::new("").property("p", "x".repeat(70_000))),
            "properties"
        );
    }
}
