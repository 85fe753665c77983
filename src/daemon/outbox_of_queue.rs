//! An outbox, and the queue into which it is copied.

use crate::definition::OutboxDefinition;
use crate::id::QueueName;

/// An outbox, and the queue into which it is copied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutboxOfQueue {
    pub(crate) queue: QueueName,
    pub(crate) outbox: OutboxDefinition,
}

impl OutboxOfQueue {
    /// The workflow it is.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.queue, self.outbox.name)
    }
}
