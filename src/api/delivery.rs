//! A message as it is handed out, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::body::BodyFields;
use crate::api::given::given;
use crate::api::message::WireProperty;
use crate::api::message::show_properties;
use crate::api::time::WireDuration;
use crate::api::time::WireTime;
use crate::api::views::DeadLetterReason;
use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::engine::Attempt;
use crate::engine::ReceivedMessage;
use crate::id::QueueName;

/// A message as it is handed out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryEnvelope {
    /// Names the delivery when it is settled; only for those who settle by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// Until when it is locked, unless the lock is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<WireTime>,
    /// How long its lock lasts from the moment it was handed out, in milliseconds: for who does not trust the clock of
    /// another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// The lock token, to be shown to others as a fencing token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_token: Option<String>,
    /// The queue it came from.
    pub queue: String,
    /// Its number.
    pub sequence_number: u64,
    /// Its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Its position, in a queue ordered by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The sender's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// How often it was handed out, this time included.
    pub delivery_count: u32,
    /// Its last failed attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptEnvelope>,
    /// Received as a dead letter: the reason, the time and the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetterReason>,
    /// When it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<WireTime>,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<WireTime>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// MIME type of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The ID of the message or request it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Where an answer is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The sender's own properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, WireProperty>,
    /// The state of its workflow, if that is JSON.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub state: Option<Box<RawValue>>,
    /// The state of its workflow as base64, if it is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_base64: Option<String>,
    /// The body as a JSON value.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub body: Option<Box<RawValue>>,
    /// The body as UTF-8 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_text: Option<String>,
    /// The body as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

impl DeliveryEnvelope {
    /// Shows a message that was handed out; `by_position` says whether the queue is ordered by position.
    pub fn show(queue: &QueueName, message: &ReceivedMessage, by_position: bool) -> DeliveryEnvelope {
        let headers = &message.headers;
        let shown = BodyFields::show(&message.body, headers.content_type.as_deref());
        DeliveryEnvelope {
            queue: queue.to_string(),
            sequence_number: message.sequence_number.get(),
            workflow_id: message.workflow_id.as_ref().map(ToString::to_string),
            position: (by_position && message.has_workflow()).then_some(message.rank),
            message_id: message.message_id.as_ref().map(ToString::to_string),
            delivery_count: message.delivery_count,
            attempts: message.attempts.iter().map(AttemptEnvelope::show).collect(),
            dead_letter: message.dead_letter.as_ref().map(|why| DeadLetterReason::show(why, None)),
            accepted_at: Some(WireTime(message.accepted_at)),
            expires_at: message.expires_at.map(WireTime),
            subject: headers.subject.clone(),
            content_type: headers.content_type.clone(),
            correlation_id: headers.correlation_id.clone(),
            reply_to: headers.reply_to.clone(),
            properties: show_properties(&headers.properties),
            body: shown.body,
            body_text: shown.body_text,
            body_base64: shown.body_base64,
            ..DeliveryEnvelope::default()
        }
    }

    /// Shows the body byte for byte, as text or, where that is shorter, as base64: who reads a JSON value cannot tell how it was written.
    #[must_use]
    pub fn with_raw_body(self, body: &Bytes) -> DeliveryEnvelope {
        let BodyFields { body, body_text, body_base64 } = BodyFields::show_raw(body);
        DeliveryEnvelope { body, body_text, body_base64, ..self }
    }

    /// Adds its lock: until when by the wall clock, and for how long from the moment it was handed out.
    #[must_use]
    pub fn with_lock(mut self, until: Timestamp, lasts: Duration) -> DeliveryEnvelope {
        (self.locked_until, self.lock_ms) = (Some(WireTime(until)), Some(whole_millis(lasts)));
        self
    }

    /// Adds the state of its workflow.
    #[must_use]
    pub fn with_state(mut self, state: Option<&Bytes>) -> DeliveryEnvelope {
        let Some(state) = state else { return self };
        match serde_json::from_slice::<Box<RawValue>>(state) {
            Ok(value) if !value.get().contains(['\n', '\r']) => self.state = Some(value),
            _ => self.state_base64 = Some(BASE64.encode(state)),
        }
        self
    }
}

/// A failed attempt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttemptEnvelope {
    /// The delivery count of the attempt.
    pub delivery_count: u32,
    /// When it was handed out.
    pub at: WireTime,
    /// How long it was held.
    pub lasted: WireDuration,
    /// Why it failed.
    pub reason: String,
    /// What its handler wrote: of a program, its standard output and error; of a webhook, the beginning of the response.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// How many bytes of that are not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_cut_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AttemptEnvelope {
    /// Shows an attempt.
    pub fn show(attempt: &Attempt) -> AttemptEnvelope {
        AttemptEnvelope {
            delivery_count: attempt.delivery_count,
            at: WireTime(attempt.at),
            lasted: WireDuration(attempt.lasted),
            reason: attempt.reason.clone(),
            output: attempt.output.text.clone(),
            output_cut_bytes: attempt.output.cut_bytes,
        }
    }
}
