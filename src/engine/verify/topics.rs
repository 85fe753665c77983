//! Topics: each of their subscriptions has its queue, and each queue of a subscription its topic.

use std::collections::BTreeSet;

use crate::engine::store::schema::Topics;
use crate::engine::verify::compare::RowComparison;
use crate::error::Fault;
use crate::id::QueueName;

impl RowComparison<'_, '_> {
    pub(crate) fn compare_topics(&mut self) -> Result<(), Fault> {
        let queues: BTreeSet<&QueueName> = self.ledger.queues.values().map(|queue| &queue.name).collect();
        let mut subscribed = BTreeSet::new();
        for row in self.rows.rows::<Topics>()? {
            let ((), name, topic) = row?;
            self.findings.go_on();
            if topic.name != name {
                self.findings.row::<Topics>(&(), &name, format!("it says that it is topic {}", topic.name));
            }
            if queues.contains(&name) {
                self.findings.row::<Topics>(&(), &name, "a queue has its name");
            }
            for subscription in &topic.subscriptions {
                match QueueName::of_subscription(&name, &subscription.name) {
                    Ok(queue) if queues.contains(&queue) => {
                        subscribed.insert(queue);
                    }
                    _ => {
                        let problem = format!("its subscription {} has no queue", subscription.name);
                        self.findings.row::<Topics>(&(), &name, problem);
                    }
                }
            }
        }
        for queue in queues.into_iter().filter(|queue| queue.subscription().is_some()) {
            if !subscribed.contains(queue) {
                let problem = "it is the queue of a subscription, and no topic has that";
                self.findings.add("queues", format!("queue {queue}"), problem);
            }
        }
        Ok(())
    }
}
