//! Requests and answers about messages: sending them, looking at them, cancelling and rescheduling them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::Problem;
use crate::api::WireTime;
use crate::api::views::MessageEnvelope;
use crate::engine::MessageView;
use crate::engine::Receipt;

/// How messages are sent.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SendQuery {
    /// With one message a line: all are accepted, or none; at most 1,024.
    pub atomic: bool,
    /// With one message a line, in order of arrival: once there is no room for a line, or nobody knows whether it was accepted,
    /// none behind it is accepted either, so that all can be sent again in their order. Other orders do not need it: messages have
    /// places.
    pub in_order: bool,
}

/// What became of a message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptView {
    /// The message's number, of a duplicate the number of the first; absent when its place was settled before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Whether it was stored now.
    pub status: ReceiptStatus,
}

/// What became of a message, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// It is stored.
    #[default]
    Accepted,
    /// It was accepted before, under this number.
    Duplicate,
    /// Its place was completed before; nothing was stored.
    AlreadySettled,
    /// It is stored as a dead letter: its place was given up before it came.
    DeadLettered,
}

impl ReceiptView {
    /// Shows a receipt.
    pub(crate) fn show(receipt: Receipt) -> ReceiptView {
        let status = match receipt {
            Receipt::Accepted(_) => ReceiptStatus::Accepted,
            Receipt::Duplicate(_) => ReceiptStatus::Duplicate,
            Receipt::AlreadySettled => ReceiptStatus::AlreadySettled,
            Receipt::DeadLettered(_) => ReceiptStatus::DeadLettered,
        };
        ReceiptView { sequence_number: receipt.sequence_number().map(|number| number.get()), status }
    }
}

/// One line of the answer to messages that were sent as lines.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SentLine {
    /// The message's number, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// What became of it; absent when it was refused, and when it was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ReceiptStatus>,
    /// The number of a line that was refused, from 1; blank lines do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

impl SentLine {
    /// What became of the message of this line.
    ///
    /// # Errors
    /// The problem for which it was refused.
    pub fn receipt(self) -> Result<ReceiptView, Box<Problem>> {
        match self.error {
            Some(problem) => Err(Box::new(problem)),
            None => {
                let (sequence_number, status) = (self.sequence_number, self.status.unwrap_or_default());
                Ok(ReceiptView { sequence_number, status })
            }
        }
    }
}

/// Which messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessagesQuery {
    /// The first sequence number; from the start if it is not given.
    pub from: u64,
    /// How many messages at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
    /// Only those with this property: `name=value`. A number or a boolean is meant as it is written.
    pub property: Option<String>,
    /// Only those with this message ID.
    pub message_id: Option<String>,
    /// Only those with this subject.
    pub subject: Option<String>,
    /// Only those with this correlation ID.
    pub correlation_id: Option<String>,
    /// Shows each body byte for byte: as text or as base64, and none as a JSON value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// How a message is looked at.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessageQuery {
    /// Shows its body byte for byte: as text or as base64, and not as a JSON value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// Messages, and where to look next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MessagePage {
    /// The messages in order.
    pub messages: Vec<MessageEnvelope>,
    /// Where the next page begins; absent on an empty one. With a filter, a page may be empty and still have one
    /// behind it: no request looks at more than 2,000 messages. It is absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

impl MessagePage {
    /// Shows messages.
    pub(crate) fn show(views: &[MessageView], from: Option<u64>) -> MessagePage {
        MessagePage { messages: views.iter().map(MessageEnvelope::show).collect(), from }
    }

    /// Shows their bodies byte for byte.
    pub(crate) fn with_raw_bodies(self, views: &[MessageView]) -> MessagePage {
        let shown = self.messages.into_iter().zip(views);
        let messages = shown.map(|(message, view)| message.with_raw_body(&view.body)).collect();
        MessagePage { messages, ..self }
    }
}

/// What becomes of a cancelled message's place.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelQuery {
    /// Declares the place void, instead of giving it back: what waits behind it goes on.
    pub void: bool,
}

/// When a scheduled message is to come.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RescheduleRequest {
    /// Its new instant; one that has passed makes it ready at once.
    pub at: WireTime,
}
