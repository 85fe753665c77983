//! A message as its receiver sees it.

use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::record::Attempt;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::LOCK_LOST;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Suspicion;
use crate::engine::rules::record::WorkflowRef;
use crate::error::Misuse;
use crate::header::Headers;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::message::Message;

/// A message as it was received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// Its number.
    pub sequence_number: SequenceNumber,
    /// Its workflow.
    pub workflow_id: Option<WorkflowId>,
    /// Its position, where the queue's order has positions, else its ordinal or its sequence number.
    pub rank: u64,
    /// The sender's ID.
    pub message_id: Option<MessageId>,
    /// How often it was handed out, this time included.
    pub delivery_count: u32,
    /// Its last failed attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Its headers.
    pub headers: Headers,
    /// Its body. A small one that was sent with others shares up to 16 KiB of memory with them: copy what you keep for long.
    pub body: Bytes,
    /// Received as a dead letter: why it was moved aside, and when.
    pub dead_letter: Option<DeadLetter>,
    ordered: bool,
    has_state: bool,
    is_suspect: bool,
}

impl ReceivedMessage {
    pub(crate) fn new(client: &Client, handed: LockedMessage) -> ReceivedMessage {
        let LockedMessage { sequence, record, content, has_state, .. } = handed;
        let dead_letter = match &record.status {
            Status::DeadLettered(dead_letter) => Some(DeadLetter::clone(dead_letter)),
            _ => None,
        };
        // A dead letter has as much time as anybody takes.
        let expires_at = record.rare.expires_at.filter(|_| dead_letter.is_none());
        ReceivedMessage {
            sequence_number: sequence,
            workflow_id: content.workflow_id,
            rank: record.rank.unwrap_or_default(),
            message_id: record.message_id.clone(),
            delivery_count: record.delivery_count,
            attempts: record.rare.attempts.clone(),
            accepted_at: record.accepted_at,
            expires_at: expires_at.map(|due| client.shown_due(due)),
            headers: content.headers.into_inner(),
            body: content.body,
            dead_letter,
            ordered: matches!(record.stream, WorkflowRef::Named(_)),
            has_state,
            is_suspect: record.rare.suspicion != Suspicion::None,
        }
    }

    /// Whether it belongs to a workflow that can keep a state.
    pub fn has_workflow(&self) -> bool {
        self.ordered
    }

    /// The message as it is sent on: with what its sender said of it, and the rest of its time when the wall clock that the engine
    /// believes shows `now`.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the daemon forwards"))]
    pub(crate) fn sent_on(&self, now: Timestamp) -> Message {
        let mut message = Message::new(self.body.clone());
        message.headers = self.headers.clone();
        message.workflow_id = self.workflow_id.as_ref().map(ToString::to_string);
        message.message_id = self.message_id.as_ref().map(ToString::to_string);
        let left = self.expires_at.map(|expires_at| expires_at.since(now));
        // A message that expires at this moment is still on its way.
        message.time_to_live = left.map(|left| left.max(Duration::from_millis(1)));
        message
    }

    /// Whether its workflow had a state when it was handed out; only its holder changes that.
    pub(crate) fn has_state(&self) -> bool {
        self.has_state
    }

    /// Whether it is handed out alone, because it failed together with others and nobody said which of them was to blame.
    pub(crate) fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// How often its lock ran out, as far as its last attempts tell; of a dead letter, since it became one.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) fn times_lock_lost(&self) -> usize {
        let since = self.dead_letter.as_ref().map(|dead_letter| dead_letter.at);
        let counts = |attempt: &&Attempt| since.is_none_or(|since| attempt.at >= since);
        self.attempts.iter().filter(counts).filter(|attempt| attempt.reason == LOCK_LOST).count()
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// [`Misuse`] when the body is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Misuse> {
        serde_json::from_slice(&self.body).map_err(|error| Misuse::new("body", error.to_string()))
    }
}
