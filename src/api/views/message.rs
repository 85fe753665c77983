//! A stored message as JSON.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::body::BodyFields;
use crate::api::delivery::AttemptEnvelope;
use crate::api::given::given;
use crate::api::message::WireProperty;
use crate::api::message::show_properties;
use crate::api::time::WireTime;
use crate::api::views::history::HistoryView;
use crate::clock::Timestamp;
use crate::engine::ChainPlace;
use crate::engine::DeadLetter;
use crate::engine::DeadLetterView;
use crate::engine::Deferral;
use crate::engine::EDITED;
use crate::engine::HistoryEntry;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::error::Misuse;
use crate::header::EDITED_AS;
use crate::id::MessageId;

/// A stored message. Looking at it changes nothing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageEnvelope {
    /// Its number.
    pub sequence_number: u64,
    /// Where it is in its life.
    pub status: MessageWord,
    /// Until when, if that ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
    /// Its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Its position, in order by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The message it follows, in after-order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What it stands behind, in after-order; absent as long as the chain has not reached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_place: Option<ChainPlaceView>,
    /// The sender's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// When it was accepted.
    pub accepted_at: WireTime,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<WireTime>,
    /// How often it was handed out.
    pub delivery_count: u32,
    /// Its last failed attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptEnvelope>,
    /// Dead-lettered: the reason, the time and the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetterReason>,
    /// It has ended: how and when, as its queue remembers. Its headers and its body are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<HistoryView>,
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

/// Where a message is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageWord {
    /// It can be handed out, now or once those before it are settled.
    Ready,
    /// It is handed out.
    Locked,
    /// Deferred: a predecessor is missing.
    Early,
    /// Deferred: it waits for its retry.
    #[serde(alias = "failed")]
    Retry,
    /// Deferred: it has failed as often as it may, and its workflow is held for it.
    #[serde(alias = "spent")]
    Exhausted,
    /// Deferred: its consumer set it aside.
    #[serde(rename = "by_consumer", alias = "asked")]
    ByConsumer,
    /// It is kept back until its instant.
    Scheduled,
    /// It was moved aside for good.
    DeadLettered,
    /// It has ended, and its queue remembers how.
    Ended,
}

/// What stands before a message that the chain has reached, in after-order. The message that it names may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainPlaceView {
    /// The ID of the nearest message before it that is stored, dead letters included; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// The same without dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_live: Option<String>,
}

impl ChainPlaceView {
    fn show(place: &ChainPlace) -> ChainPlaceView {
        let shown = |id: &Option<MessageId>| id.as_ref().map(ToString::to_string);
        ChainPlaceView { follows: shown(&place.follows), follows_live: shown(&place.follows_live) }
    }
}

/// Why a message was moved aside for good.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterReason {
    /// A short reason, by which dead letters are listed.
    pub reason: String,
    /// The description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When.
    pub at: WireTime,
    /// Whether its receiver has set it aside: it is received by its number only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
    /// Until when its receiver has it locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<WireTime>,
}

impl DeadLetterReason {
    pub(crate) fn show(dead_letter: &DeadLetter, locked_until: Option<Timestamp>) -> DeadLetterReason {
        DeadLetterReason {
            reason: dead_letter.reason.clone(),
            description: dead_letter.description.clone(),
            at: WireTime(dead_letter.at),
            deferred: dead_letter.deferred,
            locked_until: locked_until.map(WireTime),
        }
    }
}

impl MessageEnvelope {
    /// Shows a message.
    pub fn show(view: &MessageView) -> MessageEnvelope {
        let headers = &view.headers;
        let shown = BodyFields::show(&view.body, headers.content_type.as_deref());
        let (status, until, dead_letter) = shown_status(view);
        MessageEnvelope {
            sequence_number: view.sequence_number.get(),
            status,
            until,
            workflow_id: view.workflow_id.as_ref().map(ToString::to_string),
            position: view.position,
            after: view.after.as_ref().map(ToString::to_string),
            chain_place: view.chain_place.as_ref().map(ChainPlaceView::show),
            message_id: view.message_id.as_ref().map(ToString::to_string),
            accepted_at: WireTime(view.accepted_at),
            expires_at: view.expires_at.map(WireTime),
            delivery_count: view.delivery_count,
            attempts: view.attempts.iter().map(AttemptEnvelope::show).collect(),
            dead_letter,
            ended: None,
            subject: headers.subject.clone(),
            content_type: headers.content_type.clone(),
            correlation_id: headers.correlation_id.clone(),
            reply_to: headers.reply_to.clone(),
            properties: show_properties(&headers.properties),
            body: shown.body,
            body_text: shown.body_text,
            body_base64: shown.body_base64,
        }
    }
}

impl MessageEnvelope {
    /// Whether it is a dead letter as it was before its body was edited: what became of it is a message of its own.
    pub fn is_original(&self) -> bool {
        let reason = self.dead_letter.as_ref().map(|dead_letter| dead_letter.reason.as_str());
        reason == Some(EDITED) && self.properties.contains_key(EDITED_AS)
    }

    /// Shows the body byte for byte, as text or, where that is shorter, as base64: who reads a JSON value cannot tell how it was written.
    #[must_use]
    pub fn with_raw_body(self, body: &Bytes) -> MessageEnvelope {
        self.with_body(BodyFields::show_raw(body))
    }

    /// Shows a raw body as a JSON value where that is written byte for byte as the body is.
    ///
    /// # Errors
    /// [`Misuse`] when the body is not base64.
    pub fn with_exact_body(mut self) -> Result<MessageEnvelope, Misuse> {
        if self.body.is_some() {
            return Ok(self);
        }
        let (body_text, body_base64) = (self.body_text.take(), self.body_base64.take());
        let (bytes, _) = BodyFields { body: None, body_text, body_base64 }.read()?;
        let shown = BodyFields::show_exactly(&bytes, self.content_type.as_deref());
        Ok(self.with_body(shown))
    }

    fn with_body(self, BodyFields { body, body_text, body_base64 }: BodyFields) -> MessageEnvelope {
        MessageEnvelope { body, body_text, body_base64, ..self }
    }

    /// Shows a message that has ended.
    pub fn show_ended(entry: &HistoryEntry) -> MessageEnvelope {
        let ended = HistoryView::show(entry);
        MessageEnvelope {
            sequence_number: ended.sequence_number.unwrap_or_default(),
            status: MessageWord::Ended,
            until: None,
            workflow_id: ended.workflow_id.clone(),
            position: ended.positions.map(|(first, _)| first),
            after: None,
            chain_place: None,
            message_id: ended.message_id.clone(),
            accepted_at: ended.accepted_at.unwrap_or(ended.at),
            expires_at: None,
            delivery_count: ended.delivery_count,
            attempts: Vec::new(),
            dead_letter: None,
            ended: Some(ended),
            subject: None,
            content_type: None,
            correlation_id: None,
            reply_to: None,
            properties: BTreeMap::new(),
            body: None,
            body_text: None,
            body_base64: None,
        }
    }
}

fn shown_status(view: &MessageView) -> (MessageWord, Option<WireTime>, Option<DeadLetterReason>) {
    match &view.status {
        MessageStatus::Ready => (MessageWord::Ready, None, None),
        MessageStatus::Locked { until } => (MessageWord::Locked, Some(WireTime(*until)), None),
        MessageStatus::Scheduled { until } => (MessageWord::Scheduled, Some(WireTime(*until)), None),
        MessageStatus::Deferred { why, until } => {
            let word = match why {
                Deferral::Early => MessageWord::Early,
                Deferral::Retry if until.is_none() => MessageWord::Exhausted,
                Deferral::Retry => MessageWord::Retry,
                Deferral::ByConsumer => MessageWord::ByConsumer,
            };
            (word, until.map(WireTime), None)
        }
        MessageStatus::DeadLettered(dead_letter) => {
            (MessageWord::DeadLettered, None, Some(DeadLetterReason::show(dead_letter, view.locked_until)))
        }
    }
}

/// The dead letters of a queue in groups: those of one reason whose errors differ in numbers and IDs only.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterGroupsView {
    /// The groups, the largest first; 100 at most.
    pub groups: Vec<DeadLetterGroupView>,
    /// Whether there are more letters or groups than were looked at: 10,000 letters at most.
    pub is_cut: bool,
}

/// Dead letters of one reason and one kind of error.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterGroupView {
    /// Why they were moved aside.
    pub reason: String,
    /// The error of one of them.
    pub error: String,
    /// How many they are.
    #[serde(alias = "letters")]
    pub dead_letters: u64,
    /// When the first was moved aside.
    pub first_at: WireTime,
    /// When the last was.
    pub last_at: WireTime,
    /// The number of one of them.
    pub sample: u64,
}

/// A dead letter in a listing, without its body.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterEntry {
    /// Its number.
    pub sequence_number: u64,
    /// Its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The sender's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// How often it was handed out.
    pub delivery_count: u32,
    /// Why it was moved aside, when, and what else was said.
    #[serde(flatten)]
    pub dead_letter: DeadLetterReason,
}

impl DeadLetterEntry {
    /// Shows a dead letter.
    pub fn show(view: &DeadLetterView) -> DeadLetterEntry {
        DeadLetterEntry {
            sequence_number: view.sequence_number.get(),
            workflow_id: view.workflow_id.as_ref().map(ToString::to_string),
            message_id: view.message_id.as_ref().map(ToString::to_string),
            delivery_count: view.delivery_count,
            dead_letter: DeadLetterReason::show(&view.dead_letter, view.locked_until),
        }
    }
}
