//! Why a send was refused.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::id::QueueName;
use crate::id::SequenceNumber;

/// Why a send was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SendRefusal {
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// Another message waits at this place.
    #[error("cannot send message {}: its place is taken by the message with sequence number {by}", .index + 1)]
    PlaceTaken {
        /// Which message of the batch, from 0.
        index: usize,
        /// The message that has the place.
        by: SequenceNumber,
    },
    /// The position is settled already, and the queue refuses late messages.
    #[error("cannot send message {}: its place is settled already", .index + 1)]
    AlreadySettled {
        /// Which message of the batch, from 0.
        index: usize,
    },
    /// The place does not fit the queue's order.
    #[error("cannot send message {}: {detail}", .index + 1)]
    PlaceMismatch {
        /// Which message of the batch, from 0.
        index: usize,
        /// What the queue's order asks for.
        detail: String,
    },
    /// The body is larger than the queue allows.
    #[error("cannot send message {}: its body has {bytes} bytes, the queue takes {bytes_max}", .index + 1)]
    BodyTooLarge {
        /// Which message of the batch, from 0.
        index: usize,
        /// Its size.
        bytes: usize,
        /// The queue's limit.
        bytes_max: usize,
    },
    /// Too many early messages wait in this workflow.
    #[error("cannot send message {}: its workflow is full (early messages that wait in it: {early})", .index + 1)]
    WorkflowFull {
        /// Which message of the batch, from 0.
        index: usize,
        /// How many wait.
        early: u64,
    },
    /// The queue stores as many messages as it may.
    #[error("cannot send: the queue is full (messages stored in it: {stored})")]
    QueueFull {
        /// How many it stores.
        stored: u64,
    },
    /// There is no such topic.
    #[error("there is no topic {0}")]
    TopicNotFound(QueueName),
    /// The topic's rules were changed at the same moment, again and again.
    #[error("cannot send to topic {0}: its rules were changed at the same moment; send again")]
    TopicChanged(QueueName),
    /// There is no scheduled message with this number, or it is not scheduled any more.
    #[error("message {0} is not scheduled: it never was, its instant has come, or it was cancelled")]
    NotScheduled(SequenceNumber),
    /// The sequence numbers of this file are used up.
    #[error("cannot send: the sequence numbers are used up")]
    NumbersUsedUp,
    /// Another request was sent under this idempotency key, and its answer is still kept.
    #[error("cannot send: the idempotency key {0:?} was used for another request")]
    KeyReused(String),
    /// As many answers are kept for idempotency keys as a queue, or all topics together, may keep.
    #[error("cannot send: {kept} answers for idempotency keys are kept there, more are not allowed")]
    TooManyKeys {
        /// How many it keeps.
        kept: u64,
    },
    /// The disk is nearly full, and what is left of it is kept for receiving, settling and purging.
    #[error(
        "cannot send: the disk is nearly full, its last room is kept for draining; free some, or enlarge the disk"
    )]
    StorageFull,
}

impl SendRefusal {
    /// The same refusal, of a message behind so many others.
    pub(crate) fn behind(mut self, others: usize) -> SendRefusal {
        match &mut self {
            SendRefusal::PlaceTaken { index, .. }
            | SendRefusal::AlreadySettled { index }
            | SendRefusal::PlaceMismatch { index, .. }
            | SendRefusal::BodyTooLarge { index, .. }
            | SendRefusal::WorkflowFull { index, .. } => *index += others,
            SendRefusal::QueueNotFound(_)
            | SendRefusal::TopicNotFound(_)
            | SendRefusal::TopicChanged(_)
            | SendRefusal::QueueFull { .. }
            | SendRefusal::NotScheduled(_)
            | SendRefusal::NumbersUsedUp
            | SendRefusal::KeyReused(_)
            | SendRefusal::TooManyKeys { .. }
            | SendRefusal::StorageFull => {}
        }
        self
    }
}
