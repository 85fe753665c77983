//! Why a receive was refused.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::id::QueueName;
use crate::id::SequenceNumber;

/// Why a receive was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReceiveRefusal {
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// There is no deferred message with this number.
    #[error("cannot receive message {0}: it is not deferred")]
    MessageNotFound(SequenceNumber),
    /// Somebody holds the workflow.
    #[error("cannot receive: the workflow is locked by another holder")]
    WorkflowLocked,
    /// The workflow is held.
    #[error("cannot receive: the workflow is held")]
    WorkflowHeld,
    /// The lock on the accepted workflow was lost.
    #[error("cannot receive: the lock was lost")]
    LockLost,
    /// The queue has no order, so it has no workflows that could be taken by name.
    #[error("cannot accept a workflow of queue {0}: the queue has no order")]
    Unordered(QueueName),
    /// As many receivers wait as the engine allows.
    #[error("cannot receive: {0} receivers wait already")]
    TooManyWaiting(usize),
    /// As many messages are handed out as the engine or the holder may have at once.
    #[error("cannot receive: {0} deliveries are handed out, more are not allowed")]
    TooManyLocks(usize),
}
