//! Writes down how holders ended their deliveries.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::due::Due;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::ledger::fact::Standing;
use crate::engine::tests::simulation::reference::again::plain;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// How long what was settled is answered again.
const REMEMBERED: Duration = Duration::from_secs(60);

impl Ledger {
    pub(crate) fn record_settled(&mut self, command: &Command, reply: &Reply) {
        if self.is_again(command, reply) {
            return;
        }
        match (command, reply) {
            (
                Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement }),
                Reply::Settle(answer),
            ) => {
                let is_done = self.note_settled(
                    queue,
                    *token,
                    Some((*sequence, *delivery_count)),
                    answer.as_ref().map(drop),
                );
                if let (true, Ok(settled)) = (is_done, answer) {
                    self.note_settlement(queue, *token, *sequence, settlement, &settled.receipts);
                    let done = (plain(settlement), settled.receipts.clone(), self.now);
                    self.done.insert((*token, *sequence, *delivery_count), done);
                }
            }
            (Command::CompleteAll(verbs::CompleteAll { queue, deliveries }), Reply::CompleteAll(answers)) => {
                for (held, answer) in deliveries.iter().zip(answers) {
                    let out = Some((held.sequence, held.delivery_count));
                    let complete = Settlement::Complete(CompletionCommand::default());
                    if answer.is_ok() && self.is_done_already(queue, *held, &complete, &[]) {
                        continue;
                    }
                    if self.note_settled(queue, held.token, out, answer.as_ref().map(drop)) {
                        self.note_completed(queue, held.token, held.sequence);
                        let done = (complete, Vec::new(), self.now);
                        self.done.insert((held.token, held.sequence, held.delivery_count), done);
                    }
                }
            }
            // The run goes on with a later message than the one that is named.
            (
                Command::SettleRun(verbs::SettleRun { token, settlement, .. }),
                Reply::Settle(Err(SettleRefusal::AlreadySettled { .. })),
            ) if settlement.first.is_some() && settlement.first != self.first_out(token) => {}
            (Command::SettleRun(verbs::SettleRun { queue, token, settlement }), Reply::Settle(answer)) => {
                let is_done = self.note_settled(queue, *token, None, answer.as_ref().map(drop));
                if let (true, Ok(settled)) = (is_done, answer) {
                    self.note_run(queue, *token, settlement, &settled.receipts);
                    let done = (settlement.clone(), settled.receipts.clone(), self.now);
                    self.done_runs.insert(*token, done);
                }
            }
            (Command::Renew(verbs::Renew { queue, token }), Reply::Settle(answer)) => {
                self.note_settled(queue, *token, None, answer.as_ref().map(drop));
                if let Ok(Some(until)) = answer.as_ref().map(|settled| settled.locked_until) {
                    let lock = self.queues.get(queue).map(|known| known.options.lock);
                    let expected_until = lock.map(|lock| self.now + lock);
                    self.facts.push(Fact::Renewed { locked_until: until, expected_until });
                    self.holds.entry(*token).and_modify(|hold| hold.until = until);
                }
            }
            (Command::CloseWorkflow(verbs::CloseWorkflow { queue, token }), Reply::Settle(answer)) => {
                if self.note_settled(queue, *token, None, answer.as_ref().map(drop))
                    && let Some(hold) = self.holds.remove(token)
                {
                    hold.out.iter().for_each(|(sequence, _)| self.uncount(*sequence, hold.is_unsure));
                }
            }
            (
                Command::SetWorkflowState(verbs::SetWorkflowState { queue, token, .. })
                | Command::SettleApart(verbs::SettleApart { queue, token }),
                Reply::Settle(answer),
            ) => {
                self.note_settled(queue, *token, None, answer.as_ref().map(drop));
            }
            _ => {}
        }
    }

    /// The first message of a run that is not settled.
    fn first_out(&self, token: &LockToken) -> Option<SequenceNumber> {
        let hold = self.holds.get(token)?;
        hold.out.first().map(|(sequence, _)| *sequence)
    }

    /// Whether a settlement was done before, and is answered as it was.
    fn is_again(&self, command: &Command, reply: &Reply) -> bool {
        match (command, reply) {
            (
                Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement }),
                Reply::Settle(Ok(settled)),
            ) => {
                let held =
                    DeliveryRef { token: *token, sequence: *sequence, delivery_count: *delivery_count };
                self.is_done_already(queue, held, settlement, &settled.receipts)
            }
            (
                Command::SettleRun(verbs::SettleRun { queue, token, settlement }),
                Reply::Settle(Ok(settled)),
            ) => {
                let hold = self.holds.get(token).filter(|hold| hold.queue == *queue && self.now < hold.until);
                let is_left =
                    settlement.first.is_some() && hold.and(self.first_out(token)) == settlement.first;
                let done = self.done_runs.get(token).filter(|_| !is_left);
                done.is_some_and(|(asked, receipts, at)| {
                    asked == settlement && *receipts == settled.receipts && self.now < *at + REMEMBERED
                })
            }
            _ => false,
        }
    }

    fn is_done_already(
        &self,
        queue: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
        receipts: &[Receipt],
    ) -> bool {
        let DeliveryRef { token, sequence, delivery_count } = held;
        let is_void = self.standing(queue, token, Some((sequence, delivery_count))) == Standing::Void;
        let done = self.done.get(&(token, sequence, delivery_count)).filter(|_| is_void);
        done.is_some_and(|(asked, answered, at)| {
            *asked == plain(settlement) && answered == receipts && self.now < *at + REMEMBERED
        })
    }

    fn note_settled(
        &mut self,
        queue: &QueueName,
        token: LockToken,
        out: Option<(SequenceNumber, u32)>,
        answer: Result<(), &SettleRefusal>,
    ) -> bool {
        let standing = self.standing(queue, token, out);
        // A run is also refused because it has not as many messages.
        let is_lost = match answer {
            Err(
                SettleRefusal::LockLost | SettleRefusal::AlreadySettled { .. } | SettleRefusal::QueueNotFound,
            ) => true,
            Err(SettleRefusal::MessageNotFound(_)) => out.is_some(),
            _ => false,
        };
        let is_done = answer.is_ok();
        self.facts.push(Fact::Settled { standing, is_done, is_lost });
        is_done
    }

    fn note_settlement(
        &mut self,
        queue: &QueueName,
        token: LockToken,
        sequence: SequenceNumber,
        settlement: &Settlement,
        receipts: &[Receipt],
    ) {
        match settlement {
            Settlement::Complete(completion) => {
                // What it sends was judged before anything was changed.
                self.note_completion(completion, receipts);
                self.note_completed(queue, token, sequence);
            }
            Settlement::Abandon { retry, .. } => {
                let due = self.due_of(queue, sequence, *retry);
                self.put_off(sequence, due, false);
            }
            Settlement::Defer { until, .. } => {
                let due = match *until {
                    DeferralEnd::ByConsumer => Due::engine(Timestamp::MAX),
                    DeferralEnd::After(delay) => Due::engine(self.now + delay),
                    DeferralEnd::At(at) => Due::wall(at),
                };
                match self.is_within_maximum(queue, sequence) {
                    true => self.put_off(sequence, Some(due), true),
                    // It may have been set aside before, and is exhausted; or the maximum was higher, and it is not.
                    false => drop(self.entries.entry(sequence).and_modify(|entry| {
                        (entry.not_before, entry.is_excused) = (None, true);
                    })),
                }
                self.note_kept(queue, sequence);
            }
            Settlement::DeadLetter { .. } => {}
            Settlement::Release => self.uncount(sequence, false),
            Settlement::Suspect { retry, .. } => self.suspect(queue, sequence, *retry),
            Settlement::Postpone { retry, .. } => {
                let due = self.due_of(queue, sequence, *retry);
                self.uncount(sequence, false);
                self.put_off(sequence, due, false);
            }
        }
        self.take_back(token, sequence, !matches!(settlement, Settlement::Complete(_)));
    }

    /// In a queue that keeps what is deferred, such a message has no time to live any more.
    fn note_kept(&mut self, queue: &QueueName, sequence: SequenceNumber) {
        let keeps = self.queues.get(queue).is_some_and(|known| known.options.keep_deferred);
        let now = self.now;
        if let Some(entry) = self.entries.get_mut(&sequence).filter(|_| keeps) {
            // One that may have been over already was ended by that.
            entry.expires_at = entry.expires_at.filter(|(at, by_wall)| *at <= now || by_wall.is_some());
        }
    }

    fn is_within_maximum(&self, queue: &QueueName, sequence: SequenceNumber) -> bool {
        let max = self.queues.get(queue).map(|known| known.options.delivery_count_max);
        let count = self.entries.get(&sequence).map(|entry| entry.count.1);
        count.zip(max).is_some_and(|(count, max)| count <= max)
    }

    /// It failed with others.
    fn suspect(&mut self, queue: &QueueName, sequence: SequenceNumber, retry: Retry) {
        let due = self.due_of(queue, sequence, retry);
        self.put_off(sequence, due, false);
        self.entries.entry(sequence).and_modify(|entry| entry.may_return = true);
    }

    fn put_off(&mut self, sequence: SequenceNumber, due: Option<Due>, is_asked: bool) {
        let now = ClockInstants { engine: self.now, wall: self.wall };
        if let (Some(entry), Some(due)) = (self.entries.get_mut(&sequence), due) {
            // An instant that has come stays come, although the wall clock is set back later.
            entry.not_before = (!due.is_past(now)).then_some(due);
            entry.is_asked = is_asked;
            entry.is_hidden = false;
            // To set it aside is no failure.
            entry.is_excused |= is_asked;
        }
    }

    fn due_of(&self, queue: &QueueName, sequence: SequenceNumber, retry: Retry) -> Option<Due> {
        match retry {
            Retry::Now => None,
            Retry::After(delay) => Some(Due::engine(self.now + delay)),
            Retry::At(at) => Some(Due::wall(at)),
            Retry::Backoff(entropy) => {
                let count = self.entries.get(&sequence)?.count.1;
                let delay = self.queues.get(queue)?.options.backoff.delay(count, entropy);
                Some(Due::engine(self.now + delay))
            }
        }
    }

    fn note_completed(&mut self, queue: &QueueName, token: LockToken, sequence: SequenceNumber) {
        let ended = self.entries.get(&sequence).and_then(|entry| entry.end);
        self.facts.push(Fact::Completed { sequence, ended });
        self.end(sequence, End::Completed);
        self.take_back(token, sequence, false);
        if let Some(sums) = self.sums(queue) {
            sums.completed += 1;
        }
    }

    fn note_completion(&mut self, completion: &CompletionCommand, receipts: &[Receipt]) {
        let mut receipts = receipts.iter();
        for (queue, messages) in &completion.sends {
            let answered: Vec<Receipt> = receipts.by_ref().take(messages.len()).copied().collect();
            self.note_receipts(queue, messages, &answered);
        }
    }

    fn note_run(
        &mut self,
        queue: &QueueName,
        token: LockToken,
        settlement: &RunSettlement,
        receipts: &[Receipt],
    ) {
        let Some(hold) = self.holds.get(&token).cloned() else { return };
        let RunSettlement { completed, completion, next, keep_rest, first: _ } = settlement;
        let needed = completed + usize::from(next.is_some());
        self.note_completion(completion, receipts);
        for (at, (sequence, _)) in hold.out.iter().enumerate() {
            match next {
                _ if at < *completed => self.note_completed(queue, token, *sequence),
                Some(next) if at < needed => self.note_settlement(queue, token, *sequence, next, &[]),
                Some(Settlement::Suspect { .. }) => {
                    self.suspect(queue, *sequence, Retry::Now);
                    self.take_back(token, *sequence, false);
                }
                _ if *keep_rest => {}
                _ => {
                    self.uncount(*sequence, hold.is_unsure);
                    self.take_back(token, *sequence, hold.is_unsure);
                }
            }
        }
    }
}
