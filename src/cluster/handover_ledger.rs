//! What the owner of an outbox has handed over to each other partition in its epoch, and has settled: the other keeps it in mind until
//! it hears of that, with whatever is handed over to it next.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::id::SequenceNumber;
use crate::limits;
use crate::mutex::Mutex;

/// How long after a request without a certain answer another may be thought to be on its way: longer than servers of NATS keep a
/// connection that says nothing (they ask twice, after two minutes each).
const REQUEST_LATE: Duration = Duration::from_secs(600);

/// The settled messages of an outbox of which other partitions have not heard.
#[derive(Debug, Default)]
pub(crate) struct HandoverLedger {
    targets: Mutex<BTreeMap<u16, HandoverTarget>>,
}

/// What is to be told to one partition.
#[derive(Debug, Default)]
struct HandoverTarget {
    settled: Vec<SequenceNumber>,
    /// Those of which a request may arrive yet.
    late: BTreeMap<SequenceNumber, LateHandover>,
    /// Whether it has said what it keeps from owners before.
    has_said: bool,
}

/// A message that was asked for without a certain answer.
#[derive(Debug)]
struct LateHandover {
    /// When, in elapsed time.
    since: Duration,
    /// Whether another request with it was answered since.
    is_answered: bool,
}

impl HandoverLedger {
    /// What a partition is told with a message, and whether it is asked what it keeps. Of what may arrive there late it is not
    /// told: it would store that again. `None` for a message that is not to be handed over now: while as many as are under way at once
    /// have had no answer, only these are asked for again. Each takes a place at the other partition for long, and these are few.
    pub(crate) fn take(
        &self,
        to: u16,
        number: SequenceNumber,
        now: Duration,
    ) -> Option<(Vec<SequenceNumber>, bool)> {
        let mut targets = self.targets.lock();
        let HandoverTarget { settled, late, has_said } = targets.entry(to).or_default();
        late.retain(|_, late| now.saturating_sub(late.since) < REQUEST_LATE);
        let unanswered = late.values().filter(|late| !late.is_answered).count();
        if unanswered >= limits::OUTBOX_HANDOVERS && !late.contains_key(&number) {
            return None;
        }
        let mut told = Vec::new();
        settled.retain(|number| {
            let is_told = told.len() < limits::HANDOVERS_SETTLED_MAX && !late.contains_key(number);
            if is_told {
                told.push(*number);
            }
            !is_told
        });
        Some((told, !*has_said))
    }

    /// Notes that it is not known whether a request with a message has arrived: it may later.
    pub(crate) fn note_late(&self, to: u16, number: SequenceNumber, now: Duration) {
        let late = LateHandover { since: now, is_answered: false };
        self.targets.lock().entry(to).or_default().late.insert(number, late);
    }

    /// Notes that a message was answered for: the partition answers again.
    pub(crate) fn note_answered(&self, to: u16, number: SequenceNumber) {
        if let Some(late) = self.targets.lock().entry(to).or_default().late.get_mut(&number) {
            late.is_answered = true;
        }
    }

    /// Notes what it is to be told, also once more if it may not have heard.
    pub(crate) fn tell(&self, to: u16, settled: impl IntoIterator<Item = SequenceNumber>) {
        self.targets.lock().entry(to).or_default().settled.extend(settled);
    }

    /// Notes that it has said what it keeps. False when it had before.
    pub(crate) fn hear(&self, to: u16) -> bool {
        !std::mem::replace(&mut self.targets.lock().entry(to).or_default().has_said, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told with a message that nobody has asked for yet, and whether it is asked what is kept.
    fn take(ledger: &HandoverLedger, to: u16, now: Duration) -> (Vec<SequenceNumber>, bool) {
        ledger.take(to, SequenceNumber::new(99), now).expect("it may be handed over")
    }

    #[test]
    fn what_a_partition_was_told_is_told_again_only_if_it_may_not_have_heard() {
        let (ledger, number) = (HandoverLedger::default(), SequenceNumber::new);
        ledger.tell(1, [number(7), number(8)]);
        let take = |to| take(&ledger, to, Duration::ZERO);
        assert_eq!(take(2), (Vec::new(), true), "it is of another");
        let (told, asks) = take(1);
        assert_eq!((&told[..], asks), (&[number(7), number(8)][..], true));
        assert_eq!(take(1).0, Vec::new());
        ledger.tell(1, told);
        assert!(ledger.hear(1) && !ledger.hear(1));
        assert_eq!(take(1), (vec![number(7), number(8)], false));
    }

    #[test]
    fn no_message_tells_more_than_so_many() {
        let ledger = HandoverLedger::default();
        ledger.tell(1, (1..=limits::HANDOVERS_SETTLED_MAX as u64 + 1).map(SequenceNumber::new));
        assert_eq!(take(&ledger, 1, Duration::ZERO).0.len(), limits::HANDOVERS_SETTLED_MAX);
        assert_eq!(take(&ledger, 1, Duration::ZERO).0.len(), 1);
    }

    #[test]
    fn what_was_asked_without_an_answer_is_settled_elsewhere_only_when_it_cannot_arrive_any_more() {
        let (ledger, number) = (HandoverLedger::default(), SequenceNumber::new);
        let at = Duration::from_secs(60);
        ledger.note_late(1, number(7), at);
        // Another request with it was answered, and it was completed.
        ledger.note_answered(1, number(7));
        ledger.tell(1, [number(7), number(8)]);
        assert_eq!(take(&ledger, 1, at).0, [number(8)]);
        assert_eq!(take(&ledger, 1, at + REQUEST_LATE - Duration::from_millis(1)).0, []);
        assert_eq!(take(&ledger, 1, at + REQUEST_LATE).0, [number(7)]);
    }

    #[test]
    fn a_partition_that_does_not_answer_is_asked_for_no_more_messages_than_are_under_way_at_once() {
        let (ledger, number, at) = (HandoverLedger::default(), SequenceNumber::new, Duration::ZERO);
        let count = limits::OUTBOX_HANDOVERS as u64;
        let may_begin = |to, of, now| ledger.take(to, number(of), now).is_some();
        for late in 1..=count {
            assert!(may_begin(1, late, at));
            ledger.note_late(1, number(late), at);
        }
        assert!(!may_begin(1, count + 1, at), "so many have had no answer");
        assert!(may_begin(2, count + 1, at), "another partition answers");
        assert!((1..=count).all(|late| may_begin(1, late, at)), "these are asked for again");
        ledger.note_answered(1, number(3));
        assert!(may_begin(1, count + 1, at), "it answers, and what may be late takes a place there only");
        ledger.note_late(1, number(3), at);
        assert!(!may_begin(1, count + 1, at));
        assert!(may_begin(1, count + 1, at + REQUEST_LATE), "none of these may be in the outbox any more");
    }
}
