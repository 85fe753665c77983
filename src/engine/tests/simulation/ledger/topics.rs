//! What was answered of topics.

use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::reference::topics::as_taken;
use crate::engine::tests::simulation::reference::topics::shared_out;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::limits;

impl Ledger {
    /// A topic was changed: its subscriptions are queues.
    pub(crate) fn note_topic(&mut self, topic: &QueueName, change: &TopicChange) {
        match change {
            TopicChange::Subscribe { name, options, .. } => {
                let queue = QueueName::of_subscription(topic, name).expect("a plain name");
                self.note_queue(&queue, options);
            }
            TopicChange::Delete => {
                let is_of = |queue: &&QueueName| queue.subscription().is_some_and(|(of, _)| of == *topic);
                let gone: Vec<QueueName> = self.queues.keys().filter(is_of).cloned().collect();
                gone.iter().for_each(|queue| self.forget_queue(queue));
                self.published.retain(|(of, _), _| of != topic);
            }
            TopicChange::Create | TopicChange::SetRules { .. } | TopicChange::Put { .. } => {}
        }
    }

    /// A message was sent to a topic.
    pub(crate) fn note_published(&mut self, fanout: &Fanout, receipts: &[Receipt]) {
        for (queue, copies, receipts) in shared_out(fanout, receipts) {
            let copies = as_taken(self.queues.get(queue).map(|known| &known.options), copies);
            self.note_receipts(queue, &copies, receipts);
        }
    }

    /// The same under a key: only the first time something was stored.
    pub(crate) fn note_published_once(
        &mut self,
        topic: &QueueName,
        key: &IdempotencyKey,
        fanout: &Fanout,
        copies: &[(QueueName, Receipt)],
    ) {
        let of = (topic.clone(), key.as_str().to_owned());
        if self.published.get(&of).is_some_and(|until| self.now < *until) {
            return;
        }
        self.published.insert(of, self.now + limits::IDEMPOTENCY_WINDOW);
        let receipts: Vec<Receipt> = copies.iter().map(|(_, receipt)| *receipt).collect();
        self.note_published(fanout, &receipts);
    }
}
