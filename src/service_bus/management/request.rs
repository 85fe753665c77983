//! A request as a client makes it.

use bytes::Bytes;

use crate::amqp::Malformed;
use crate::amqp::Map;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::Body;
use crate::amqp::message::Sections;
use crate::id::SequenceNumber;
use crate::service_bus::holds::Token;
use crate::service_bus::refusal::Refusal;

/// A request.
pub(crate) struct Request {
    pub(crate) operation: String,
    /// Which answer is to this request; with its type.
    pub(crate) id: Value,
    pub(crate) reply_to: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) body: Map,
    pub(crate) application: Map,
}

impl Request {
    pub(crate) fn read(payload: &Bytes) -> Result<Request, Malformed> {
        let sections = Sections::parse(payload)?;
        let properties = sections.properties()?;
        let application = sections.application_properties()?;
        let operation =
            lookup(&application, "operation").and_then(Value::as_str).unwrap_or_default().to_owned();
        let body = match sections.body()? {
            Body::Value(Value::Map(entries)) => entries,
            Body::Value(value) => vec![(Value::string("value"), value)],
            _ => Map::new(),
        };
        let session_id = lookup(&body, "session-id").and_then(Value::as_str).map(str::to_owned);
        let reply_to = properties.reply_to.as_deref().map(str::to_owned);
        Ok(Request { operation, id: properties.message_id, reply_to, session_id, body, application })
    }

    /// The operation, without the name of who has defined it.
    pub(crate) fn operation(&self) -> &str {
        self.operation.strip_prefix("com.microsoft:").unwrap_or(&self.operation)
    }

    /// Whether it can only be done by who holds the session it names.
    pub(crate) fn needs_session(&self) -> bool {
        matches!(
            self.operation(),
            "renew-session-lock" | "get-session-state" | "set-session-state" | "receive-by-sequence-number"
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        lookup(&self.body, name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn list(&self, name: &str) -> Result<&[Value], Refusal> {
        let list = self.get(name).and_then(Value::as_list);
        list.ok_or_else(|| Refusal::argument(format!("{name} is missing, or no list")))
    }

    pub(crate) fn maps(&self, name: &str) -> Result<Vec<&[(Value, Value)]>, Refusal> {
        let wrong = || Refusal::argument(format!("{name} has what is no map"));
        self.list(name)?.iter().map(|value| value.as_map().ok_or_else(wrong)).collect()
    }

    pub(crate) fn tokens(&self) -> Result<Vec<Token>, Refusal> {
        let wrong = || Refusal::argument("lock-tokens has what is no UUID");
        let tokens = self.list("lock-tokens")?;
        tokens.iter().map(|value| value.as_uuid().map(Token).ok_or_else(wrong)).collect()
    }

    pub(crate) fn numbers(&self) -> Result<Vec<SequenceNumber>, Refusal> {
        let wrong = || Refusal::argument("sequence-numbers has what is no number");
        let numbers = self.list("sequence-numbers")?;
        numbers.iter().map(|value| value.as_u64().map(SequenceNumber::new).ok_or_else(wrong)).collect()
    }

    /// A number; `default` when it is missing or below zero.
    pub(crate) fn number(&self, name: &str, default: u64) -> u64 {
        self.get(name).and_then(Value::as_u64).unwrap_or(default)
    }
}
