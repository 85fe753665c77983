//! Dead letters that are handed out, kept in mind in the plainest way: who has which until when, how often each was handed
//! out, and which are set aside.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::dead_letters::lock_key;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// What is known of all dead letters.
#[derive(Default)]
pub(crate) struct DeadLetters {
    letters: BTreeMap<SequenceNumber, Known>,
    /// Every delivery there ever was.
    deliveries: BTreeMap<LockToken, (QueueName, DeliveryRef)>,
    /// How a delivery was settled.
    settled: BTreeMap<LockToken, Settlement>,
    /// Whether one thing is asked in this turn: with several, nobody knows which was first of what was answered and what was
    /// told.
    pub(crate) is_sure: bool,
}

/// What is known of one.
#[derive(Clone, Debug, Default)]
struct Known {
    deliveries: u32,
    deferred: bool,
    /// Under which token somebody has it, and until when.
    held: Option<(LockToken, Timestamp)>,
}

impl DeadLetters {
    /// Whether a command is about dead letters that are handed out.
    pub(crate) fn is_about(&self, command: &Command) -> bool {
        match command {
            Command::ReceiveDeadLetters(_) | Command::ReceiveDeferredDeadLetters(_) => true,
            Command::Settle(verbs::Settle { token, .. }) | Command::Renew(verbs::Renew { token, .. }) => {
                self.deliveries.contains_key(token)
            }
            _ => false,
        }
    }

    /// Hears an answer; says which dead letter was completed, if one was.
    pub(crate) fn record(
        &mut self,
        command: &Command,
        reply: &Reply,
        ledger: &Ledger,
        now: Timestamp,
    ) -> Result<Option<SequenceNumber>, String> {
        match (command, reply) {
            (
                Command::ReceiveDeadLetters(verbs::ReceiveDeadLetters { queue, max, .. }),
                Reply::Receive(Ok(handed)),
            ) => {
                expect(handed.len() <= *max, || format!("I16 more than {max} were handed out"))?;
                let in_order = handed.is_sorted_by_key(|one| (reason_of(&one.record), one.sequence));
                expect(in_order, || format!("I16 they are not in order: {handed:?}"))?;
                handed.iter().try_for_each(|one| self.hand_out((queue, one), false, ledger, now))?;
            }
            (
                Command::ReceiveDeferredDeadLetters(verbs::ReceiveDeferredDeadLetters {
                    queue,
                    sequences,
                    ..
                }),
                Reply::Receive(Ok(handed)),
            ) => {
                let is_all = sequences.iter().all(|asked| handed.iter().any(|one| one.sequence == *asked));
                expect(is_all, || format!("I16 all or none: {sequences:?}, {handed:?}"))?;
                handed.iter().try_for_each(|one| self.hand_out((queue, one), true, ledger, now))?;
            }
            (
                Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement }),
                Reply::Settle(answer),
            ) => {
                let held =
                    DeliveryRef { token: *token, sequence: *sequence, delivery_count: *delivery_count };
                return self.settle(queue, held, settlement, (answer, now));
            }
            (Command::Renew(verbs::Renew { queue, token }), Reply::Settle(answer)) => {
                let held = self.deliveries.get(token).map(|(_, held)| *held).expect("it was handed out");
                let is_held = self.is_held(queue, held, now);
                let is_right = answer.is_ok() == is_held || !self.is_sure;
                expect(is_right, || format!("I16 held: {is_held}, renewed: {answer:?}"))?;
                let until = answer.as_ref().ok().and_then(|settled| settled.locked_until);
                if let (Some(until), Some(known)) = (until, self.letters.get_mut(&held.sequence)) {
                    known.held = Some((*token, until));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn hand_out(
        &mut self,
        (queue, handed): (&QueueName, &LockedMessage),
        is_by_number: bool,
        ledger: &Ledger,
        now: Timestamp,
    ) -> Finding {
        let known = self.letters.entry(handed.sequence).or_default();
        let is_free = known.held.is_none_or(|(_, until)| until <= now) && known.deferred == is_by_number;
        known.deliveries += 1;
        known.held = Some((handed.token, handed.locked_until));
        let dead_letter = dead_letter_of(&handed.record);
        let is_right = dead_letter
            .is_some_and(|letter| letter.deliveries == known.deliveries && letter.deferred == known.deferred);
        expect((is_free && is_right) || !self.is_sure, || {
            format!("I16 it was handed out: {handed:?}, {known:?}")
        })?;
        let lasts = ledger.queues.get(queue).map(|known| known.options.lock);
        let until = lasts.map(|lasts| now + lasts);
        expect(until == Some(handed.locked_until), || format!("I16 it is locked for {lasts:?}: {handed:?}"))?;
        let LockedMessage { token, sequence, .. } = *handed;
        let held = DeliveryRef { token, sequence, delivery_count: handed.record.delivery_count };
        let before = self.deliveries.insert(token, (queue.clone(), held));
        expect(before.is_none(), || format!("I16 the token was given before: {handed:?}"))
    }

    fn is_held(&self, queue: &QueueName, held: DeliveryRef, now: Timestamp) -> bool {
        let is_current =
            |known: &Known| known.held.is_some_and(|(token, until)| token == held.token && now < until);
        self.deliveries.get(&held.token) == Some(&(queue.clone(), held))
            && self.letters.get(&held.sequence).is_some_and(is_current)
    }

    fn settle(
        &mut self,
        queue: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
        (answer, now): (&Result<SettleResult, SettleRefusal>, Timestamp),
    ) -> Result<Option<SequenceNumber>, String> {
        if !self.is_held(queue, held, now) {
            let done = self.settled.get(&held.token);
            let is_again = done == Some(settlement);
            let is_right = answer.is_err() || is_again || !self.is_sure;
            expect(is_right, || format!("I16 {held:?} is not held, and was settled"))?;
            let is_completed = answer.is_ok() && !is_again && matches!(settlement, Settlement::Complete(_));
            return Ok(is_completed.then_some(held.sequence));
        }
        if matches!(settlement, Settlement::DeadLetter { .. }) {
            let refused = Err(SettleRefusal::AlreadyDeadLettered(held.sequence));
            let is_right = *answer == refused || !self.is_sure;
            expect(is_right, || format!("I16 it is one already: {answer:?}"))?;
            return Ok(None);
        }
        expect(answer.is_ok() || !self.is_sure, || format!("I16 {held:?} was refused: {answer:?}"))?;
        if answer.is_err() {
            return Ok(None);
        }
        self.settled.insert(held.token, settlement.clone());
        let known = self.letters.entry(held.sequence).or_default();
        known.held = None;
        match settlement {
            Settlement::Complete(_) => {
                self.letters.remove(&held.sequence);
                return Ok(Some(held.sequence));
            }
            Settlement::Release | Settlement::Postpone { .. } => known.deliveries -= 1,
            Settlement::Defer { .. } => known.deferred = true,
            _ => {}
        }
        Ok(None)
    }

    /// Ends a turn: what is no dead letter any more is forgotten. After one in which several things were asked it is looked up
    /// how it stands.
    pub(crate) fn end_turn(&mut self, rows: &Rows, locks: &LockTable) {
        let dead_letter =
            |key: &MessageKey| rows.messages.get(key).and_then(|message| dead_letter_of(message));
        let is_sure = self.is_sure;
        self.letters.retain(|sequence, known| {
            let keys = rows.queues.keys().map(|queue| MessageKey { queue: *queue, sequence: *sequence });
            let found = keys.into_iter().find_map(|key| Some((key, dead_letter(&key)?)));
            let Some((key, dead_letter)) = found else { return false };
            if !is_sure {
                (known.deliveries, known.deferred) = (dead_letter.deliveries, dead_letter.deferred);
                let lock = locks.of(&lock_key(key.queue, *sequence));
                known.held = known.held.filter(|_| lock.is_some());
            }
            true
        });
    }

    /// A dead letter was put back.
    pub(crate) fn put_back(&mut self, sequence: SequenceNumber) {
        self.letters.remove(&sequence);
    }

    /// The process is lost, and with it every lock.
    pub(crate) fn restart(&mut self) {
        self.letters.values_mut().for_each(|known| known.held = None);
        self.settled.clear();
    }

    /// I15: what is written of dead letters is what was answered of them.
    pub(crate) fn compare(&self, rows: &Rows) -> Finding {
        for (key, message) in &rows.messages {
            let Some(dead_letter) = dead_letter_of(message) else { continue };
            let known = self.letters.get(&key.sequence).cloned().unwrap_or_default();
            let is_same =
                (dead_letter.deliveries, dead_letter.deferred) == (known.deliveries, known.deferred);
            expect(is_same, || format!("I16 message {}: {dead_letter:?}, not {known:?}", key.sequence))?;
        }
        Ok(())
    }
}

fn dead_letter_of(message: &MessageRecord) -> Option<&DeadLetter> {
    match &message.status {
        Status::DeadLettered(dead_letter) => Some(dead_letter),
        _ => None,
    }
}

fn reason_of(message: &MessageRecord) -> Option<&str> {
    dead_letter_of(message).map(|dead_letter| dead_letter.reason.as_str())
}
