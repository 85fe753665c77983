//! Looks at the history of a queue: how its messages have ended.

use crate::engine::client::client::Client;
use crate::engine::client::queue::Queue;
use crate::engine::query::Query;
use crate::engine::rules::history::HistoryEntry;
use crate::error::QueueError;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

impl Queue {
    /// Up to `limit` of the messages that have ended, newest first: before the entry with this number, or the newest. Empty
    /// where the queue remembers none ([`QueueOptions::history`](crate::QueueOptions::history)). At most 1,000 are returned,
    /// whatever the limit.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<HistoryEntry>, QueueError> {
        history(self.client(), self.name(), None, before, limit).await
    }

    /// How a message has ended; `None` when it has not, or that is not remembered.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn history_of(&self, number: SequenceNumber) -> Result<Option<HistoryEntry>, QueueError> {
        let queue = self.name().clone();
        let query = |slot| Query::Ended { queue, sequence: number, slot };
        Ok(self.client().look(self.name(), query).await?.into_iter().next())
    }
}

/// A page of the history of a queue, or of one workflow of it.
pub(crate) async fn history(
    client: &Client,
    queue: &QueueName,
    id: Option<WorkflowId>,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<HistoryEntry>, QueueError> {
    client.look(queue, |slot| Query::History { queue: queue.clone(), id, before, limit, slot }).await
}
