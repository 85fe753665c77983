//! Why an operation on a workflow or a dead letter was refused.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::error::send::SendRefusal;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;

/// Why an operation on a workflow or dead letter was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OperateRefusal {
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// There is no such workflow.
    #[error("there is no such workflow")]
    WorkflowNotFound,
    /// The queue has no order, so it has no workflows.
    #[error("queue {0} has no order, and so no workflows")]
    Unordered(QueueName),
    /// Somebody holds the workflow.
    #[error("the workflow is locked by a holder")]
    WorkflowLocked,
    /// The workflow is not held.
    #[error("cannot resume: the workflow is not held")]
    NotHeld,
    /// The workflow is not held for this cause.
    #[error(
        "cannot resume: the workflow is not held for the cause {0}; leave the cause out to lift every hold"
    )]
    NotHeldFor(HoldKind),
    /// The workflow is not locked.
    #[error("the workflow is not locked")]
    NotLocked,
    /// No message waits for a retry at the head of the workflow.
    #[error("no message waits for a retry at the head")]
    NothingWaits,
    /// The workflow has no message at its head, because none is there or a missing one is waited for; or it has no gap that a
    /// message waits behind.
    #[error("cannot skip: the workflow has no message at its head, or no gap that a message waits behind")]
    NoHead,
    /// The position is not missing: it was settled, or its message is there.
    #[error("cannot declare position {0} void: it is not missing")]
    NotMissing(Position),
    /// The queue's order knows no positions.
    #[error("cannot declare a gap void: the queue has no positions")]
    NoPositions,
    /// There is no such dead letter.
    #[error("cannot redrive message {0}: it is not a dead letter")]
    NotDeadLettered(SequenceNumber),
    /// The workflow has gone past the message's place, or is not held before it: give the message a new position, or hold
    /// the workflow before its place.
    #[error(
        "cannot redrive message {0}: its workflow has gone past its place, or is not held before it; give it a new position \
         (--position; in after-order send its content as a new message), or, as long as its place is not passed, hold the \
         workflow first"
    )]
    PlacePassed(SequenceNumber),
    /// In after-order: nothing is known of the message's predecessor. Send that first.
    #[error(
        "cannot redrive message {0}: its predecessor {1} is unknown; send that first, or redrive it if it is a dead letter too"
    )]
    PredecessorUnknown(SequenceNumber, MessageId),
    /// The dead letter is the original of a message that was edited and put back: it is kept to be looked at.
    #[error(
        "cannot redrive message {0}: it is the original of a message that was edited and put back already"
    )]
    Original(SequenceNumber),
    /// The workflow is quarantined: what came back would be dead-lettered again. Resume it, or resume and redrive it.
    #[error("cannot redrive message {0}: its workflow is quarantined; resume it first")]
    Quarantined(SequenceNumber),
    /// The message could not be sent anew.
    #[error(transparent)]
    Send(SendRefusal),
    /// There is no room for a backup where it goes.
    #[error(
        "cannot back up: the copy needs up to {needed_bytes} bytes, and {free_bytes} are free for it; free some room first"
    )]
    StorageFull {
        /// What the copy needs, at most.
        needed_bytes: u64,
        /// What is free for it; the head room of the store is not.
        free_bytes: u64,
    },
    /// The message is not at the head of the workflow: it was settled or skipped meanwhile, or stands behind another.
    #[error(
        "cannot skip message {0}: it is not at the head of the workflow any more, or not yet; look again"
    )]
    NotAtHead(SequenceNumber),
    /// A backup could not be made where it was to go, for this reason; the engine goes on.
    #[error("cannot back up: {0}; the store itself goes on")]
    BackupFailed(String),
}
