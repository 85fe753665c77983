//! What the server asks of those who know it: where a message belongs, and what only the daemon can say or do.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::Misuse;
use crate::id::QueueName;
use crate::message::Message;
use crate::wire::Problem;

/// Where messages belong, as the definitions of their queues say.
pub(crate) trait Place: Send + Sync + 'static {
    /// Fills in workflow and position.
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse>;

    /// The delay of the next attempt after so many hand-outs; `None` when the queue's backoff says it.
    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration>;
}

/// What only the daemon knows or can do.
pub(crate) trait Host: Send + Sync + 'static {
    /// Whether work is taken; `Err` says why not.
    fn ready(&self) -> Result<(), String>;

    /// All metrics in the text format of OpenMetrics.
    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>>;
}
