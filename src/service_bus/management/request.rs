//! A request as a client makes it.

use bytes::Bytes;

use crate::amqp::DecodeError;
use crate::amqp::Map;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::holds::LockUuid;
use crate::service_bus::refusal::AmqpRefusal;

/// A request.
pub(crate) struct ManagementRequest {
    pub(crate) operation: String,
    /// Which answer is to this request; with its type.
    pub(crate) id: Value,
    pub(crate) reply_to: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) body: Map,
    pub(crate) application: Map,
    /// Whether the body is what operations of the management read.
    is_map: bool,
}

#[cfg(test)]
impl ManagementRequest {
    /// A request with this body, and nothing beside it.
    pub(crate) fn of(body: Map) -> ManagementRequest {
        let (operation, id, application) = (String::new(), Value::Null, Map::new());
        ManagementRequest { operation, id, reply_to: None, session_id: None, body, application, is_map: true }
    }
}

impl ManagementRequest {
    pub(crate) fn read(payload: &Bytes) -> Result<ManagementRequest, DecodeError> {
        let sections = Sections::parse(payload)?;
        let properties = sections.properties()?;
        let application = sections.application_properties()?;
        let operation =
            lookup(&application, "operation").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (body, is_map) = match sections.body()? {
            MessageBody::Value(Value::Map(entries)) => (entries, true),
            MessageBody::Value(value) => (vec![(Value::string("value"), value)], false),
            _ => (Map::new(), false),
        };
        let session_id = lookup(&body, "session-id").and_then(Value::as_str).map(str::to_owned);
        let reply_to = properties.reply_to.as_deref().map(str::to_owned);
        let id = properties.message_id;
        Ok(ManagementRequest { operation, id, reply_to, session_id, body, application, is_map })
    }

    /// Whether it is one that the management can read: an operation, a map, and a session that is text.
    pub(crate) fn check(&self) -> Result<(), AmqpRefusal> {
        if self.operation.is_empty() {
            return Err(AmqpRefusal::argument("the application property operation is missing, or no text"));
        }
        if !self.is_map {
            return Err(AmqpRefusal::argument("the body of the request is no map"));
        }
        self.text("session-id").map(drop)
    }

    /// The operation, without the name of who has defined it.
    pub(crate) fn operation(&self) -> &str {
        self.operation.strip_prefix("com.microsoft:").unwrap_or(&self.operation)
    }

    /// Whether it can only be done by who holds the session it names.
    pub(crate) fn needs_session(&self) -> bool {
        matches!(
            self.operation(),
            "renew-session-lock"
                | "get-session-state"
                | "set-session-state"
                | "receive-by-sequence-number"
                | "batch-delete-messages"
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        lookup(&self.body, name).filter(|value| !value.is_null())
    }

    /// A text, if there is one.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, AmqpRefusal> {
        self.typed(name, "text", Value::as_str)
    }

    /// A map, if there is one.
    pub(crate) fn map(&self, name: &str) -> Result<Option<&[(Value, Value)]>, AmqpRefusal> {
        self.typed(name, "map", Value::as_map)
    }

    /// Milliseconds since 1970, if they are said.
    pub(crate) fn timestamp(&self, name: &str) -> Result<Option<i64>, AmqpRefusal> {
        self.typed(name, "timestamp", Value::as_timestamp)
    }

    /// A number; `default` when it is missing.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64, AmqpRefusal> {
        Ok(self.typed(name, "whole number from zero on", Value::as_u64)?.unwrap_or(default))
    }

    /// How many of a list are passed over, and how many are shown then.
    pub(crate) fn page(&self) -> Result<(usize, usize), AmqpRefusal> {
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Ok((count(self.number("skip", 0)?), count(self.number("top", 100)?).min(limits::PAGE_MAX)))
    }

    pub(crate) fn maps(&self, name: &str) -> Result<Vec<&[(Value, Value)]>, AmqpRefusal> {
        self.each(name, "map", Value::as_map)
    }

    pub(crate) fn tokens(&self) -> Result<Vec<LockUuid>, AmqpRefusal> {
        self.each("lock-tokens", "UUID", |value| value.as_uuid().map(LockUuid))
    }

    pub(crate) fn numbers(&self) -> Result<Vec<SequenceNumber>, AmqpRefusal> {
        self.each("sequence-numbers", "whole number", |value| value.as_u64().map(SequenceNumber::new))
    }

    /// What a field says, if it is there; refused by name when it is of another type.
    fn typed<'request, T>(
        &'request self,
        name: &str,
        kind: &str,
        read: impl FnOnce(&'request Value) -> Option<T>,
    ) -> Result<Option<T>, AmqpRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => {
                read(value).map(Some).ok_or_else(|| AmqpRefusal::argument(format!("{name} is no {kind}")))
            }
        }
    }

    /// What the values of a list say.
    fn each<'request, T>(
        &'request self,
        name: &str,
        kind: &str,
        read: impl Fn(&'request Value) -> Option<T>,
    ) -> Result<Vec<T>, AmqpRefusal> {
        let list = self.get(name).and_then(Value::as_list);
        let list = list.ok_or_else(|| AmqpRefusal::argument(format!("{name} is missing, or no list")))?;
        let wrong = || AmqpRefusal::argument(format!("{name} has what is no {kind}"));
        list.iter().map(|value| read(value).ok_or_else(wrong)).collect()
    }
}
