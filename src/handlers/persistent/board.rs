//! Which child holds which messages, and which messages wait for one.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use rustix::process::Pid;
use tokio::sync::oneshot;

use crate::handlers::persistent::window::Window;
use crate::limits;
use crate::processor::Failure;
use crate::wire::OutcomeEnvelope;

/// What becomes of a request: the child's answer, or why there is none.
pub(super) type Verdict = Result<OutcomeEnvelope, Failure>;

/// Who is told what becomes of a request.
pub(super) type Reply = oneshot::Sender<Verdict>;

/// A request in a line of JSON.
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) line: Vec<u8>,
    pub(super) reply: Reply,
}

/// All children, and the requests that none of them has room for.
///
/// It is plain data: whoever changes it holds its lock, never awaits, and wakes those whom a change concerns.
pub(super) struct Board {
    seats: Vec<Seat>,
    waiting: VecDeque<Request>,
    is_closed: bool,
}

/// One child, or the place of one that is not there.
struct Seat {
    state: State,
    window: Window,
    held: BTreeMap<u64, Held>,
    /// Since when the oldest request that is held is the oldest: a child that works off its lines one by one begins it
    /// then, and only then its time starts to run.
    oldest_since: Duration,
    /// Lines the child has not been written yet.
    outgoing: Vec<u8>,
    condemned: Option<Condemned>,
}

#[derive(Clone, Debug)]
enum State {
    Up(Pid),
    /// It is there, and gets nothing more.
    Ending(Pid),
    Starting,
    /// It died again and again, and is not started before an instant.
    Resting {
        until: Duration,
        why: String,
    },
}

struct Held {
    since: Duration,
    reply: Reply,
}

/// A child that must not go on, because of one of its requests.
#[derive(Clone, Debug)]
pub(super) struct Condemned {
    pub(super) id: u64,
    pub(super) why: String,
}

/// Where a request went that is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Withdrawn {
    /// It was not handed over, and is forgotten.
    Waiting,
    /// A child holds it, which is condemned.
    Held { seat: usize, group: Option<Pid> },
    /// It is answered.
    Answered,
}

impl Board {
    pub(super) fn new(seats: usize, in_flight_max: usize, timeout: Duration) -> Board {
        let seat = || Seat {
            state: State::Starting,
            window: Window::new(in_flight_max, timeout),
            held: BTreeMap::new(),
            oldest_since: Duration::ZERO,
            outgoing: Vec::new(),
            condemned: None,
        };
        let seats = (0..seats.max(1)).map(|_| seat()).collect();
        Board { seats, waiting: VecDeque::new(), is_closed: false }
    }

    /// Takes a request; says which seats have something to write.
    pub(super) fn submit(&mut self, request: Request, now: Duration) -> Option<usize> {
        if self.is_closed {
            let _ = request.reply.send(Err(Failure::unbegun("the handler is closed")));
            return None;
        }
        match (self.free_seat(), self.rest()) {
            (Some(seat), _) => {
                self.seats[seat].take(request, now);
                return Some(seat);
            }
            (None, Some((until, why))) => {
                let _ = request.reply.send(Err(resting(why, until.saturating_sub(now))));
            }
            (None, None) => self.waiting.push_back(request),
        }
        None
    }

    /// Forgets a request, or condemns the child that holds it.
    pub(super) fn withdraw(&mut self, id: u64, why: &str) -> Withdrawn {
        if let Some(at) = self.waiting.iter().position(|request| request.id == id) {
            if let Some(request) = self.waiting.remove(at) {
                let _ = request.reply.send(Err(Failure::new(why)));
            }
            return Withdrawn::Waiting;
        }
        match self.seats.iter().position(|seat| seat.held.contains_key(&id)) {
            Some(seat) => {
                self.condemn(seat, id, why.to_owned());
                Withdrawn::Held { seat, group: self.seats[seat].group() }
            }
            None => Withdrawn::Answered,
        }
    }

    fn condemn(&mut self, seat: usize, id: u64, why: String) {
        self.seats[seat].condemned.get_or_insert(Condemned { id, why });
    }

    /// Condemns a child whose oldest request is too old; else says when that could be, at the earliest.
    pub(super) fn check_time(
        &mut self,
        seat: usize,
        timeout: Duration,
        now: Duration,
        why: &str,
    ) -> Duration {
        let at = &self.seats[seat];
        let Some(&oldest) = at.held.keys().next() else { return now + timeout };
        let due = at.oldest_since + timeout;
        if due <= now {
            self.condemn(seat, oldest, why.to_owned());
        }
        due
    }

    /// Whether a child is condemned, and why.
    pub(super) fn condemned(&self, seat: usize) -> Option<Condemned> {
        self.seats[seat].condemned.clone()
    }

    /// A child has started; says whether there is something to write to it.
    pub(super) fn up(&mut self, seat: usize, group: Pid, now: Duration) {
        self.seats[seat].state = State::Up(group);
        self.refill(seat, now);
    }

    /// Takes what is to be written to a child.
    pub(super) fn outgoing(&mut self, seat: usize, into: &mut Vec<u8>, now: Duration) {
        std::mem::swap(&mut self.seats[seat].outgoing, into);
        self.refill(seat, now);
    }

    /// A child has answered. An answer to what it does not hold is an error, after which it must not go on.
    pub(super) fn answered(
        &mut self,
        seat: usize,
        answers: Vec<OutcomeEnvelope>,
        now: Duration,
    ) -> Result<(), String> {
        let mut all = Ok(());
        for answer in answers {
            if let Err(error) = self.seats[seat].answered(answer, now) {
                all = Err(error);
                break;
            }
        }
        self.refill(seat, now);
        all
    }

    /// A child is given nothing more.
    pub(super) fn ending(&mut self, seat: usize) {
        if let State::Up(group) = self.seats[seat].state {
            self.seats[seat].state = State::Ending(group);
        }
    }

    /// A child has ended: gives the requests it held, to be told why. Its group must not be signalled any more.
    pub(super) fn down(&mut self, seat: usize) -> Vec<(u64, Reply)> {
        let seat = &mut self.seats[seat];
        seat.state = State::Starting;
        seat.window.close();
        seat.outgoing = Vec::new();
        seat.condemned = None;
        std::mem::take(&mut seat.held).into_iter().map(|(id, held)| (id, held.reply)).collect()
    }

    /// A child is not started before an instant. When all rest, nobody is left waiting without a word.
    pub(super) fn rest_until(&mut self, seat: usize, until: Duration, why: String, now: Duration) {
        self.seats[seat].state = State::Resting { until, why };
        if let Some((until, why)) = self.rest() {
            let (why, rest) = (why.to_owned(), until.saturating_sub(now));
            for request in std::mem::take(&mut self.waiting) {
                let _ = request.reply.send(Err(resting(&why, rest)));
            }
        }
    }

    /// A child is started again.
    pub(super) fn starting(&mut self, seat: usize) {
        self.seats[seat].state = State::Starting;
    }

    /// Takes no more requests, and gives back those that wait: no child has begun them.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        for request in std::mem::take(&mut self.waiting) {
            let _ = request.reply.send(Err(Failure::unbegun("the handler is closed")));
        }
    }

    /// The child with room that holds the least.
    fn free_seat(&self) -> Option<usize> {
        let free = self.seats.iter().enumerate().filter(|(_, seat)| seat.has_room());
        free.min_by_key(|(_, seat)| seat.held.len()).map(|(index, _)| index)
    }

    /// Until when all children rest, and why, if they do.
    fn rest(&self) -> Option<(Duration, &str)> {
        let mut soonest: Option<(Duration, &str)> = None;
        for seat in &self.seats {
            let State::Resting { until, why } = &seat.state else { return None };
            if soonest.is_none_or(|(earliest, _)| *until < earliest) {
                soonest = Some((*until, why));
            }
        }
        soonest
    }

    fn refill(&mut self, seat: usize, now: Duration) {
        while self.seats[seat].has_room() {
            let Some(request) = self.waiting.pop_front() else { return };
            self.seats[seat].take(request, now);
        }
    }
}

impl Seat {
    fn has_room(&self) -> bool {
        matches!(self.state, State::Up(_))
            && self.condemned.is_none()
            && self.held.len() < self.window.len()
            && self.outgoing.len() < limits::OUTGOING_BYTES_MAX
    }

    fn group(&self) -> Option<Pid> {
        match self.state {
            State::Up(group) | State::Ending(group) => Some(group),
            _ => None,
        }
    }

    fn take(&mut self, request: Request, now: Duration) {
        if self.held.is_empty() {
            self.oldest_since = now;
        }
        match self.outgoing.is_empty() {
            true => self.outgoing = request.line,
            false => self.outgoing.extend_from_slice(&request.line),
        }
        self.held.insert(request.id, Held { since: now, reply: request.reply });
    }

    fn answered(&mut self, answer: OutcomeEnvelope, now: Duration) -> Result<(), String> {
        let id = answer.id.ok_or("without the id of its request")?;
        let is_oldest = self.held.keys().next() == Some(&id);
        let held = self.held.remove(&id).ok_or_else(|| format!("request {id}, which it does not hold"))?;
        if is_oldest {
            self.oldest_since = now;
        }
        self.window.answered(now.saturating_sub(held.since));
        // Who asked may be gone; then the child is condemned already.
        let _ = held.reply.send(Ok(answer));
        Ok(())
    }
}

fn resting(why: &str, rest: Duration) -> Failure {
    Failure::new(why).retry_after(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMEOUT: Duration = Duration::from_secs(8);
    const NOW: Duration = Duration::from_secs(100);

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    fn board(seats: usize) -> Board {
        let mut board = Board::new(seats, 4, TIMEOUT);
        (0..seats).for_each(|seat| board.up(seat, pid(seat as i32 + 1), NOW));
        board
    }

    fn submit(board: &mut Board, id: u64) -> oneshot::Receiver<Verdict> {
        let (reply, verdict) = oneshot::channel();
        let line = format!("{id}\n").into_bytes();
        board.submit(Request { id, line, reply }, NOW);
        verdict
    }

    fn answer(board: &mut Board, seat: usize, id: u64) -> Result<(), String> {
        board.answered(seat, vec![OutcomeEnvelope { id: Some(id), ..OutcomeEnvelope::default() }], NOW)
    }

    fn written(board: &mut Board, seat: usize) -> String {
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
        assert!(board.condemned(0).is_none());
        board.check_time(0, TIMEOUT, later + TIMEOUT, "late");
        assert_eq!(board.condemned(0).map(|condemned| condemned.id), Some(3));
    }

    #[test]
    fn a_request_is_withdrawn_wherever_it_is() {
        let mut board = board(1);
        let mut verdicts = [submit(&mut board, 1), submit(&mut board, 2)];
        assert_eq!(board.withdraw(2, "lost"), Withdrawn::Waiting);
        assert_eq!(verdicts[1].try_recv().unwrap().unwrap_err().reason(), "lost");
        assert_eq!(board.withdraw(1, "lost"), Withdrawn::Held { seat: 0, group: Some(pid(1)) });
        // A child that must not go on gets nothing more.
        let _third = submit(&mut board, 3);
        assert_eq!(written(&mut board, 0), "1\n");
        assert_eq!(board.down(0).len(), 1);
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
        (0..2).for_each(|seat| drop(board.down(seat)));
        let mut first = submit(&mut board, 1);
        let until = NOW + Duration::from_secs(5);
        board.rest_until(0, until, "dead".to_owned(), NOW);
        assert!(first.try_recv().is_err());
        board.rest_until(1, until, "dead".to_owned(), NOW);
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

    fn play(board: &mut Board, step: Step, verdicts: &mut Vec<oneshot::Receiver<Verdict>>) {
        let fail = |held: Vec<(u64, Reply)>| {
            held.into_iter().for_each(|(_, reply)| drop(reply.send(Err(Failure::new("died")))));
        };
        match step {
            Step::Submit => verdicts.push(submit(board, verdicts.len() as u64 + 1)),
            Step::Answer(seat) => {
                let oldest = board.seats[seat].held.keys().next().copied();
                oldest.into_iter().for_each(|id| answer(board, seat, id).unwrap());
            }
            Step::Write(seat) => drop(written(board, seat)),
            Step::Withdraw(id) => drop(board.withdraw(id, "withdrawn")),
            Step::Die(seat) => fail(board.down(seat)),
            Step::Rest(seat) => {
                fail(board.down(seat));
                board.rest_until(seat, NOW, "resting".to_owned(), NOW);
            }
            Step::Start(seat) if board.seats[seat].group().is_none() => board.up(seat, pid(1), NOW),
            Step::Start(_) => {}
        }
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
        let (reply, _verdict) = oneshot::channel();
        board.submit(Request { id: 2, line: vec![b'x'; limits::OUTGOING_BYTES_MAX], reply }, NOW);
        let _third = submit(&mut board, 3);
        assert_eq!(written(&mut board, 0).len(), limits::OUTGOING_BYTES_MAX + 2);
        assert_eq!(written(&mut board, 0), "3\n");
    }
}
