//! What holds for a board, whatever happens to it.

use super::*;
use proptest::prelude::*;
use tokio::sync::oneshot;

type Asking = oneshot::Sender<Verdict>;

impl Asker for Asking {
    fn is_cancelled(&self) -> bool {
        self.is_closed()
    }
}

/// Tells those who are to be told.
fn tell(board: &mut Board<Asking>) {
    for (asking, verdict) in board.told() {
        let _ = asking.send(verdict);
    }
}

const TIMEOUT: Duration = Duration::from_secs(8);
const NOW: Duration = Duration::from_secs(100);

fn pid(raw: i32) -> Pid {
    Pid::from_raw(raw).unwrap()
}

fn board(seats: usize) -> Board<Asking> {
    let mut board = Board::new(seats, 4, TIMEOUT);
    (0..seats).for_each(|seat| board.up(seat, pid(seat as i32 + 1), NOW));
    board
}

fn submit(board: &mut Board<Asking>, id: u64) -> oneshot::Receiver<Verdict> {
    let (asker, verdict) = oneshot::channel();
    let line = format!("{id}\n").into_bytes();
    board.submit(Request { id, line, asker }, NOW);
    tell(board);
    verdict
}

fn answer(board: &mut Board<Asking>, seat: usize, id: u64) -> Result<(), String> {
    let answer = OutcomeEnvelope { id: Some(id), ..OutcomeEnvelope::default() };
    let answered = board.answered(seat, vec![answer], NOW);
    tell(board);
    answered
}

fn written(board: &mut Board<Asking>, seat: usize) -> String {
    let mut lines = Vec::new();
    board.outgoing(seat, &mut lines, NOW);
    String::from_utf8(lines).unwrap()
}

#[test]
fn a_request_goes_to_the_child_that_holds_the_least_and_waits_when_all_are_full() {
    let mut board = board(2);
    let mut verdicts: Vec<_> = (1..=4).map(|id| submit(&mut board, id)).collect();
    // A child begins with one.
    assert_eq!((written(&mut board, 0), written(&mut board, 1)), ("1\n".into(), "2\n".into()));
    answer(&mut board, 1, 2).unwrap();
    // It answered: it gets two.
    assert_eq!((written(&mut board, 0), written(&mut board, 1)), (String::new(), "3\n4\n".into()));
    assert!(verdicts[1].try_recv().unwrap().is_ok());
    assert!(verdicts[0].try_recv().is_err());
}

#[test]
fn the_time_of_a_request_runs_from_when_it_is_the_oldest_its_child_holds() {
    let mut board = board(1);
    let mut first = submit(&mut board, 1);
    answer(&mut board, 0, 1).unwrap();
    assert!(first.try_recv().unwrap().is_ok());
    let _others = [submit(&mut board, 2), submit(&mut board, 3)];
    let later = NOW + TIMEOUT - Duration::from_secs(1);
    assert_eq!(board.check_time(0, TIMEOUT, later, "late"), NOW + TIMEOUT);
    let two = OutcomeEnvelope { id: Some(2), ..OutcomeEnvelope::default() };
    board.answered(0, vec![two], later).unwrap();
    assert_eq!(board.check_time(0, TIMEOUT, NOW + TIMEOUT, "late"), later + TIMEOUT);
    assert!(!board.is_condemned(0));
    board.check_time(0, TIMEOUT, later + TIMEOUT, "late");
    assert_eq!(board.seats[0].condemned.as_ref().map(|condemned| condemned.id), Some(3));
}

#[test]
fn what_was_handed_over_later_is_not_the_oldest_though_it_was_numbered_before() {
    let mut board = board(1);
    let _first = submit(&mut board, 5);
    answer(&mut board, 0, 5).unwrap();
    let _others = [submit(&mut board, 7), submit(&mut board, 6)];
    board.check_time(0, TIMEOUT, NOW + TIMEOUT, "late");
    assert_eq!(board.seats[0].condemned.as_ref().map(|condemned| condemned.id), Some(7));
}

#[test]
fn a_request_is_withdrawn_wherever_it_is() {
    let mut board = board(1);
    let mut verdicts = [submit(&mut board, 1), submit(&mut board, 2)];
    assert_eq!(board.withdraw(2, "lost"), Withdrawn::Waiting);
    tell(&mut board);
    assert_eq!(verdicts[1].try_recv().unwrap().unwrap_err().reason(), "lost");
    assert_eq!(board.withdraw(1, "lost"), Withdrawn::Held { seat: 0, group: Some(pid(1)) });
    // A child that must not go on gets nothing more.
    let _third = submit(&mut board, 3);
    assert_eq!(written(&mut board, 0), "1\n");
    board.down(0, "killed");
    tell(&mut board);
    assert_eq!(verdicts[0].try_recv().unwrap().unwrap_err().reason(), "lost");
    board.up(0, pid(2), NOW);
    assert_eq!(written(&mut board, 0), "3\n");
    answer(&mut board, 0, 3).unwrap();
    assert_eq!(board.withdraw(3, "lost"), Withdrawn::Answered);
}

#[test]
fn a_group_that_is_gone_is_not_named() {
    let mut board = board(1);
    let _verdict = submit(&mut board, 1);
    board.starting(0);
    assert_eq!(board.withdraw(1, "lost"), Withdrawn::Held { seat: 0, group: None });
}

#[test]
fn while_all_children_rest_nobody_is_left_waiting() {
    let mut board = board(2);
    (0..2).for_each(|seat| board.down(seat, "dead"));
    let mut first = submit(&mut board, 1);
    let until = NOW + Duration::from_secs(5);
    board.rest_until(0, until, "dead".to_owned(), NOW);
    assert!(first.try_recv().is_err());
    board.rest_until(1, until, "dead".to_owned(), NOW);
    tell(&mut board);
    assert_eq!(first.try_recv().unwrap().unwrap_err().reason(), "dead");
    assert_eq!(submit(&mut board, 2).try_recv().unwrap().unwrap_err().reason(), "dead");
    board.starting(1);
    assert!(submit(&mut board, 3).try_recv().is_err());
}

/// What happens to a board, at random.
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

fn play(board: &mut Board<Asking>, step: Step, verdicts: &mut Vec<oneshot::Receiver<Verdict>>) {
    match step {
        Step::Submit => verdicts.push(submit(board, verdicts.len() as u64 + 1)),
        Step::Answer(seat) => {
            let oldest = board.seats[seat].held.keys().next().copied();
            oldest.into_iter().for_each(|id| answer(board, seat, id).unwrap());
        }
        Step::Write(seat) => drop(written(board, seat)),
        Step::Withdraw(id) => drop(board.withdraw(id, "withdrawn")),
        Step::Die(seat) => board.down(seat, "died"),
        Step::Rest(seat) => {
            board.down(seat, "died");
            board.rest_until(seat, NOW, "resting".to_owned(), NOW);
        }
        Step::Start(seat) if board.seats[seat].group().is_none() => board.up(seat, pid(1), NOW),
        Step::Start(_) => {}
    }
    tell(board);
}

proptest! {
    #[test]
    fn every_request_gets_its_verdict_and_none_is_passed_over(steps in proptest::collection::vec(step(), 1..80)) {
        let mut board = Board::new(3, 4, TIMEOUT);
        let mut verdicts = Vec::new();
        for step in steps {
            play(&mut board, step, &mut verdicts);
            prop_assert!(board.seats.iter().all(|seat| seat.held.len() <= 4));
            let has_room = board.free_seat().is_some();
            prop_assert!(board.waiting.is_empty() || !has_room, "{} wait beside a free child", board.waiting.len());
        }
        board.close();
        tell(&mut board);
        (0..3).for_each(|seat| play(&mut board, Step::Die(seat), &mut verdicts));
        for verdict in &mut verdicts {
            prop_assert!(verdict.try_recv().is_ok());
        }
    }
}

#[test]
fn what_would_make_a_long_write_waits() {
    let mut board = board(1);
    let _first = submit(&mut board, 1);
    answer(&mut board, 0, 1).unwrap();
    let (asker, _verdict) = oneshot::channel();
    board.submit(Request { id: 2, line: vec![b'x'; limits::OUTGOING_BYTES_MAX], asker }, NOW);
    let _third = submit(&mut board, 3);
    assert_eq!(written(&mut board, 0).len(), limits::OUTGOING_BYTES_MAX + 2);
    assert_eq!(written(&mut board, 0), "3\n");
}
