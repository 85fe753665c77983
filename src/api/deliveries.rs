//! Requests and answers about deliveries: receiving messages under locks, and settling them.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::DeliveryEnvelope;
use crate::api::Problem;
use crate::api::ReceiptView;
use crate::api::SendEnvelope;
use crate::api::WireDuration;
use crate::api::WireProperty;
use crate::api::WireTime;
use crate::api::message::by_name;
use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::engine::Completion;
use crate::error::Misuse;
use crate::message::Message;

/// What a receiver asks for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiveRequest {
    /// How many messages at most; 1 if it is not given, 1,024 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    /// How long to wait for the first, at most a minute; without it, not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WireDuration>,
    /// Consecutive messages of one workflow under one lock, instead of one each of several workflows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// Dead letters of the queue, in order of reason and number, instead of its messages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dead_letters: bool,
    /// Shows the state of each message's workflow too; of a run, with its first message. Fewer messages come then if they have
    /// more than 16 MiB with their states.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub state: bool,
    /// Shows each body byte for byte: as text or as base64, and none as a JSON value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// Which messages that were set aside are fetched.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiveDeferredRequest {
    /// Their numbers: all are handed out, or none.
    pub sequence_numbers: Vec<u64>,
    /// Whether they are dead letters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead_letters: bool,
    /// Shows the state of each message's workflow too; they may have 16 MiB with their states.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub state: bool,
    /// Shows each body byte for byte: as text or as base64, and none as a JSON value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// What was handed out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveResponse {
    /// With a run: its lock token, by which it is settled, from its first message on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The messages; none when none came in time.
    pub deliveries: Vec<DeliveryEnvelope>,
}

/// What is one transaction with a completion.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompleteRequest {
    /// The workflow's new state, as JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<RawValue>>,
    /// The workflow's new state, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_base64: Option<String>,
    /// Clears the workflow's state.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clear_state: bool,
    /// Messages to send, each with the queue it goes to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<SendEnvelope>,
}

impl CompleteRequest {
    /// The completion. `place` gives each message its workflow and position, as the definition of its queue says.
    ///
    /// # Errors
    /// [`Misuse`] names a field that is not allowed.
    pub(crate) fn completion(
        self,
        place: impl Fn(&str, Message) -> Result<Message, Misuse>,
    ) -> Result<Completion, Misuse> {
        let mut completion = Completion::new();
        if self.clear_state && (self.state.is_some() || self.state_base64.is_some()) {
            return Err(Misuse::new("clear_state", "is given together with a new state"));
        }
        match (self.state, self.state_base64) {
            (Some(_), Some(_)) => return Err(Misuse::new("state", "is given twice")),
            (Some(state), None) => {
                completion = completion.state(Bytes::from(String::from(Box::<str>::from(state))));
            }
            (None, Some(text)) => {
                let decoded = BASE64.decode(text.as_bytes());
                let decoded = decoded.map_err(|error| Misuse::new("state_base64", error.to_string()))?;
                completion = completion.state(decoded);
            }
            (None, None) if self.clear_state => completion = completion.clear_state(),
            (None, None) => {}
        }
        for send in self.send {
            let queue = send.queue.clone().ok_or_else(|| Misuse::new("send", "names no queue"))?;
            let message = place(&queue, send.into_message()?)?;
            completion = completion.send(queue, message);
        }
        Ok(completion)
    }
}

/// What became of the messages that were sent with a completion.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompleteResponse {
    /// One for each, in order.
    pub receipts: Vec<ReceiptView>,
}

/// How a failed message is tried again; without an instant or delay, after the delay its queue says.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AbandonRequest {
    /// The delay; `0s` for at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<WireDuration>,
    /// The instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<WireTime>,
    /// Why it failed, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Properties that are set on the message.
    #[serde(deserialize_with = "by_name", skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, WireProperty>,
}

/// Until when a message is set aside.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeferRequest {
    /// When it comes back by itself; without it, when the queue's definition says, or when it is received by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
}

/// Why a message is moved aside for good.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeadLetterRequest {
    /// A short reason, by which dead letters are listed; required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Until when a lock lasts now.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RenewResponse {
    /// Until when, by the server's wall clock.
    pub locked_until: WireTime,
    /// For how long from the renewal on, in milliseconds: for who does not trust the clock of another machine. An older server does
    /// not say it.
    #[serde(default)]
    pub lock_ms: u64,
}

impl RenewResponse {
    pub(crate) fn new(until: Timestamp, lasts: Duration) -> RenewResponse {
        RenewResponse { locked_until: WireTime(until), lock_ms: whole_millis(lasts) }
    }
}

/// Which deliveries are completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteManyRequest {
    /// Up to 1,024, of any workflows of the queue.
    pub deliveries: Vec<String>,
}

/// Which deliveries were completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompleteManyResponse {
    /// How many were.
    pub completed: u64,
    /// What became of each, in order.
    pub results: Vec<CompletedDelivery>,
}

/// What became of a delivery.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompletedDelivery {
    /// The delivery.
    pub delivery: String,
    /// Why it was not completed; absent when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// How a run ends: its first messages are completed, the next may end in its own way, the others are given back as if
/// they had not been handed out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SettleRunRequest {
    /// How many are completed, from the first on.
    pub completed: usize,
    /// The workflow's new state, as JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<RawValue>>,
    /// The workflow's new state, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_base64: Option<String>,
    /// Clears the workflow's state.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clear_state: bool,
    /// Messages to send, each with the queue it goes to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<SendEnvelope>,
    /// How the message behind them ends; without it, it is given back too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextOutcome>,
    /// How often that message was handed out, as its delivery says: which of the exact delays of its queue's definition is due.
    /// Without it, the only one is; where there are several, it comes by the queue's backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_delivery_count: Option<u32>,
}

/// How a message ends that is not completed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum NextOutcome {
    /// It failed and is tried again.
    Abandon(AbandonRequest),
    /// It is set aside.
    Defer(DeferRequest),
    /// It is moved aside for good.
    DeadLetter(DeadLetterRequest),
}
