//! Rates of queues: what each allows right now, kept in memory, as locks are.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::step::Step;
use crate::rate::Bucket;
use crate::token::LockToken;

/// The buckets of the queues that have a rate and were asked for messages since the file was opened.
#[derive(Debug, Default)]
pub(crate) struct RateBuckets {
    buckets: BTreeMap<QueueId, Bucket>,
}

impl RateBuckets {
    /// How many messages a queue may hand out now, and when there is one more if that is none.
    fn allowed(&mut self, queue: &QueueRecord, now: Timestamp) -> Result<usize, Timestamp> {
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
}

impl Step<'_> {
    /// How many messages the queue may hand out now. When that is none, whoever asked is served again when there is one: the
    /// receivers of the queue, or the holder of a workflow that was taken whole.
    pub(crate) fn allowed(&mut self, queue: &QueueRecord, holder: Option<LockToken>) -> usize {
        match self.rates.allowed(queue, self.now) {
            Ok(messages) => messages,
            Err(until) => {
                let queue = queue.name.clone();
                self.effects.push(Effect::Paced { queue, holder, until });
                0
            }
        }
    }

    /// Counts a message that is handed out.
    pub(crate) fn count_against_rate(&mut self, queue: &QueueRecord) {
        if queue.options.rate.is_none() {
            return;
        }
        // One that is fetched by its number is handed out whatever the rate; what comes next waits for it.
        let _ = self.rates.allowed(queue, self.now);
        if let Some(bucket) = self.rates.buckets.get_mut(&queue.id) {
            bucket.take();
        }
    }
}
