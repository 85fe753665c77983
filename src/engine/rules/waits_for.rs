//! What a receiver waits for that has found nothing.

use crate::id::QueueName;
use crate::token::LockToken;

/// What a receiver waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitsFor {
    /// Work in a queue.
    Queue(QueueName),
    /// A dead letter of a queue.
    DeadLetters(QueueName),
    /// Work in the workflow that it has accepted.
    AcceptedWorkflow(LockToken),
}
