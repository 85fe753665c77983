//! Where the handlers of one queue run: what the daemon tells all of them.

use std::sync::Arc;

use crate::clock::Clock;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::message::Message;

/// Gives a message that an answer sends its workflow and position, as the definition of its queue says.
pub(crate) type Placing = Arc<dyn Fn(&str, Message) -> Result<Message, Misuse> + Send + Sync>;

/// What the daemon tells the handlers of one queue.
#[derive(Clone)]
pub(crate) struct Site {
    /// The queue, for log lines.
    pub(crate) queue: QueueName,
    /// The store's ID: every child carries it, so that a child of a daemon that died is found.
    pub(crate) store_id: String,
    /// Who sends to other daemons, which know by it what is sent again: the store, or on a cluster all of its nodes.
    pub(crate) sender_id: String,
    /// Whether the queue is ordered by position, so that a message's rank is its position.
    pub(crate) by_position: bool,
    /// Places the messages an answer sends.
    pub(crate) place: Placing,
    /// Tells the time a webhook is signed with.
    pub(crate) clock: Arc<dyn Clock>,
}
