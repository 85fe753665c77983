//! Writes down how holders ended their deliveries.

use crate::clock::Timestamp;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Completion;
use crate::engine::rules::command::Receipt;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::simulation::ledger::Ledger;
use crate::engine::simulation::ledger::entry::End;
use crate::engine::simulation::ledger::fact::Fact;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

impl Ledger {
    pub(crate) fn hear_settled(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (
                Command::Settle { queue, token, sequence, delivery_count, settlement },
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
                }
            }
            (Command::CompleteAll { queue, deliveries }, Reply::CompleteAll(answers)) => {
                for (held, answer) in deliveries.iter().zip(answers) {
                    let out = Some((held.sequence, held.delivery_count));
                    if self.note_settled(queue, held.token, out, answer.as_ref().map(drop)) {
                        self.note_completed(queue, held.token, held.sequence);
                    }
                }
            }
            (Command::SettleRun { queue, token, settlement }, Reply::Settle(answer)) => {
                let is_done = self.note_settled(queue, *token, None, answer.as_ref().map(drop));
                if let (true, Ok(settled)) = (is_done, answer) {
                    self.note_run(queue, *token, settlement, &settled.receipts);
                }
            }
            (Command::Renew { queue, token }, Reply::Settle(answer)) => {
                self.note_settled(queue, *token, None, answer.as_ref().map(drop));
                if let Ok(Some(until)) = answer.as_ref().map(|settled| settled.locked_until) {
                    let lock = self.queues.get(queue).map(|known| known.options.lock);
                    let expected_until = lock.map(|lock| self.now + lock);
                    self.facts.push(Fact::Renewed { locked_until: until, expected_until });
                    self.holds.entry(*token).and_modify(|hold| hold.until = until);
                }
            }
            (Command::CloseTaken { queue, token }, Reply::Settle(answer)) => {
                if self.note_settled(queue, *token, None, answer.as_ref().map(drop))
                    && let Some(hold) = self.holds.remove(token)
                {
                    hold.out.iter().for_each(|(sequence, _)| self.uncount(*sequence, hold.is_unsure));
                }
            }
            (
                Command::SetTakenState { queue, token, .. } | Command::SettleApart { queue, token },
                Reply::Settle(answer),
            ) => {
                self.note_settled(queue, *token, None, answer.as_ref().map(drop));
            }
            _ => {}
        }
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
            Err(SettleRefusal::LockLost | SettleRefusal::QueueNotFound) => true,
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
                self.put_off(sequence, Some(until.unwrap_or(Timestamp::MAX)), true)
            }
            Settlement::DeadLetter { .. } => {}
            Settlement::Release => self.uncount(sequence, false),
        }
        self.take_back(token, sequence, !matches!(settlement, Settlement::Complete(_)));
    }

    fn put_off(&mut self, sequence: SequenceNumber, due: Option<Timestamp>, is_asked: bool) {
        if let (Some(entry), Some(due)) = (self.entries.get_mut(&sequence), due) {
            entry.not_before = Some(due);
            entry.is_asked = is_asked;
            entry.is_hidden = false;
            // To set it aside is no failure.
            entry.is_excused |= is_asked;
        }
    }

    fn due_of(&self, queue: &QueueName, sequence: SequenceNumber, retry: Retry) -> Option<Timestamp> {
        match retry {
            Retry::Now => None,
            Retry::After(delay) => Some(self.now + delay),
            Retry::At(at) => Some(at),
            Retry::Backoff(entropy) => {
                let count = self.entries.get(&sequence)?.count.1;
                Some(self.now + self.queues.get(queue)?.options.backoff.delay(count, entropy))
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

    fn note_completion(&mut self, completion: &Completion, receipts: &[Receipt]) {
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
        let RunSettlement { completed, completion, next, keep_rest } = settlement;
        let needed = completed + usize::from(next.is_some());
        self.note_completion(completion, receipts);
        for (at, (sequence, _)) in hold.out.iter().enumerate() {
            match next {
                _ if at < *completed => self.note_completed(queue, token, *sequence),
                Some(next) if at < needed => self.note_settlement(queue, token, *sequence, next, &[]),
                _ if *keep_rest => {}
                _ => {
                    self.uncount(*sequence, hold.is_unsure);
                    self.take_back(token, *sequence, hold.is_unsure);
                }
            }
        }
    }
}
