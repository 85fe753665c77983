//! Why a queue could not be created, changed or deleted.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::id::QueueName;

/// Why a queue could not be created, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum QueueRefusal {
    /// There is a queue of this name with other options.
    #[error(
        "cannot create queue {0}: it exists with other options; change these, or create it with those it has"
    )]
    QueueExists(QueueName),
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// The order cannot change while messages or workflows are stored, or cursors of forgotten ones remembered.
    #[error(
        "cannot change the order of queue {0}: it stores messages, workflows or cursors; drain or purge it first"
    )]
    OrderInUse(QueueName),
    /// There are as many queues as a file may have.
    #[error("cannot create a queue: there are {0} already")]
    TooManyQueues(usize),
    /// The disk is nearly full, and what is left of it is kept for receiving, settling and purging.
    #[error(
        "cannot define queue {0}: the disk is nearly full, its last room is kept for draining; free some, or enlarge it"
    )]
    StorageFull(QueueName),
    /// A topic has this name.
    #[error("cannot create queue {0}: a topic has this name")]
    NameIsTopic(QueueName),
    /// Only its topic can create the queue of a subscription.
    #[error("cannot create queue {0}: it is a subscription's, which is made by subscribing to the topic")]
    NotSubscribed(QueueName),
}
