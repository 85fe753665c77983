//! Messages as their sender makes them.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::clock::whole_millis;
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
    pub(crate) delay: Option<Duration>,
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

    /// Keeps the message back until `at` by the wall clock. With a position it holds its place from the start.
    #[must_use]
    pub fn schedule_at(mut self, at: Timestamp) -> Message {
        self.schedule_at = Some(at);
        self
    }

    /// Keeps the message back for so long from when it is accepted, whatever the wall clock is set to meanwhile; at most
    /// 100 years. In all else it is a scheduled message.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Message {
        self.delay = Some(delay);
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
        let kept_back = match (self.schedule_at, self.delay) {
            (Some(_), Some(_)) => return Err(Misuse::new("delay", "is given together with an instant")),
            (_, Some(delay)) if delay > limits::DURATION_MAX => {
                return Err(Misuse::new("delay", "must be at most 100 years"));
            }
            (at, delay) => at.map(KeptBack::Until).or(delay.map(KeptBack::For)),
        };
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
            kept_back,
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
    pub(crate) kept_back: Option<KeptBack>,
    pub(crate) headers: Seldom<Headers>,
    pub(crate) body: Bytes,
}

/// How long a message is kept back before it is offered for the first time.
///
/// Its bytes are those of a [`Timestamp`], whose highest bit says that it is a span: that is what nodes of a cluster tell
/// each other, and those of before know instants only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub(crate) enum KeptBack {
    /// Until an instant of the wall clock.
    Until(Timestamp),
    /// For a while from when it is accepted.
    For(Duration),
}

/// Set in the bytes of a span.
const OF_SPAN: u64 = 1 << 63;

impl From<u64> for KeptBack {
    fn from(bits: u64) -> KeptBack {
        match bits & OF_SPAN {
            0 => KeptBack::Until(Timestamp::from_millis(bits)),
            _ => KeptBack::For(Duration::from_millis(bits & !OF_SPAN)),
        }
    }
}

impl From<KeptBack> for u64 {
    fn from(kept: KeptBack) -> u64 {
        match kept {
            KeptBack::Until(at) => at.as_millis().min(OF_SPAN - 1),
            KeptBack::For(span) => whole_millis(span).min(OF_SPAN - 1) | OF_SPAN,
        }
    }
}

impl NewMessage {
    /// Bytes the message counts against limits.
    pub(crate) fn len(&self) -> usize {
        self.body.len() + self.headers.if_set().map_or(0, Headers::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_has_the_bytes_that_it_always_had_and_a_span_others() {
        let written = |kept: KeptBack| postcard::to_allocvec(&kept).unwrap();
        let at = Timestamp::from_millis(1_800_000_000_000);
        assert_eq!(written(KeptBack::Until(at)), postcard::to_allocvec(&at).unwrap());
        for kept in [KeptBack::Until(at), KeptBack::For(Duration::ZERO), KeptBack::For(limits::DURATION_MAX)]
        {
            assert_eq!(postcard::from_bytes::<KeptBack>(&written(kept)).unwrap(), kept);
        }
    }

    #[test]
    fn a_message_that_is_wrong_is_told_which_field() {
        let field = |message: Message| message.check().unwrap_err().field().to_owned();
        assert_eq!(field(Message::new("").position(0)), "position");
        assert_eq!(field(Message::new("").position(u64::MAX)), "position");
        assert_eq!(field(Message::new("").position(1).after("a")), "position");
        assert_eq!(field(Message::new("").workflow("")), "workflow ID");
        assert_eq!(field(Message::new("").message_id("")), "message ID");
        assert_eq!(field(Message::new("").time_to_live(Duration::ZERO)), "time to live");
        assert_eq!(field(Message::new("").delay(Duration::MAX)), "delay");
        assert_eq!(
            field(Message::new("").delay(Duration::ZERO).schedule_at(Timestamp::from_millis(1))),
            "delay"
        );
        assert_eq!(field(Message::new("").subject("x".repeat(2_000))), "subject");
        assert_eq!(field(Message::new("").property("p", "x".repeat(70_000))), "properties");
    }
}
