//! Receivers: they take what is offered, settle it well or badly, in time or too late, or forget it.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::output::Output;
use crate::engine::rules::record::Status;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::engine::tests::simulation::client::clients::Delivery;
use crate::engine::tests::simulation::client::sender::workflow_id;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::header::Properties;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// Deliveries one client completes together at most.
const TOGETHER: usize = 3;
/// Settlements that are kept in mind, to be asked again.
const SETTLING_KEPT: usize = 4;
/// A token has neighbours, one for each workflow of a receive; the next token is beyond them.
const NEIGHBOURS: u64 = 2_048;

impl Clients {
    pub(crate) fn receive(&mut self, rows: &Rows, queue: usize) -> Command {
        let name = self.queues[queue].0.clone();
        let (max, token) = (self.random.pick(&[1, 1, 2, 4]), self.token());
        match self.random.below(100) {
            0..60 => Command::Receive(verbs::Receive { queue: name, max, token }),
            60..74 => Command::ReceiveRun(verbs::ReceiveRun { queue: name, max: max + 1, token }),
            74..84 => {
                let mut sequences =
                    vec![self.number(rows, queue, |status| matches!(status, Status::ByConsumer { .. }))];
                if self.random.chance(15) {
                    sequences
                        .push(self.number(rows, queue, |status| matches!(status, Status::ByConsumer { .. })));
                }
                Command::ReceiveDeferred(verbs::ReceiveDeferred { queue: name, sequences, token })
            }
            _ => {
                let workflow = self.random.chance(40).then(|| workflow_id(self.random.below(self.workflows)));
                Command::AcceptWorkflow(verbs::AcceptWorkflow { queue: name, workflow, token })
            }
        }
    }

    /// Does something with a delivery, mostly with one that is still held.
    pub(crate) fn settle(&mut self, ledger: &Ledger, now: Timestamp) -> Option<Command> {
        if self.random.chance(5) && !self.settling.is_empty() {
            let index = self.index(self.settling.len());
            return Some(self.settling[index].clone());
        }
        if self.random.chance(5) && !self.held.is_empty() {
            return Some(self.transact(now));
        }
        let command = self.settle_anew(ledger, now)?;
        if self.settling.len() == SETTLING_KEPT {
            self.settling.remove(0);
        }
        self.settling.push(command.clone());
        Some(command)
    }

    fn settle_anew(&mut self, ledger: &Ledger, now: Timestamp) -> Option<Command> {
        if let Some(Delivery { queue, token, sequence, delivery_count }) = self.giving_back.pop() {
            let settlement = Settlement::Release;
            return Some(Command::Settle(verbs::Settle {
                queue,
                token,
                sequence,
                delivery_count,
                settlement,
            }));
        }
        if self.random.chance(4) && !self.lost.is_empty() {
            let index = self.index(self.lost.len());
            let delivery = self.lost[index].clone();
            return Some(self.settle_one(delivery, now));
        }
        if self.held.is_empty() {
            return None;
        }
        if self.random.chance(3) {
            return Some(self.ask_elsewhere(now));
        }
        let index = if self.random.chance(60) { 0 } else { self.index(self.held.len()) };
        if self.random.chance(8) {
            let Delivery { queue, token, .. } = self.held[index].clone();
            return Some(Command::Renew(verbs::Renew { queue, token }));
        }
        let delivery = self.held[index].clone();
        if self.taken.iter().any(|(_, token)| *token == delivery.token) && self.random.chance(40) {
            let is_of = |held: &mut Delivery| held.token == delivery.token;
            // The first is given back first.
            self.giving_back =
                self.held.extract_if(.., is_of).collect::<Vec<_>>().into_iter().rev().collect();
            return self.settle_anew(ledger, now);
        }
        if self.random.chance(10) {
            return Some(self.complete_together(&delivery.queue));
        }
        let is_run =
            ledger.holds.get(&delivery.token).is_some_and(|hold| hold.out.len() > 1 && !hold.is_unsure);
        if is_run && self.random.chance(40) {
            let out = ledger.holds.get(&delivery.token).map(|hold| hold.out.clone()).unwrap_or_default();
            let first = out.first().map(|(sequence, _)| *sequence);
            return Some(self.settle_run(delivery, (out.len(), first), now));
        }
        self.held.remove(index);
        self.lose(delivery.clone());
        Some(self.settle_one(delivery, now))
    }

    /// Asks some queue, mostly another, for what the holder of a delivery may do.
    fn ask_elsewhere(&mut self, now: Timestamp) -> Command {
        let (index, other) = (self.index(self.held.len()), self.index(self.queues.len()));
        let Delivery { token, sequence, delivery_count, .. } = self.held[index];
        let queue = self.queues[other].0.clone();
        match self.random.below(4) {
            0 => Command::Renew(verbs::Renew { queue, token }),
            1 => Command::SetWorkflowState(verbs::SetWorkflowState { queue, token, state: None }),
            2 => Command::CompleteAll(verbs::CompleteAll {
                queue,
                deliveries: vec![DeliveryRef { token, sequence, delivery_count }],
            }),
            _ => self.settle_one(Delivery { queue, token, sequence, delivery_count }, now),
        }
    }

    /// Keeps a delivery in mind whose time is over.
    fn lose(&mut self, delivery: Delivery) {
        if self.lost.len() == 6 {
            self.lost.remove(0);
        }
        self.lost.push(delivery);
    }

    fn settle_one(&mut self, delivery: Delivery, now: Timestamp) -> Command {
        let Delivery { queue, token, sequence, delivery_count } = delivery;
        let settlement = self.settlement(now);
        Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement })
    }

    fn complete_together(&mut self, queue: &QueueName) -> Command {
        let of_queue = |delivery: &&Delivery| delivery.queue == *queue;
        let some: Vec<Delivery> = self.held.iter().filter(of_queue).take(TOGETHER).cloned().collect();
        self.held.retain(|delivery| !some.contains(delivery));
        let deliveries = some.into_iter().map(|delivery| {
            let Delivery { token, sequence, delivery_count, .. } = delivery;
            DeliveryRef { token, sequence, delivery_count }
        });
        Command::CompleteAll(verbs::CompleteAll { queue: queue.clone(), deliveries: deliveries.collect() })
    }

    /// Settles what it holds of any queues and sends, all or nothing.
    fn transact(&mut self, now: Timestamp) -> Command {
        let mut steps = Vec::new();
        for _ in 0..=self.index(TOGETHER) {
            if self.held.is_empty() {
                break;
            }
            let index = self.index(self.held.len());
            let delivery = self.held.remove(index);
            self.lose(delivery.clone());
            steps.push(self.settle_one(delivery, now));
        }
        if self.random.chance(60) {
            let (queue, place) = (self.index(self.queues.len()), self.index(steps.len() + 1));
            let (name, messages) = (self.queues[queue].0.clone(), self.messages(queue, now));
            steps.insert(place, Command::Send(verbs::Send { queue: name, messages }));
        }
        if self.random.chance(10) && !self.lost.is_empty() {
            let index = self.index(self.lost.len());
            let delivery = self.lost[index].clone();
            steps.push(self.settle_one(delivery, now));
        }
        let steps = steps.into_iter().filter_map(Command::into_step).collect();
        Command::Transact(verbs::Transact { steps })
    }

    fn settle_run(
        &mut self,
        delivery: Delivery,
        (of_run, first): (usize, Option<SequenceNumber>),
        now: Timestamp,
    ) -> Command {
        let Delivery { queue, token, .. } = delivery;
        let completed = self.index(of_run + 1);
        let next = self.random.chance(50).then(|| self.failure(now));
        let keep_rest = self.random.chance(30);
        let completion = self.completion(now);
        if !keep_rest {
            self.held.retain(|delivery| delivery.token != token);
        }
        let settlement = RunSettlement { completed, completion, next, keep_rest, first };
        Command::SettleRun(verbs::SettleRun { queue, token, settlement })
    }

    fn settlement(&mut self, now: Timestamp) -> Settlement {
        match self.random.chance(65) {
            true => Settlement::Complete(self.completion(now)),
            false => self.failure(now),
        }
    }

    fn completion(&mut self, now: Timestamp) -> CompletionCommand {
        let state = match self.random.below(12) {
            0 => StateChange::Set(bytes::Bytes::from_static(b"state")),
            1 => StateChange::Clear,
            _ => StateChange::Keep,
        };
        let sends = match self.random.chance(12) {
            true => {
                let queue = self.index(self.queues.len());
                vec![(self.queues[queue].0.clone(), self.messages(queue, now))]
            }
            false => Vec::new(),
        };
        CompletionCommand { state, sends }
    }

    fn failure(&mut self, now: Timestamp) -> Settlement {
        let properties = Properties::new();
        match self.random.below(20) {
            of @ 0..9 => {
                let retry = match self.random.below(5) {
                    0..2 => Retry::Now,
                    2 => Retry::After(self.delay()),
                    3 => Retry::At(now + self.delay()),
                    _ => Retry::Backoff(self.random.below(1 << 40)),
                };
                match of {
                    0 | 1 => {
                        Settlement::Suspect { retry, reason: "gone".to_owned(), output: Output::default() }
                    }
                    _ => Settlement::Abandon {
                        retry,
                        reason: "busy".to_owned(),
                        properties,
                        output: Output::default(),
                    },
                }
            }
            9..14 => {
                let until = match self.random.below(10) {
                    0..3 => DeferralEnd::At(now + self.delay()),
                    3..6 => DeferralEnd::After(self.delay()),
                    _ => DeferralEnd::ByConsumer,
                };
                Settlement::Defer { until, properties }
            }
            14..16 => {
                Settlement::DeadLetter { reason: "bad".to_owned(), description: String::new(), properties }
            }
            // How its delay grows is known to the attempts, which no model keeps.
            16 => Settlement::Postpone { retry: Retry::After(self.delay()), reason: "full".to_owned() },
            _ => Settlement::Release,
        }
    }

    /// Goes on with a workflow that somebody has accepted.
    pub(crate) fn use_taken(&mut self, rows: &Rows) -> Option<Command> {
        if self.taken.is_empty() {
            return None;
        }
        let index = self.index(self.taken.len());
        let (queue, token) = self.taken[index].clone();
        Some(match self.random.below(10) {
            0..6 => Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow {
                queue,
                token,
                max: self.random.pick(&[1, 2, 3]),
            }),
            6 => {
                let at = self.queues.iter().position(|(name, _)| *name == queue).unwrap_or(0);
                let sequence = self.number(rows, at, |status| matches!(status, Status::ByConsumer { .. }));
                Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow {
                    queue,
                    token,
                    sequences: vec![sequence],
                })
            }
            7 => {
                let state = self.random.chance(70).then(|| bytes::Bytes::from_static(b"taken"));
                Command::SetWorkflowState(verbs::SetWorkflowState { queue, token, state })
            }
            8 if self.random.chance(50) => Command::SettleApart(verbs::SettleApart { queue, token }),
            8 => Command::Renew(verbs::Renew { queue, token }),
            _ => {
                self.taken.remove(index);
                Command::CloseWorkflow(verbs::CloseWorkflow { queue, token })
            }
        })
    }

    pub(crate) fn delay(&mut self) -> Duration {
        Duration::from_millis(self.random.pick(&[0, 1, 999, 1_000, 1_001, 2_000, 5_000, 10_000]))
    }

    pub(crate) fn token(&mut self) -> LockToken {
        self.tokens += NEIGHBOURS;
        let mut chance = [0; 12];
        chance[4..].copy_from_slice(&self.tokens.to_be_bytes());
        LockToken::new(self.epoch, chance)
    }
}
