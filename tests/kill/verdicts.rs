//! The ledger can fail: every verdict falls on a made-up log that deserves it, and on no log that does not.

use seriatim::view::Counts;

use crate::kill::hold::CLOCKS_APART_MS;
use crate::kill::ledger::Ledger;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::report::Answer;
use crate::kill::report::Ending;
use crate::kill::report::Report;
use crate::kill::report::Seen;
use crate::kill::report::Status;
use crate::kill::verdict::Verdict;

const SEED: u64 = 7;
const LOCK_MS: u64 = 1_000;

/// A made-up log, and the ledger that hears it.
struct Log(Ledger);

impl Log {
    /// A log in which these were sent, at sequence numbers ten times their own, and acknowledged.
    fn sent(numbers: impl IntoIterator<Item = u64>) -> Log {
        let mut log = Log(Ledger::new(SEED));
        for number in numbers {
            log.meant(number);
            log.hear(Report::Sent(vec![(name(number), Answer::Accepted(Some(number * 10)))]));
        }
        log
    }

    fn hear(&mut self, said: Report) {
        self.0.hear(said);
    }

    fn meant(&mut self, number: u64) {
        self.hear(Report::Sending(vec![name(number)]));
    }

    /// It is handed out at an instant, to the hold of that instant.
    fn received(&mut self, at_ms: u64, numbers: &[u64], delivery_count: u32) {
        let seen = numbers.iter().map(|number| Seen { delivery_count, ..seen(name(*number)) }).collect();
        let locked_until_ms = at_ms + LOCK_MS;
        self.hear(Report::Received { hold: at_ms.to_string(), seen, locked_until_ms, lock_ms: LOCK_MS });
    }

    fn settling(&mut self, hold: u64, number: u64, ending: Ending, at_ms: u64) {
        let endings = vec![(name(number), ending)];
        self.hear(Report::Settling { hold: hold.to_string(), endings, at_ms });
    }

    fn completed(&mut self, hold: u64, number: u64) {
        self.settling(hold, number, Ending::Completed, hold);
        self.hear(Report::Settled { hold: hold.to_string() });
    }

    fn refused(&mut self, hold: u64, at_ms: u64) {
        self.hear(Report::Refused { hold: hold.to_string(), why: "the lock was lost".to_owned(), at_ms });
    }

    /// The process is killed, and the next one finds these.
    fn restarted(&mut self, found: &[(Name, Status)]) {
        self.0.process_ended();
        for (name, status) in found {
            self.hear(Report::Found(seen(*name), *status));
        }
        self.hear(Report::Looked);
    }

    fn verdicts(&self) -> Vec<Verdict> {
        self.0.findings.verdicts()
    }
}

fn name(number: u64) -> Name {
    Name::new(Ordered::Position, 3, number)
}

fn seen(name: Name) -> Seen {
    Seen {
        queue: name.ordered.queue().to_owned(),
        workflow_id: name.workflow_id(),
        message_id: name.to_string(),
        sequence: name.number * 10,
        delivery_count: 1,
        body: name.body(SEED),
    }
}

fn waiting(numbers: &[u64]) -> Vec<(Name, Status)> {
    numbers.iter().map(|number| (name(*number), Status::Waiting)).collect()
}

#[test]
fn a_log_of_kept_promises_has_no_findings() {
    let mut log = Log::sent(1..=4);
    log.received(100, &[1, 2], 1);
    log.completed(100, 1);
    log.settling(100, 2, Ending::Failed, 100);
    log.received(200, &[2], 2);
    log.completed(200, 2);
    log.received(300, &[3], 1);
    log.settling(300, 3, Ending::Aside, 300);
    log.received(400, &[4], 1);
    log.meant(5);
    log.restarted(&[(name(3), Status::Aside), (name(4), Status::Waiting), (name(5), Status::Waiting)]);
    assert_eq!(log.verdicts(), []);
}

#[test]
fn what_nobody_has_answered_may_have_happened_or_not() {
    for found in [&[1, 2][..], &[2]] {
        let mut log = Log::sent([1, 2]);
        log.received(100, &[1], 1);
        log.settling(100, 1, Ending::Completed, 100);
        log.meant(3);
        log.restarted(&waiting(found));
        assert_eq!(log.verdicts(), [], "{found:?}");
    }
}

#[test]
fn what_was_acknowledged_and_is_not_found_is_lost() {
    let mut log = Log::sent([1, 2]);
    log.restarted(&waiting(&[1]));
    assert_eq!(log.verdicts(), [Verdict::Lost]);
    log.restarted(&waiting(&[1]));
    assert_eq!(log.verdicts(), [Verdict::Lost], "it is reported once");
}

#[test]
fn a_dead_letter_that_nobody_removed_is_lost_when_it_is_gone() {
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::DeadLettered, 100);
    log.restarted(&[(name(1), Status::DeadLettered)]);
    log.restarted(&[]);
    assert_eq!(log.verdicts(), [Verdict::Lost]);
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::DeadLettered, 100);
    log.restarted(&[(name(1), Status::DeadLettered)]);
    log.hear(Report::Purging);
    log.restarted(&[]);
    assert_eq!(log.verdicts(), []);
}

#[test]
fn what_nobody_moved_aside_is_lost_among_the_dead_letters() {
    let mut log = Log::sent([1, 2]);
    log.restarted(&[(name(1), Status::DeadLettered), (name(2), Status::Aside)]);
    assert_eq!(log.verdicts(), [Verdict::Lost, Verdict::Lost]);
}

#[test]
fn an_answer_for_what_is_not_there_tells_of_a_loss() {
    let mut log = Log::sent([]);
    log.meant(1);
    log.hear(Report::Sent(vec![(name(1), Answer::AlreadySettled)]));
    log.meant(2);
    log.hear(Report::Sent(vec![(name(2), Answer::Duplicate(20))]));
    assert_eq!(log.verdicts(), [Verdict::Lost, Verdict::Lost]);
}

#[test]
fn a_completion_and_what_it_sends_are_one() {
    let story = |found: &[(Name, Status)]| {
        let mut log = Log::sent([1]);
        log.received(100, &[1], 1);
        log.settling(100, 1, Ending::CompletedWithFollowUp, 100);
        log.restarted(found);
        log.verdicts()
    };
    let (cause, follow_up) = ((name(1), Status::Waiting), (name(1).follow_up(), Status::Waiting));
    assert_eq!(story(&[cause]), []);
    assert_eq!(story(&[follow_up]), []);
    assert_eq!(story(&[]), [Verdict::Lost]);
    assert_eq!(story(&[cause, follow_up]), [Verdict::Phantom]);
}

#[test]
fn what_was_never_sent_is_a_phantom() {
    let mut log = Log::sent([1]);
    log.restarted(&waiting(&[1, 2]));
    assert_eq!(log.verdicts(), [Verdict::Phantom]);
    let mut log = Log::sent([]);
    log.received(100, &[1], 1);
    assert_eq!(log.verdicts(), [Verdict::Phantom]);
    let mut log = Log::sent([]);
    log.hear(Report::Found(Seen { message_id: "x".to_owned(), ..seen(name(1)) }, Status::Waiting));
    log.hear(Report::Looked);
    assert_eq!(log.verdicts(), [Verdict::Phantom]);
}

#[test]
fn what_is_handed_out_before_a_lower_one_is_settled_has_overtaken_it() {
    let mut log = Log::sent([1, 2]);
    log.received(100, &[2], 1);
    assert_eq!(log.verdicts(), [Verdict::Overtaken]);
    let mut log = Log::sent([1, 2]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Failed, 100);
    log.received(200, &[2], 1);
    assert_eq!(log.verdicts(), [Verdict::Overtaken], "a retry comes before what follows it");
    let mut log = Log::sent([1, 2, 3]);
    log.received(100, &[1, 3], 1);
    assert_eq!(log.verdicts(), [Verdict::Overtaken], "within a run, too");
}

#[test]
fn what_is_handed_out_over_a_gap_has_overtaken_what_is_missing() {
    let mut log = Log::sent([2]);
    log.received(100, &[2], 1);
    assert_eq!(log.verdicts(), [Verdict::Overtaken]);
}

#[test]
fn what_is_handed_out_for_the_first_time_after_a_higher_one_was_overtaken() {
    let arrival = |number| Name::new(Ordered::Arrival, 3, number);
    let mut log = Log::sent([]);
    let received = |log: &mut Log, at_ms: u64, number: u64| {
        let seen = vec![seen(arrival(number))];
        let locked_until_ms = at_ms + LOCK_MS;
        log.hear(Report::Received { hold: at_ms.to_string(), seen, locked_until_ms, lock_ms: LOCK_MS });
    };
    log.hear(Report::Sending(vec![arrival(2)]));
    received(&mut log, 100, 2);
    log.hear(Report::Settling {
        hold: "100".to_owned(),
        endings: vec![(arrival(2), Ending::Completed)],
        at_ms: 100,
    });
    log.hear(Report::Sending(vec![arrival(1)]));
    received(&mut log, 200, 1);
    assert_eq!(log.verdicts(), [Verdict::Overtaken]);
}

#[test]
fn a_settle_that_is_refused_after_its_successor_was_handed_out_was_overtaken() {
    let mut log = Log::sent([1, 2]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Completed, 100);
    log.received(200, &[2], 1);
    assert_eq!(log.verdicts(), []);
    log.refused(100, 200);
    assert_eq!(log.verdicts(), [Verdict::Overtaken]);
}

#[test]
fn two_live_holders_of_one_workflow_overlap() {
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.received(1_099 - CLOCKS_APART_MS, &[1], 2);
    assert_eq!(log.verdicts(), [Verdict::Overlap]);
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.received(1_100, &[1], 2);
    assert_eq!(log.verdicts(), [], "the first lock has run out");
}

#[test]
fn what_is_not_as_it_was_sent_has_wrong_content() {
    for other in [
        Seen { body: name(2).body(SEED), ..seen(name(1)) },
        Seen { workflow_id: "w4".to_owned(), ..seen(name(1)) },
        Seen { queue: "arrival".to_owned(), ..seen(name(1)) },
    ] {
        let mut log = Log::sent([1]);
        log.hear(Report::Found(other, Status::Waiting));
        log.hear(Report::Looked);
        assert_eq!(log.verdicts(), [Verdict::WrongContent]);
    }
}

#[test]
fn what_has_ended_and_is_there_again_is_doubled() {
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.completed(100, 1);
    log.received(200, &[1], 2);
    assert_eq!(log.verdicts(), [Verdict::Doubled], "it is handed out again");
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.completed(100, 1);
    log.restarted(&waiting(&[1]));
    assert_eq!(log.verdicts(), [Verdict::Doubled], "it is found again");
    let mut log = Log::sent([1, 2]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Completed, 100);
    log.received(200, &[2], 1);
    log.restarted(&waiting(&[1, 2]));
    assert_eq!(log.verdicts(), [Verdict::Doubled], "its successor has proved that it ended");
}

#[test]
fn what_is_there_under_two_numbers_is_doubled() {
    let mut log = Log::sent([1]);
    log.hear(Report::Found(seen(name(1)), Status::Waiting));
    log.hear(Report::Found(Seen { sequence: 11, ..seen(name(1)) }, Status::Waiting));
    log.hear(Report::Looked);
    assert!(log.verdicts().contains(&Verdict::Doubled));
    for answer in [Answer::Accepted(Some(11)), Answer::Duplicate(11)] {
        let mut log = Log::sent([1]);
        log.hear(Report::Sent(vec![(name(1), answer)]));
        assert_eq!(log.verdicts(), [Verdict::Doubled], "{answer:?}");
    }
}

#[test]
fn a_hand_out_that_is_not_counted_is_told() {
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Failed, 100);
    log.received(200, &[1], 1);
    assert_eq!(log.verdicts(), [Verdict::Uncounted]);
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Released, 100);
    log.received(200, &[1], 1);
    assert_eq!(log.verdicts(), [], "what is given back unstarted takes back its count");
    let mut log = Log::sent([1]);
    log.received(100, &[1], 2);
    log.restarted(&waiting(&[1]));
    assert_eq!(
        log.verdicts(),
        [Verdict::Uncounted, Verdict::Uncounted],
        "it was not on disk before the hand-out"
    );
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Released, 100);
    log.received(200, &[1], 2);
    assert_eq!(log.verdicts(), [Verdict::Uncounted], "what was not started is not counted");
}

#[test]
fn a_settle_after_its_lock_was_lost_is_stale() {
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Completed, 1_100 + CLOCKS_APART_MS);
    log.hear(Report::Settled { hold: "100".to_owned() });
    assert_eq!(log.verdicts(), [Verdict::Stale], "its time was over");
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.received(1_100, &[1], 2);
    log.completed(100, 1);
    assert_eq!(log.verdicts(), [Verdict::Stale], "somebody else has it");
}

#[test]
fn a_settle_under_a_live_lock_must_not_be_refused() {
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Completed, 1_000);
    log.refused(100, 1_099 - CLOCKS_APART_MS);
    assert_eq!(log.verdicts(), [Verdict::Refused]);
    let mut log = Log::sent([1]);
    log.received(100, &[1], 1);
    log.settling(100, 1, Ending::Completed, 1_000);
    log.refused(100, 1_100);
    log.received(1_200, &[1], 2);
    assert_eq!(log.verdicts(), [], "its time was over");
}

#[test]
fn a_send_must_not_be_refused_and_an_engine_must_not_stop() {
    let mut log = Log::sent([]);
    log.meant(1);
    log.hear(Report::Sent(vec![(name(1), Answer::Refused)]));
    log.hear(Report::Stopped("the disk failed".to_owned()));
    assert_eq!(log.verdicts(), [Verdict::Refused, Verdict::Refused]);
}

#[test]
fn counts_that_are_not_the_ledgers_are_unbalanced() {
    let story = |change: fn(&mut Counts)| {
        let mut log = Log::sent([1, 2]);
        log.received(100, &[1, 2], 1);
        log.settling(100, 1, Ending::Completed, 100);
        log.settling(100, 2, Ending::DeadLettered, 100);
        log.hear(Report::Settled { hold: "100".to_owned() });
        let mut counts = Counts::default();
        (counts.accepted, counts.completed, counts.dead_lettered) = (2, 1, 1);
        change(&mut counts);
        log.hear(Report::Counted(Ordered::Position, counts));
        log.hear(Report::Done);
        !log.verdicts().is_empty() && log.verdicts().iter().all(|found| *found == Verdict::Unbalanced)
    };
    assert!(!story(|_| {}), "the books balance");
    assert!(story(|counts| counts.accepted = 3));
    assert!(story(|counts| (counts.accepted, counts.completed) = (3, 2)));
    assert!(story(|counts| (counts.completed, counts.ready) = (0, 1)));
    assert!(story(|counts| (counts.completed, counts.dead_lettered) = (0, 2)));
}
