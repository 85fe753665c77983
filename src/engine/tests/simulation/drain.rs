//! The end of a simulation: nothing fails any more, somebody looks after everything, and all of it comes to its end.

use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Operation;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::world::World;
use crate::id::QueueName;

/// In so many rounds something must have come to its end: a gap that is given up, a retry, a resumed workflow.
const ROUNDS: usize = 4;
/// How long a round takes: as long as the longest lock, delay or wait there is.
const ROUND_MS: u64 = 10_001;
/// More than there are messages.
const MANY: usize = 1_000;

impl World {
    /// L1: once nothing fails any more, every message ends within bounded time, or is a dead letter.
    pub(crate) fn settle_everything(&mut self) -> Finding {
        // The wall clock may have been set back by days: whatever waits for an instant of it comes due first.
        let of_wall = self.plain.rows.reminders.keys().map(|(due, _, _)| *due).filter(|due| due.is_of_wall());
        let waits = of_wall.map(|due| due.at().since(self.plain.now.wall)).max().unwrap_or_default();
        self.pass(u64::try_from(waits.as_millis()).unwrap_or(0));
        let (mut fewest, mut rounds) = (usize::MAX, 0);
        while rounds < ROUNDS {
            self.pass(ROUND_MS);
            let asked = self.look_after_everything();
            self.step_on(asked)?;
            // Never again is so much out at once as in the first round.
            let is_first = fewest == usize::MAX;
            if is_first {
                self.look_thoroughly()?;
            }
            let completions = self.complete_everything();
            self.step_on(completions)?;
            let left = self.unsettled().count();
            rounds = if left < fewest { 0 } else { rounds + 1 };
            fewest = fewest.min(left);
            if left == 0 {
                return self.look_thoroughly();
            }
        }
        let first = self.unsettled().next();
        Err(format!("L1 everything comes to its end: {fewest} messages do not, the first is {first:?}"))
    }

    fn unsettled(&self) -> impl Iterator<Item = (&MessageKey, &MessageRecord)> {
        let messages = self.plain.rows.messages.iter().map(|(key, message)| (key, &**message));
        messages.filter(|(_, message)| !matches!(message.status, Status::DeadLettered(_)))
    }

    fn name_of(&self, queue: QueueId) -> QueueName {
        self.plain.rows.queues[&queue].name.clone()
    }

    /// Resumes what is held, gives up what is missing, fetches what was set aside, and takes all that is offered.
    fn look_after_everything(&mut self) -> Vec<Command> {
        let mut asked = self.operations();
        let is_aside = |status: &Status| matches!(status, Status::ByConsumer { .. });
        let aside = self.plain.rows.messages.iter().filter(|(_, message)| is_aside(&message.status));
        let aside: Vec<MessageKey> = aside.map(|(key, _)| *key).collect();
        for key in aside {
            let (queue, token) = (self.name_of(key.queue), self.clients.token());
            asked.push(Command::ReceiveDeferred(verbs::ReceiveDeferred {
                queue,
                sequences: vec![key.sequence],
                token,
            }));
        }
        let queues: Vec<QueueId> = self.plain.rows.queues.keys().copied().collect();
        for queue in queues {
            let queue = self.name_of(queue);
            for _ in 0..self.clients.workflows {
                let token = self.clients.token();
                asked.push(Command::ReceiveRun(verbs::ReceiveRun { queue: queue.clone(), max: MANY, token }));
            }
            asked.push(Command::Receive(verbs::Receive { queue, max: MANY, token: self.clients.token() }));
        }
        asked
    }

    fn operations(&self) -> Vec<Command> {
        let mut asked = Vec::new();
        for (key, record) in &self.plain.rows.workflows {
            let operation = match (record.rare.holds.is_empty(), record.early) {
                (false, _) => Operation::Resume { redrive: false },
                (true, 1..) => Operation::VoidGap { range: None },
                (true, 0) => continue,
            };
            if let Some(workflow) = key.stream.workflow_id().cloned() {
                asked.push(Command::Operate(verbs::Operate {
                    queue: self.name_of(key.queue),
                    workflow,
                    operation,
                }));
            }
        }
        asked
    }

    /// Completes everything that anybody has, in the order in which it was handed out.
    fn complete_everything(&mut self) -> Vec<Command> {
        let mut asked = Vec::new();
        for (name, _) in self.clients.queues.clone() {
            let of_queue = self.clients.held.iter().filter(|delivery| delivery.queue == name);
            let deliveries: Vec<DeliveryRef> = of_queue
                .map(|delivery| DeliveryRef {
                    token: delivery.token,
                    sequence: delivery.sequence,
                    delivery_count: delivery.delivery_count,
                })
                .collect();
            asked.push(Command::CompleteAll(verbs::CompleteAll { queue: name, deliveries }));
        }
        self.clients.held.clear();
        asked
    }
}
