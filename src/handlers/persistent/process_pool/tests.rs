//! What holds for a pool, whatever happens to it.

use super::*;
use proptest::prelude::*;
use tokio::sync::oneshot;

/// Who asks, and whether for a suspect.
struct Asking(oneshot::Sender<ChildAnswer>, bool);

impl Asker for Asking {
    fn is_cancelled(&self) -> bool {
        self.0.is_closed()
    }

    fn is_suspect(&self) -> bool {
        self.1
    }
}

/// Tells those who are to be told.
fn reply(process_pool: &mut ProcessPool<Asking>) {
    for ChildReply { asker, verdict, .. } in process_pool.describe() {
        let _ = asker.0.send(verdict);
    }
}

const TIMEOUT: Duration = Duration::from_secs(8);
const NOW: Duration = Duration::from_secs(100);

fn pid(raw: i32) -> Pid {
    Pid::from_raw(raw).unwrap()
}

fn process_pool(slots: usize) -> ProcessPool<Asking> {
    let mut process_pool = ProcessPool::new(slots, 4, TIMEOUT);
    (0..slots).for_each(|slot| process_pool.up(slot, pid(slot as i32 + 1), NOW));
    process_pool
}

fn submit(process_pool: &mut ProcessPool<Asking>, id: u64) -> oneshot::Receiver<ChildAnswer> {
    submit_as(process_pool, id, false)
}

fn submit_as(
    process_pool: &mut ProcessPool<Asking>,
    id: u64,
    is_suspect: bool,
) -> oneshot::Receiver<ChildAnswer> {
    let (asker, verdict) = oneshot::channel();
    let asker = Asking(asker, is_suspect);
    let line = format!("{id}\n").into_bytes();
    process_pool.submit(ChildRequest { id, line, asker }, NOW);
    reply(process_pool);
    verdict
}

fn answer(process_pool: &mut ProcessPool<Asking>, slot: usize, id: u64) -> Result<(), String> {
    let answer = OutcomeEnvelope { id: Some(id), ..OutcomeEnvelope::default() };
    let answered = process_pool.answered(slot, vec![answer], NOW);
    reply(process_pool);
    answered
}

fn written(process_pool: &mut ProcessPool<Asking>, slot: usize) -> String {
    let mut lines = Vec::new();
    process_pool.outgoing(slot, &mut lines, NOW);
    String::from_utf8(lines).unwrap()
}

#[test]
fn what_a_child_held_alone_is_to_blame_and_of_several_each_is_a_suspect() {
    let mut process_pool = process_pool(1);
    let mut alone = submit(&mut process_pool, 1);
    process_pool.down(0, "it ended");
    reply(&mut process_pool);
    assert!(!alone.try_recv().unwrap().unwrap_err().is_shared);
    process_pool.up(0, pid(1), NOW);
    let _answered = submit(&mut process_pool, 2);
    answer(&mut process_pool, 0, 2).unwrap();
    let mut several = [submit(&mut process_pool, 3), submit(&mut process_pool, 4)];
    process_pool.down(0, "it ended");
    reply(&mut process_pool);
    assert!(several.iter_mut().all(|verdict| verdict.try_recv().unwrap().unwrap_err().is_shared));
}

#[test]
fn what_outlasts_the_drain_is_not_to_blame_and_is_tried_again_at_once() {
    let mut process_pool = process_pool(1);
    let _answered = submit(&mut process_pool, 1);
    answer(&mut process_pool, 0, 1).unwrap();
    let held = [submit(&mut process_pool, 2), submit(&mut process_pool, 3)];
    for id in [2, 3] {
        process_pool.withdraw(id, GIVEN_UP);
    }
    process_pool.down(0, "it was ended");
    reply(&mut process_pool);
    for mut verdict in held {
        let failure = verdict.try_recv().unwrap().unwrap_err();
        assert_eq!((failure.reason(), failure.is_shared), (GIVEN_UP, false));
        assert!(!failure.abandon.is_with_backoff());
    }
}

#[test]
fn suspects_are_with_the_extra_child_one_at_a_time_and_nothing_else_is() {
    let mut process_pool = process_pool(1);
    let mut suspects = [submit_as(&mut process_pool, 1, true), submit_as(&mut process_pool, 2, true)];
    assert!(process_pool.has_suspects());
    assert_eq!(written(&mut process_pool, 0), "", "the others go on without them");
    process_pool.up(1, pid(2), NOW);
    let _others: Vec<_> = (3..=6).map(|id| submit(&mut process_pool, id)).collect();
    assert_eq!(written(&mut process_pool, 1), "1\n");
    answer(&mut process_pool, 1, 1).unwrap();
    assert_eq!(written(&mut process_pool, 1), "2\n");
    process_pool.down(1, "it ended");
    reply(&mut process_pool);
    assert!(suspects[0].try_recv().unwrap().is_ok());
    assert!(!suspects[1].try_recv().unwrap().unwrap_err().is_shared, "it was alone");
    assert!(!process_pool.has_suspects());
}

#[test]
fn a_request_goes_to_the_child_that_holds_the_least_and_waits_when_all_are_full() {
    let mut process_pool = process_pool(2);
    let mut verdicts: Vec<_> = (1..=4).map(|id| submit(&mut process_pool, id)).collect();
    // A child begins with one.
    assert_eq!((written(&mut process_pool, 0), written(&mut process_pool, 1)), ("1\n".into(), "2\n".into()));
    answer(&mut process_pool, 1, 2).unwrap();
    // It answered: it gets two.
    assert_eq!(
        (written(&mut process_pool, 0), written(&mut process_pool, 1)),
        (String::new(), "3\n4\n".into())
    );
    assert!(verdicts[1].try_recv().unwrap().is_ok());
    assert!(verdicts[0].try_recv().is_err());
}

#[test]
fn the_time_of_a_request_runs_from_when_it_is_the_oldest_its_child_holds() {
    let mut process_pool = process_pool(1);
    let mut first = submit(&mut process_pool, 1);
    answer(&mut process_pool, 0, 1).unwrap();
    assert!(first.try_recv().unwrap().is_ok());
    let _others = [submit(&mut process_pool, 2), submit(&mut process_pool, 3)];
    let later = NOW + TIMEOUT - Duration::from_secs(1);
    assert_eq!(process_pool.check_time(0, TIMEOUT, later, "late"), NOW + TIMEOUT);
    let two = OutcomeEnvelope { id: Some(2), ..OutcomeEnvelope::default() };
    process_pool.answered(0, vec![two], later).unwrap();
    assert_eq!(process_pool.check_time(0, TIMEOUT, NOW + TIMEOUT, "late"), later + TIMEOUT);
    assert!(!process_pool.is_killed(0));
    process_pool.check_time(0, TIMEOUT, later + TIMEOUT, "late");
    assert_eq!(process_pool.slots[0].killed.as_ref().map(|killed| killed.id), Some(3));
}

#[test]
fn an_attempt_begins_when_a_child_is_given_it_however_long_it_has_waited() {
    let mut process_pool = process_pool(1);
    let _verdicts = [submit(&mut process_pool, 1), submit(&mut process_pool, 2)];
    let answered = |id| vec![OutcomeEnvelope { id: Some(id), ..OutcomeEnvelope::default() }];
    let later = NOW + Duration::from_secs(5);
    process_pool.answered(0, answered(1), later).unwrap();
    process_pool.answered(0, answered(2), later + Duration::from_secs(1)).unwrap();
    let begun: Vec<_> = process_pool.describe().iter().map(|reply| reply.since).collect();
    assert_eq!(begun, [Some(NOW), Some(later)]);
}

#[test]
fn what_was_handed_over_later_is_not_the_oldest_though_it_was_numbered_before() {
    let mut process_pool = process_pool(1);
    let _first = submit(&mut process_pool, 5);
    answer(&mut process_pool, 0, 5).unwrap();
    let _others = [submit(&mut process_pool, 7), submit(&mut process_pool, 6)];
    process_pool.check_time(0, TIMEOUT, NOW + TIMEOUT, "late");
    assert_eq!(process_pool.slots[0].killed.as_ref().map(|killed| killed.id), Some(7));
}

#[test]
fn a_number_of_an_earlier_run_says_nothing_of_what_is_the_oldest() {
    let mut process_pool = process_pool(1);
    let _first = [submit(&mut process_pool, 1), submit(&mut process_pool, 2)];
    answer(&mut process_pool, 0, 1).unwrap();
    let _last = submit(&mut process_pool, 3);
    answer(&mut process_pool, 0, 3).unwrap();
    answer(&mut process_pool, 0, 2).unwrap();
    let _again = [submit(&mut process_pool, 3), submit(&mut process_pool, 2)];
    process_pool.check_time(0, TIMEOUT, NOW + TIMEOUT, "late");
    assert_eq!(process_pool.slots[0].killed.as_ref().map(|killed| killed.id), Some(3));
}

#[test]
fn a_request_is_withdrawn_wherever_it_is() {
    let mut process_pool = process_pool(1);
    let mut verdicts = [submit(&mut process_pool, 1), submit(&mut process_pool, 2)];
    assert_eq!(process_pool.withdraw(2, "lost"), Withdrawn::Waiting);
    reply(&mut process_pool);
    assert_eq!(verdicts[1].try_recv().unwrap().unwrap_err().reason(), "lost");
    assert_eq!(process_pool.withdraw(1, "lost"), Withdrawn::Held { slot: 0, group: Some(pid(1)) });
    // A child that must not go on gets nothing more.
    let _third = submit(&mut process_pool, 3);
    assert_eq!(written(&mut process_pool, 0), "1\n");
    process_pool.down(0, "killed");
    reply(&mut process_pool);
    assert_eq!(verdicts[0].try_recv().unwrap().unwrap_err().reason(), "lost");
    process_pool.up(0, pid(2), NOW);
    assert_eq!(written(&mut process_pool, 0), "3\n");
    answer(&mut process_pool, 0, 3).unwrap();
    assert_eq!(process_pool.withdraw(3, "lost"), Withdrawn::Answered);
}

#[test]
fn a_request_is_given_back_as_long_as_no_child_has_begun_it() {
    let mut process_pool = process_pool(1);
    let mut verdicts = [1, 2].map(|id| submit(&mut process_pool, id));
    let mut suspect = submit_as(&mut process_pool, 3, true);
    assert_eq!([1, 2, 3, 4].map(|id| process_pool.is_waiting(id)), [false, true, true, false]);
    (1..=4).for_each(|id| process_pool.give_back(id));
    reply(&mut process_pool);
    assert!(verdicts[1].try_recv().unwrap().is_err_and(|failure| failure.is_unbegun));
    assert!(suspect.try_recv().unwrap().is_err_and(|failure| failure.is_unbegun));
    answer(&mut process_pool, 0, 1).unwrap();
    assert!(verdicts[0].try_recv().unwrap().is_ok(), "its child goes on");
}

#[test]
fn a_group_that_is_gone_is_not_named() {
    let mut process_pool = process_pool(1);
    let _verdict = submit(&mut process_pool, 1);
    process_pool.starting(0);
    assert_eq!(process_pool.withdraw(1, "lost"), Withdrawn::Held { slot: 0, group: None });
}

#[test]
fn while_all_children_rest_nobody_is_left_waiting() {
    let mut process_pool = process_pool(2);
    (0..2).for_each(|slot| drop(process_pool.down(slot, "dead")));
    let mut first = submit(&mut process_pool, 1);
    let until = NOW + Duration::from_secs(5);
    rest(&mut process_pool, 0, until, false);
    assert!(first.try_recv().is_err());
    rest(&mut process_pool, 1, until, false);
    assert_eq!(first.try_recv().unwrap().unwrap_err().reason(), "resting");
    assert_eq!(submit(&mut process_pool, 2).try_recv().unwrap().unwrap_err().reason(), "resting");
    process_pool.starting(1);
    assert!(submit(&mut process_pool, 3).try_recv().is_err());
}

/// What happens to a pool, at random.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit,
    Answer(usize),
    Write(usize),
    Withdraw(u64),
    Die(usize),
    Rest(usize),
    Start(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Submit),
        3 => (0..3_usize).prop_map(Step::Answer),
        2 => (0..3_usize).prop_map(Step::Write),
        1 => (1..40_u64).prop_map(Step::Withdraw),
        1 => (0..3_usize).prop_map(Step::Die),
        1 => (0..3_usize).prop_map(Step::Rest),
        2 => (0..3_usize).prop_map(Step::Start),
    ]
}

fn play(
    process_pool: &mut ProcessPool<Asking>,
    step: Step,
    verdicts: &mut Vec<oneshot::Receiver<ChildAnswer>>,
) {
    match step {
        Step::Submit => verdicts.push(submit(process_pool, verdicts.len() as u64 + 1)),
        Step::Answer(slot) => {
            let oldest = process_pool.slots[slot].held.keys().next().copied();
            oldest.into_iter().for_each(|id| answer(process_pool, slot, id).unwrap());
        }
        Step::Write(slot) => drop(written(process_pool, slot)),
        Step::Withdraw(id) => drop(process_pool.withdraw(id, "withdrawn")),
        Step::Die(slot) => drop(process_pool.down(slot, "died")),
        Step::Rest(slot) => {
            process_pool.down(slot, "died");
            rest(process_pool, slot, NOW, slot == 1);
        }
        Step::Start(slot) if process_pool.slots[slot].group().is_none() => process_pool.up(slot, pid(1), NOW),
        Step::Start(_) => {}
    }
    reply(process_pool);
}

proptest! {
    #[test]
    fn every_request_gets_its_verdict_and_none_is_passed_over(steps in proptest::collection::vec(step(), 1..80)) {
        let mut process_pool = ProcessPool::new(3, 4, TIMEOUT);
        let mut verdicts = Vec::new();
        for step in steps {
            play(&mut process_pool, step, &mut verdicts);
            prop_assert!(process_pool.slots.iter().all(|slot| slot.held.len() <= 4));
            let has_room = process_pool.free_slot().is_some();
            prop_assert!(process_pool.waiting.is_empty() || !has_room, "{} wait beside a free child", process_pool.waiting.len());
        }
        process_pool.close();
        reply(&mut process_pool);
        (0..3).for_each(|slot| play(&mut process_pool, Step::Die(slot), &mut verdicts));
        for verdict in &mut verdicts {
            prop_assert!(verdict.try_recv().is_ok());
        }
    }
}

fn rest(process_pool: &mut ProcessPool<Asking>, slot: usize, until: Duration, is_shortage: bool) {
    process_pool.rest_until(slot, Rest { until, why: "resting".to_owned(), is_shortage }, NOW);
    reply(process_pool);
}

#[test]
fn a_message_fails_when_no_child_can_live_and_is_given_back_when_one_only_cannot_be_started() {
    let is_unbegun = |mut verdict: oneshot::Receiver<ChildAnswer>| match verdict.try_recv() {
        Ok(Err(failure)) => Some(failure.is_unbegun),
        _ => None,
    };
    for (shortages, unbegun) in [([false, false], false), ([false, true], true), ([true, true], true)] {
        let mut process_pool = ProcessPool::new(2, 4, TIMEOUT);
        let waits = submit(&mut process_pool, 1);
        rest(&mut process_pool, 0, NOW + 2 * TIMEOUT, shortages[0]);
        assert!(process_pool.shortage().is_none(), "the other may still start");
        rest(&mut process_pool, 1, NOW + TIMEOUT, shortages[1]);
        assert_eq!(process_pool.shortage().map(|(until, _)| until), unbegun.then_some(NOW + TIMEOUT));
        assert_eq!(is_unbegun(waits), Some(unbegun));
        assert_eq!(is_unbegun(submit(&mut process_pool, 2)), Some(unbegun));
        process_pool.up(1, pid(1), NOW);
        assert_eq!((is_unbegun(submit(&mut process_pool, 3)), process_pool.shortage()), (None, None));
    }
}

#[test]
fn suspects_are_given_back_when_the_extra_child_cannot_be_started_and_the_others_go_on() {
    let mut process_pool = process_pool(1);
    let mut suspect = submit_as(&mut process_pool, 1, true);
    let extra = process_pool.extra();
    rest(&mut process_pool, extra, NOW + TIMEOUT, true);
    assert!(suspect.try_recv().unwrap().is_err_and(|failure| failure.is_unbegun));
    assert!(process_pool.shortage().is_none());
    let mut other = submit(&mut process_pool, 2);
    answer(&mut process_pool, 0, 2).unwrap();
    assert!(other.try_recv().unwrap().is_ok());
    let mut again = submit_as(&mut process_pool, 3, true);
    assert!(again.try_recv().is_err(), "it waits for the next start");
    process_pool.up(extra, pid(9), NOW);
    assert_eq!(written(&mut process_pool, extra), "3\n");
}

#[test]
fn what_would_make_a_long_write_waits() {
    let mut process_pool = process_pool(1);
    let _first = submit(&mut process_pool, 1);
    answer(&mut process_pool, 0, 1).unwrap();
    let (asker, _verdict) = oneshot::channel();
    let asker = Asking(asker, false);
    process_pool.submit(ChildRequest { id: 2, line: vec![b'x'; limits::OUTGOING_BYTES_MAX], asker }, NOW);
    let _third = submit(&mut process_pool, 3);
    assert_eq!(written(&mut process_pool, 0).len(), limits::OUTGOING_BYTES_MAX + 2);
    assert_eq!(written(&mut process_pool, 0), "3\n");
}
