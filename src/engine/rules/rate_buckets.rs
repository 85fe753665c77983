//! What the rate of each queue allows right now, kept in memory, as locks are.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::rate::Bucket;

/// The buckets of the queues that have a rate and were asked for messages since the file was opened.
#[derive(Debug, Default)]
pub(crate) struct RateBuckets {
    buckets: BTreeMap<QueueId, Bucket>,
}

impl RateBuckets {
    /// How many messages a queue may hand out now, and when there is one more if that is none.
    pub(crate) fn allowed(&mut self, queue: &QueueRecord, now: Timestamp) -> Result<usize, Timestamp> {
        let Some(rate) = queue.options.rate else {
            self.buckets.remove(&queue.id);
            return Ok(usize::MAX);
        };
        let bucket = self.buckets.entry(queue.id).or_insert_with(|| Bucket::full(rate, now));
        bucket.advance(rate, now);
        match bucket.messages() {
            0 => Err(bucket.next_at()),
            messages => Ok(messages),
        }
    }

    /// Until when hand-out of a queue pauses, if it does.
    pub(crate) fn pauses_until(&self, queue: &QueueRecord, now: Timestamp) -> Option<Timestamp> {
        let (rate, mut bucket) = (queue.options.rate?, *self.buckets.get(&queue.id)?);
        bucket.advance(rate, now);
        (bucket.messages() == 0).then(|| bucket.next_at())
    }

    /// The queues that have a bucket.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &QueueId> {
        self.buckets.keys()
    }

    /// Forgets a queue that is gone.
    pub(crate) fn forget(&mut self, queue: QueueId) {
        self.buckets.remove(&queue);
    }

    /// Takes a message out of the bucket of a queue, if it has one.
    pub(crate) fn take(&mut self, queue: QueueId) {
        if let Some(bucket) = self.buckets.get_mut(&queue) {
            bucket.take();
        }
    }
}
