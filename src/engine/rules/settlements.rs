//! The settlements of the last minute, in memory: one that is asked again is answered as it was, and another one is told
//! what was done. Whoever asked and did not hear the answer can so ask again.
//!
//! Every settlement is noted, and hardly any is asked for again: they stand in the order in which they were noted, and are
//! indexed by what they were of only once somebody asks.

use std::collections::VecDeque;

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::clock::Timestamp;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::record::QueueId;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::id::SequenceNumber;
use crate::limits;
use crate::lookup::Lookup;
use crate::token::LockToken;

/// What a settlement was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
    /// One delivery.
    Delivery(LockToken, SequenceNumber, u32),
    /// The run of a token, the last time.
    Run(LockToken),
}

/// A settlement that is remembered.
#[derive(Clone, Debug)]
struct PastSettlement {
    subject: Subject,
    queue: QueueId,
    how: SettledHow,
    /// Whether what was said of the subject is over.
    is_forgotten: bool,
    exchange: Exchange,
    until: Timestamp,
}

/// A settlement's request and answer. What nearly all are is told without more, so that a minute of them is small.
#[derive(Clone, Debug)]
enum Exchange {
    /// It was settled as one of a run.
    OfRun,
    /// A completion that sends and sets nothing, and an answer that says nothing.
    Plain,
    Other(Box<OtherExchange>),
}

#[derive(Clone, Debug)]
struct OtherExchange {
    /// Of the request.
    digest: u64,
    /// Of a run, the message it began with.
    first: Option<SequenceNumber>,
    reply: SettleResult,
}

impl Exchange {
    fn new(digest: u64, first: Option<SequenceNumber>, reply: &SettleResult) -> Exchange {
        match digest == PLAIN && first.is_none() && *reply == SettleResult::default() {
            true => Exchange::Plain,
            false => Exchange::Other(Box::new(OtherExchange { digest, first, reply: reply.clone() })),
        }
    }

    fn digest(&self) -> Option<u64> {
        match self {
            Exchange::OfRun => None,
            Exchange::Plain => Some(PLAIN),
            Exchange::Other(other) => Some(other.digest),
        }
    }

    fn first(&self) -> Option<SequenceNumber> {
        match self {
            Exchange::Other(other) => other.first,
            Exchange::OfRun | Exchange::Plain => None,
        }
    }

    fn reply(&self) -> SettleResult {
        match self {
            Exchange::Other(other) => other.reply.clone(),
            Exchange::OfRun | Exchange::Plain => SettleResult::default(),
        }
    }
}

/// What was settled lately.
#[derive(Debug, Default)]
pub(crate) struct Settlements {
    /// The oldest first. The number of the first is `dropped`, and each has the next.
    in_order: VecDeque<PastSettlement>,
    /// How many have been dropped, because they were too old or too many.
    dropped: u64,
    /// The number of the last settlement of each subject, of those before `indexed`.
    index: Lookup<Subject, u64>,
    indexed: u64,
    /// The first that is answered again. In a transaction that is the first that it has noted itself: what it does beside
    /// would be done twice.
    answered_from: u64,
    /// What is to be taken back, while a trial runs.
    trial: Option<SettlementTrial>,
}

/// What a trial has to take back.
#[derive(Debug)]
struct SettlementTrial {
    /// How many there were before.
    noted: u64,
    /// Those of them that were forgotten.
    forgotten: Vec<u64>,
    /// What the index said before of the subjects of later ones.
    indexed: Vec<(Subject, Option<u64>)>,
}

impl Settlements {
    /// Notes that a delivery was settled alone.
    pub(crate) fn note(
        &mut self,
        (queue, now): (QueueId, Timestamp),
        held: DeliveryRef,
        (how, digest): (SettledHow, u64),
        reply: &SettleResult,
    ) {
        self.keep((queue, now), subject_of(held), how, Exchange::new(digest, None, reply));
    }

    /// Notes that a delivery was settled as one of a run.
    pub(crate) fn note_of_run(&mut self, at: (QueueId, Timestamp), held: DeliveryRef, how: SettledHow) {
        self.keep(at, subject_of(held), how, Exchange::OfRun);
    }

    /// Notes how a run was settled, from this message on.
    pub(crate) fn note_run(
        &mut self,
        at: (QueueId, Timestamp),
        (token, first): (LockToken, SequenceNumber),
        (how, digest): (SettledHow, u64),
        reply: &SettleResult,
    ) {
        self.keep(at, Subject::Run(token), how, Exchange::new(digest, Some(first), reply));
    }

    /// Begins a transaction: what was settled before is told from now on, and not answered again.
    pub(crate) fn begin_transaction(&mut self) {
        self.answered_from = self.noted();
    }

    /// Ends a transaction.
    pub(crate) fn end_transaction(&mut self) {
        self.answered_from = 0;
    }

    /// Begins a trial: every change from now on is taken back by [`Settlements::roll_back`].
    pub(crate) fn begin_trial(&mut self) {
        self.trial =
            Some(SettlementTrial { noted: self.noted(), forgotten: Vec::new(), indexed: Vec::new() });
    }

    /// Ends a trial: what is remembered is what was remembered when it began.
    pub(crate) fn roll_back(&mut self) {
        let Some(SettlementTrial { noted, forgotten, indexed }) = self.trial.take() else { return };
        for (subject, before) in indexed.into_iter().rev() {
            match before {
                Some(number) => drop(self.index.insert(subject, number)),
                None => drop(self.index.remove(&subject)),
            }
        }
        self.indexed = self.indexed.min(noted);
        self.in_order.truncate(place(noted, self.dropped));
        for number in forgotten {
            self.in_order[place(number, self.dropped)].is_forgotten = false;
        }
    }

    fn keep(
        &mut self,
        (queue, now): (QueueId, Timestamp),
        subject: Subject,
        how: SettledHow,
        exchange: Exchange,
    ) {
        let until = now + limits::SETTLEMENTS_KEPT_FOR;
        while self.trial.is_none()
            && let Some(first) = self.in_order.front()
            && (first.until <= now || self.in_order.len() >= limits::SETTLEMENTS_KEPT)
        {
            self.drop_first();
        }
        let is_forgotten = false;
        self.in_order.push_back(PastSettlement { subject, queue, how, is_forgotten, exchange, until });
    }

    /// Drops the oldest until so many more have room: what is done on trial and then in earnest finds the same both times.
    pub(crate) fn make_room(&mut self, more: usize) {
        assert!(self.trial.is_none(), "a trial drops nothing");
        while self.in_order.len() + more > limits::SETTLEMENTS_KEPT {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some(first) = self.in_order.pop_front() else { return };
        if self.dropped < self.indexed && self.index.get(&first.subject) == Some(&self.dropped) {
            self.index.remove(&first.subject);
        }
        self.dropped += 1;
        self.indexed = self.indexed.max(self.dropped);
    }

    /// A delivery that was given back is handed out anew under the same token and with the same count: what was said of it
    /// is over.
    pub(crate) fn forget(&mut self, held: DeliveryRef) {
        let Some(number) = self.find(&subject_of(held)) else { return };
        let was_forgotten =
            std::mem::replace(&mut self.in_order[place(number, self.dropped)].is_forgotten, true);
        if let Some(trial) = self.trial.as_mut().filter(|trial| number < trial.noted && !was_forgotten) {
            trial.forgotten.push(number);
        }
    }

    /// The answer to a settlement of a delivery that is not held any more, if it was settled lately.
    pub(crate) fn answer(
        &mut self,
        at: (QueueId, Timestamp),
        held: DeliveryRef,
        settlement: &Settlement,
    ) -> Option<Result<SettleResult, SettleRefusal>> {
        let answered_from = self.answered_from;
        let (number, known) = self.known(at, &subject_of(held))?;
        Some(match number >= answered_from {
            true => known.answer(|| digest_of(settlement)),
            false => Err(SettleRefusal::AlreadySettled { how: known.how }),
        })
    }

    /// The answer to a settlement of a run from `first` on, if not given of what was left, that was settled lately.
    pub(crate) fn answer_run(
        &mut self,
        at: (QueueId, Timestamp),
        token: LockToken,
        settlement: &RunSettlement,
    ) -> Option<Result<SettleResult, SettleRefusal>> {
        let (_, known) = self.known(at, &Subject::Run(token))?;
        let is_there = settlement.first.is_none() || settlement.first == known.exchange.first();
        Some(match is_there {
            true => known.answer(|| digest_of_run(settlement)),
            false => Err(SettleRefusal::AlreadySettled { how: known.how }),
        })
    }

    /// The last settlement of a subject, with its number, if it still counts.
    fn known(
        &mut self,
        (queue, now): (QueueId, Timestamp),
        subject: &Subject,
    ) -> Option<(u64, &PastSettlement)> {
        let number = self.find(subject)?;
        let known = &self.in_order[place(number, self.dropped)];
        (known.queue == queue && now < known.until && !known.is_forgotten).then_some((number, known))
    }

    /// The number of the last settlement of a subject. What has been noted since somebody asked last is indexed first.
    fn find(&mut self, subject: &Subject) -> Option<u64> {
        for known in self.in_order.iter().skip(place(self.indexed, self.dropped)) {
            let before = self.index.insert(known.subject, self.indexed);
            if let Some(trial) = self.trial.as_mut().filter(|trial| self.indexed >= trial.noted) {
                trial.indexed.push((known.subject, before));
            }
            self.indexed += 1;
        }
        self.index.get(subject).copied()
    }

    /// How many have ever been noted.
    fn noted(&self) -> u64 {
        self.dropped + self.in_order.len() as u64
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }
}

/// Where the settlement with a number stands, when so many before it have been dropped.
fn place(number: u64, dropped: u64) -> usize {
    usize::try_from(number - dropped).expect("as many as are remembered fit into memory")
}

impl PastSettlement {
    fn answer(&self, digest: impl FnOnce() -> u64) -> Result<SettleResult, SettleRefusal> {
        match self.exchange.digest().is_some_and(|known| known == digest()) {
            true => Ok(self.exchange.reply()),
            false => Err(SettleRefusal::AlreadySettled { how: self.how }),
        }
    }
}

fn subject_of(held: DeliveryRef) -> Subject {
    Subject::Delivery(held.token, held.sequence, held.delivery_count)
}

impl Settlement {
    /// How a delivery has ended that was settled so.
    pub(crate) fn how(&self) -> SettledHow {
        match self {
            Settlement::Complete(_) => SettledHow::Completed,
            Settlement::Abandon { .. } | Settlement::Suspect { .. } | Settlement::Postpone { .. } => {
                SettledHow::Abandoned
            }
            Settlement::Defer { .. } => SettledHow::Deferred,
            Settlement::DeadLetter { .. } => SettledHow::DeadLettered,
            Settlement::Release => SettledHow::Released,
        }
    }

    /// The same without the chance in it, which is another each time.
    fn without_chance(&self) -> Option<Settlement> {
        let mut settlement = match self {
            Settlement::Abandon { retry: Retry::Backoff(_), .. }
            | Settlement::Suspect { retry: Retry::Backoff(_), .. }
            | Settlement::Postpone { retry: Retry::Backoff(_), .. } => self.clone(),
            _ => return None,
        };
        if let Settlement::Abandon { retry, .. }
        | Settlement::Suspect { retry, .. }
        | Settlement::Postpone { retry, .. } = &mut settlement
        {
            *retry = Retry::Backoff(0);
        }
        Some(settlement)
    }
}

impl RunSettlement {
    /// How the first message of the run has ended.
    pub(crate) fn how(&self) -> SettledHow {
        match &self.next {
            _ if self.completed > 0 => SettledHow::Completed,
            Some(next) => next.how(),
            None => SettledHow::Released,
        }
    }
}

/// What stands for the hash of a completion that sends and sets nothing, as most do.
pub(crate) const PLAIN: u64 = 1;

/// What makes a settlement of a delivery recognisable.
pub(crate) fn digest_of(settlement: &Settlement) -> u64 {
    match settlement {
        Settlement::Complete(completion) if *completion == CompletionCommand::default() => PLAIN,
        other => hash(other.without_chance().as_ref().unwrap_or(other)),
    }
}

/// What makes a settlement of a run recognisable; not where it begins, which need not be said.
pub(crate) fn digest_of_run(settlement: &RunSettlement) -> u64 {
    let RunSettlement { completed, completion, next, keep_rest, first: _ } = settlement;
    let next = next.as_ref().map(|next| next.without_chance().unwrap_or_else(|| next.clone()));
    hash(&(completed, completion, next, keep_rest))
}

/// Hashes the bytes of a value as they are written, because what is sent may be large.
fn hash(value: &impl Serialize) -> u64 {
    postcard::serialize_with_flavor(value, Hasher(Xxh3::new())).expect("a settlement has bytes")
}

struct Hasher(Xxh3);

impl postcard::ser_flavors::Flavor for Hasher {
    type Output = u64;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.update(&[byte]);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.update(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<u64> {
        Ok(self.0.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(sequence: u64) -> DeliveryRef {
        let token = LockToken::new(1, [7; 12]);
        DeliveryRef { token, sequence: SequenceNumber::new(sequence), delivery_count: 1 }
    }

    #[test]
    fn settlements_are_remembered_for_a_minute_and_no_more_than_the_limit() {
        let (mut settlements, queue) = (Settlements::default(), QueueId(1));
        let (release, reply) = (Settlement::Release, SettleResult::default());
        let as_released = (release.how(), digest_of(&release));
        let at = Timestamp::from_millis;
        settlements.note((queue, at(0)), held(1), as_released, &reply);
        assert!(settlements.answer((queue, at(59_999)), held(1), &release).is_some());
        assert!(settlements.answer((queue, at(60_000)), held(1), &release).is_none());
        assert!(settlements.answer((QueueId(2), at(0)), held(1), &release).is_none());
        let many = limits::SETTLEMENTS_KEPT as u64;
        for sequence in 2..=many + 1 {
            settlements.note((queue, at(1)), held(sequence), as_released, &reply);
        }
        assert!(settlements.answer((queue, at(1)), held(1), &release).is_none(), "the oldest makes room");
        assert!(settlements.answer((queue, at(1)), held(2), &release).is_some());
        settlements.note((queue, at(60_001)), held(1), as_released, &reply);
        assert_eq!((settlements.len(), settlements.index.len()), (1, 0), "what is over is dropped");
    }

    fn released() -> (SettledHow, u64) {
        (Settlement::Release.how(), digest_of(&Settlement::Release))
    }

    #[test]
    fn a_plain_settlement_is_remembered_in_a_line_of_the_processors_cache() {
        assert!(size_of::<PastSettlement>() <= 64, "it has {} bytes", size_of::<PastSettlement>());
    }

    #[test]
    fn a_settlement_is_answered_as_it_was_whatever_it_said() {
        let (mut settlements, at) = (Settlements::default(), (QueueId(1), Timestamp::from_millis(0)));
        let plain = Settlement::Complete(CompletionCommand::default());
        let reply = SettleResult { locked_until: Some(Timestamp::from_millis(9)), ..SettleResult::default() };
        let as_plain = (plain.how(), digest_of(&plain));
        settlements.note(at, held(1), as_plain, &SettleResult::default());
        settlements.note(at, held(2), as_plain, &reply);
        settlements.note(at, held(3), released(), &SettleResult::default());
        let mut answer = |number, settlement: &Settlement| settlements.answer(at, held(number), settlement);
        assert_eq!(answer(1, &plain), Some(Ok(SettleResult::default())));
        assert_eq!(answer(2, &plain), Some(Ok(reply)), "an answer that says something is no plain one");
        assert!(matches!(answer(3, &plain), Some(Err(SettleRefusal::AlreadySettled { .. }))));
        assert!(matches!(answer(1, &Settlement::Release), Some(Err(SettleRefusal::AlreadySettled { .. }))));
    }

    #[test]
    fn what_was_said_of_a_delivery_is_over_when_it_is_handed_out_anew() {
        let (mut settlements, at) = (Settlements::default(), (QueueId(1), Timestamp::from_millis(0)));
        settlements.note(at, held(1), released(), &SettleResult::default());
        assert!(settlements.answer(at, held(1), &Settlement::Release).is_some());
        settlements.forget(held(1));
        assert!(settlements.answer(at, held(1), &Settlement::Release).is_none());
        settlements.note(at, held(1), released(), &SettleResult::default());
        assert!(settlements.answer(at, held(1), &Settlement::Release).is_some(), "it was settled once more");
    }

    #[test]
    fn a_trial_leaves_the_settlements_as_they_were() {
        let (mut settlements, at) = (Settlements::default(), (QueueId(1), Timestamp::from_millis(0)));
        let is_known = |settlements: &mut Settlements, number| {
            settlements.answer(at, held(number), &Settlement::Release).is_some()
        };
        settlements.note(at, held(1), released(), &SettleResult::default());
        settlements.note(at, held(2), released(), &SettleResult::default());
        settlements.forget(held(2));
        settlements.begin_trial();
        settlements.note(at, held(3), released(), &SettleResult::default());
        settlements.forget(held(1));
        settlements.forget(held(2));
        assert!(is_known(&mut settlements, 3) && !is_known(&mut settlements, 1));
        settlements.roll_back();
        assert_eq!([1, 2, 3].map(|number| is_known(&mut settlements, number)), [true, false, false]);
        settlements.note(at, held(4), released(), &SettleResult::default());
        assert!(is_known(&mut settlements, 4));
    }

    #[test]
    fn the_chance_in_a_backoff_makes_no_other_settlement() {
        let suspect = |chance, reason: &str| Settlement::Suspect {
            retry: Retry::Backoff(chance),
            reason: reason.to_owned(),
            output: crate::engine::rules::output::Output::default(),
        };
        assert_eq!(digest_of(&suspect(1, "a")), digest_of(&suspect(2, "a")));
        assert_ne!(digest_of(&suspect(1, "a")), digest_of(&suspect(1, "b")));
    }
}
