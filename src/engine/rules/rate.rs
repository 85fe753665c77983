//! Rates of queues: what a command does with them.

use crate::engine::rules::effect::Effect;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::step::Step;
use crate::token::LockToken;

impl Step<'_> {
    /// How many messages the queue may hand out now. When that is none, whoever asked is served again when there is one: the
    /// receivers of the queue, or the holder of a workflow that was accepted whole.
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
        self.rates.take(queue.id);
    }
}
