//! Messages as their sender makes them.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::Misuse;
pub use crate::header::Headers;
pub use crate::header::Properties;
pub use crate::header::PropertyValue;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::WorkflowId;
use crate::limits;
use crate::seldom::Seldom;

/// Where a message belongs inside its workflow; it must fit the queue's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// After everything accepted before it.
    #[default]
    Arrival,
    /// At a position the sender counts.
    Position(Position),
    /// Next after the message with this ID; `None` for the first of a workflow.
    After(Option<MessageId>),
}

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

impl Message {
    /// A message with this body and nothing else.
    pub fn new(body: impl Into<Bytes>) -> Message {
        Message { body: body.into(), ..Message::default() }
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
        if self.time_to_live.is_some_and(|ttl| ttl.is_zero() || ttl > limits::DURATION_MAX) {
            return Err(Misuse::new("time to live", "must be more than zero and at most 100 years"));
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
            headers: self.headers.into(),
            body: self.body,
        })
    }
}

/// A message that passed the boundary: every field is well formed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewMessage {
    pub(crate) workflow_id: Option<WorkflowId>,
    pub(crate) place: Place,
    pub(crate) message_id: Option<MessageId>,
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) schedule_at: Option<Timestamp>,
    pub(crate) headers: Seldom<Headers>,
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
    fn a_message_that_is_wrong_is_told_which_field() {
        let field = |message: Message| message.check().unwrap_err().field().to_owned();
        assert_eq!(field(Message::new("").position(0)), "position");
        assert_eq!(field(Message::new("").position(u64::MAX)), "position");
        assert_eq!(field(Message::new("").position(1).after("a")), "position");
        assert_eq!(field(Message::new("").workflow("")), "workflow ID");
        assert_eq!(field(Message::new("").message_id("")), "message ID");
        assert_eq!(field(Message::new("").time_to_live(Duration::ZERO)), "time to live");
        assert_eq!(field(Message::new("").subject("x".repeat(2_000))), "subject");
        assert_eq!(field(Message::new("").property("p", "x".repeat(70_000))), "properties");
    }
}
