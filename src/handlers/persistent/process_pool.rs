//! Which child holds which messages, and which messages wait for one.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use rustix::process::Pid;

use crate::api::OutcomeEnvelope;
use crate::api::OutcomeWord;
use crate::engine::Output;
use crate::handlers::ending::GIVEN_UP;
use crate::handlers::ending::LOCK_LOST;
use crate::handlers::ending::given_up;
use crate::handlers::output::OutputTail;
use crate::handlers::persistent::window::ChildWindow;
use crate::limits;
use crate::processor::Failure;

/// What becomes of a request: the child's answer, or why there is none.
pub(super) type ChildAnswer = Result<OutcomeEnvelope, Failure>;

/// Who asks, and gets the outcome of a request.
pub(super) trait Asker {
    /// Whether its request need not be begun any more.
    fn is_cancelled(&self) -> bool;

    /// Whether a child must hold its request and nothing else.
    fn is_suspect(&self) -> bool;
}

/// A request in a line of JSON.
pub(super) struct ChildRequest<A> {
    pub(super) id: u64,
    pub(super) line: Vec<u8>,
    pub(super) asker: A,
}

/// All children, and the requests that none of them has room for.
///
/// It is plain data: whoever changes it holds its lock, never awaits, then tells those who asked and wakes those whom a
/// change concerns.
pub(super) struct ProcessPool<A> {
    /// The last is the extra child's, which holds one suspect and nothing else, and is there only while there are some.
    slots: Vec<ChildSlot<A>>,
    waiting: VecDeque<ChildRequest<A>>,
    suspects: VecDeque<ChildRequest<A>>,
    is_closed: bool,
    /// Those who are to be told, and what.
    described: Vec<ChildReply<A>>,
}

/// Who is to be told what, and what the child wrote meanwhile, if it failed.
pub(super) struct ChildReply<A> {
    pub(super) asker: A,
    pub(super) verdict: ChildAnswer,
    pub(super) output: Output,
    /// Since when a child had the request, if one did.
    pub(super) since: Option<Duration>,
}

/// One child, or the place of one that is not there.
struct ChildSlot<A> {
    state: ChildState,
    window: ChildWindow,
    held: BTreeMap<u64, RequestHold<A>>,
    /// The ids of what is held in the order in which it was handed over, and some that are answered. An id says nothing of
    /// that: a request is numbered before the state of its workflow is looked up.
    order: VecDeque<u64>,
    /// Since when the oldest request that is held is the oldest: a child that works off its lines one by one begins it
    /// then, and only then its time starts to run.
    oldest_since: Duration,
    /// What its child wrote to its standard error.
    written: OutputTail,
    /// Lines the child has not been written yet.
    outgoing: Vec<u8>,
    killed: Option<KillOrder>,
}

#[derive(Clone, Debug)]
enum ChildState {
    Up(Pid),
    /// It is there, and gets nothing more.
    Ending(Pid),
    Starting,
    /// It is not started before an instant.
    Resting(Rest),
}

/// Why a child is not started before an instant.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) until: Duration,
    pub(super) why: String,
    /// Whether the daemon lacks something to start it, which no message is to blame for; else it died again and again.
    pub(super) is_shortage: bool,
}

struct RequestHold<A> {
    since: Duration,
    /// How much its child had written then.
    written_before: u64,
    asker: A,
}

/// A child that must not go on, because of one of its requests.
#[derive(Clone, Debug)]
struct KillOrder {
    id: u64,
    why: String,
}

/// Where a request went that is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Withdrawn {
    /// It was not handed over, and is forgotten.
    Waiting,
    /// A child holds it that is about to be killed.
    Held { slot: usize, group: Option<Pid> },
    /// It is answered.
    Answered,
}

impl<A: Asker> ProcessPool<A> {
    pub(super) fn new(slots: usize, in_flight_max: usize, timeout: Duration) -> ProcessPool<A> {
        let slot = |in_flight_max| ChildSlot {
            state: ChildState::Starting,
            window: ChildWindow::new(in_flight_max, timeout),
            held: BTreeMap::new(),
            order: VecDeque::new(),
            oldest_since: Duration::ZERO,
            written: OutputTail::default(),
            outgoing: Vec::new(),
            killed: None,
        };
        let slots = (0..slots.max(1)).map(|_| slot(in_flight_max)).chain([slot(1)]).collect();
        let (waiting, suspects) = (VecDeque::new(), VecDeque::new());
        ProcessPool { slots, waiting, suspects, is_closed: false, described: Vec::new() }
    }

    /// The slot of the extra child.
    fn extra(&self) -> usize {
        self.slots.len() - 1
    }

    /// Whether the extra child has something to do, or will have.
    pub(super) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty() || !self.slots[self.extra()].held.is_empty()
    }

    /// Takes those who are to be told what becomes of their requests; whoever holds the lock tells them without it.
    pub(super) fn describe(&mut self) -> Vec<ChildReply<A>> {
        std::mem::take(&mut self.described)
    }

    /// Takes a request.
    pub(super) fn submit(&mut self, request: ChildRequest<A>, now: Duration) {
        if self.is_closed {
            self.reply(request.asker, Err(Failure::unbegun("the handler is closed")));
            return;
        }
        if request.asker.is_cancelled() {
            self.reply(request.asker, Err(Failure::new(LOCK_LOST)));
            return;
        }
        if request.asker.is_suspect() {
            self.suspects.push_back(request);
            return self.refill(self.extra(), now);
        }
        match (self.free_slot(), self.rest()) {
            (Some(slot), _) => self.slots[slot].take(request, now),
            (None, Some(rest)) => self.reply(request.asker, Err(rest.failure(now))),
            (None, None) => self.waiting.push_back(request),
        }
    }

    /// Forgets a request, or condemns the child that holds it.
    pub(super) fn withdraw(&mut self, id: u64, why: &str) -> Withdrawn {
        if let Some(request) = self.take_waiting(id) {
            self.reply(request.asker, Err(Failure::new(why)));
            return Withdrawn::Waiting;
        }
        match self.slots.iter().position(|slot| slot.held.contains_key(&id)) {
            Some(slot) => {
                self.mark_killed(slot, id, why.to_owned());
                Withdrawn::Held { slot, group: self.slots[slot].group() }
            }
            None => Withdrawn::Answered,
        }
    }

    /// Whether a request waits for a child.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.waiting.iter().chain(&self.suspects).any(|request| request.id == id)
    }

    /// Gives back a request that waits for a child.
    pub(super) fn give_back(&mut self, id: u64) {
        if let Some(request) = self.take_waiting(id) {
            self.reply(request.asker, Err(Failure::unbegun("no process had room for it")));
        }
    }

    fn take_waiting(&mut self, id: u64) -> Option<ChildRequest<A>> {
        take_out(&mut self.waiting, id).or_else(|| take_out(&mut self.suspects, id))
    }

    /// The requests that children hold.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.slots.iter().flat_map(|slot| slot.held.keys().copied()).collect()
    }

    fn reply(&mut self, asker: A, verdict: ChildAnswer) {
        self.described.push(ChildReply { asker, verdict, output: Output::default(), since: None });
    }

    fn mark_killed(&mut self, slot: usize, id: u64, why: String) {
        self.slots[slot].killed.get_or_insert(KillOrder { id, why });
    }

    /// Condemns a child whose oldest request is too old; else says when that could be, at the earliest.
    pub(super) fn check_time(
        &mut self,
        slot: usize,
        timeout: Duration,
        now: Duration,
        why: &str,
    ) -> Duration {
        let at = &mut self.slots[slot];
        let Some(oldest) = at.oldest() else { return now + timeout };
        let due = at.oldest_since + timeout;
        if due <= now {
            self.mark_killed(slot, oldest, why.to_owned());
        }
        due
    }

    /// Whether a child must not go on.
    pub(super) fn is_killed(&self, slot: usize) -> bool {
        self.slots[slot].killed.is_some()
    }

    /// A child has started.
    pub(super) fn up(&mut self, slot: usize, group: Pid, now: Duration) {
        self.slots[slot].state = ChildState::Up(group);
        self.refill(slot, now);
    }

    /// Takes what is to be written to a child.
    pub(super) fn outgoing(&mut self, slot: usize, into: &mut Vec<u8>, now: Duration) {
        std::mem::swap(&mut self.slots[slot].outgoing, into);
        self.refill(slot, now);
    }

    /// A child has answered. An answer to what it does not hold is an error, after which it must not go on.
    pub(super) fn answered(
        &mut self,
        slot: usize,
        answers: Vec<OutcomeEnvelope>,
        now: Duration,
    ) -> Result<(), String> {
        let mut all = Ok(());
        for answer in answers {
            match self.slots[slot].answered(&answer, now) {
                Ok((RequestHold { asker, since, .. }, output)) => {
                    let since = Some(since);
                    self.described.push(ChildReply { asker, verdict: Ok(answer), output, since });
                }
                Err(error) => {
                    all = Err(error);
                    break;
                }
            }
        }
        self.refill(slot, now);
        all
    }

    /// A child is given nothing more.
    pub(super) fn ending(&mut self, slot: usize) {
        if let ChildState::Up(group) = self.slots[slot].state {
            self.slots[slot].state = ChildState::Ending(group);
        }
    }

    /// A child has ended, and all it held has failed: the request it was ended for, and the others that go with it. If these
    /// are several, nobody knows which is to blame; none is when they outlasted the drain, and they are tried again when the
    /// daemon is back. Its group must not be signalled any more.
    ///
    /// Says why it was ended, if it was because of a request.
    pub(super) fn down(&mut self, slot: usize, why: &str) -> Option<String> {
        let slot = &mut self.slots[slot];
        slot.state = ChildState::Starting;
        slot.window.close();
        slot.outgoing = Vec::new();
        let killed = slot.killed.take();
        let held = std::mem::take(&mut slot.held);
        slot.order.clear();
        let failure = if held.len() > 1 { Failure::shared } else { Failure::new };
        let written = std::mem::take(&mut slot.written);
        for (id, RequestHold { asker, written_before, since }) in held {
            let failure = match &killed {
                Some(killed) if killed.why == GIVEN_UP => given_up(),
                Some(killed) if killed.id == id => failure(killed.why.clone()),
                Some(killed) => failure(format!("{why}, because of another message: {}", killed.why)),
                None => failure(why.to_owned()),
            };
            let output = written.since(written_before);
            let since = Some(since);
            self.described.push(ChildReply { asker, verdict: Err(failure), output, since });
        }
        killed.map(|killed| killed.why)
    }

    /// A child has written a line to its standard error.
    pub(super) fn complained(&mut self, slot: usize, line: &str) {
        self.slots[slot].written.push(line);
    }

    /// The extra child cannot be started, so nobody will handle the suspects that wait.
    pub(super) fn fail_suspects(&mut self, why: &str) {
        for request in std::mem::take(&mut self.suspects) {
            self.reply(request.asker, Err(Failure::new(why)));
        }
    }

    /// A child is not started before an instant. When all rest, nobody is left waiting without a word. Suspects wait on for
    /// the extra child unless it could not be started: the next that come are those it is tried for again.
    pub(super) fn rest_until(&mut self, slot: usize, rest: Rest, now: Duration) {
        let suspects_go = slot == self.extra() && rest.is_shortage;
        let failure = rest.failure(now);
        self.slots[slot].state = ChildState::Resting(rest);
        if suspects_go {
            for request in std::mem::take(&mut self.suspects) {
                self.reply(request.asker, Err(failure.clone()));
            }
        }
        if let Some(rest) = self.rest() {
            for request in std::mem::take(&mut self.waiting) {
                self.reply(request.asker, Err(rest.failure(now)));
            }
        }
    }

    /// Until when nobody can be given anything for lack of something, and why; none when a child is up or may soon be.
    pub(super) fn shortage(&self) -> Option<(Duration, String)> {
        self.rest().filter(|rest| rest.is_shortage).map(|rest| (rest.until, rest.why))
    }

    /// A child is started again.
    pub(super) fn starting(&mut self, slot: usize) {
        self.slots[slot].state = ChildState::Starting;
    }

    /// Takes no more requests, and gives back those that wait: no child has begun them.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        let waiting = std::mem::take(&mut self.waiting);
        for request in waiting.into_iter().chain(std::mem::take(&mut self.suspects)) {
            self.reply(request.asker, Err(Failure::unbegun("the handler is closed")));
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The child with room that holds the least.
    fn free_slot(&self) -> Option<usize> {
        let free = self.slots[..self.extra()].iter().enumerate().filter(|(_, slot)| slot.has_room());
        free.min_by_key(|(_, slot)| slot.held.len()).map(|(index, _)| index)
    }

    /// Until when all children rest, and why, if they do. If one of them only lacks something, nobody knows that the messages
    /// would fail.
    fn rest(&self) -> Option<Rest> {
        let mut all: Vec<&Rest> = Vec::new();
        for slot in &self.slots[..self.extra()] {
            let ChildState::Resting(rest) = &slot.state else { return None };
            all.push(rest);
        }
        let until = all.iter().map(|rest| rest.until).min()?;
        let first = all.into_iter().min_by_key(|rest| (!rest.is_shortage, rest.until))?;
        Some(Rest { until, ..first.clone() })
    }

    fn refill(&mut self, slot: usize, now: Duration) {
        let is_extra = slot == self.extra();
        while self.slots[slot].has_room() {
            let waiting = if is_extra { &mut self.suspects } else { &mut self.waiting };
            let Some(request) = waiting.pop_front() else { return };
            match request.asker.is_cancelled() {
                true => self.reply(request.asker, Err(Failure::new(LOCK_LOST))),
                false => self.slots[slot].take(request, now),
            }
        }
    }
}

impl<A> ChildSlot<A> {
    fn has_room(&self) -> bool {
        matches!(self.state, ChildState::Up(_))
            && self.killed.is_none()
            && self.held.len() < self.window.len()
            && self.outgoing.len() < limits::OUTGOING_BYTES_MAX
    }

    fn group(&self) -> Option<Pid> {
        match self.state {
            ChildState::Up(group) | ChildState::Ending(group) => Some(group),
            _ => None,
        }
    }

    fn take(&mut self, request: ChildRequest<A>, now: Duration) {
        if self.held.is_empty() {
            // An id among what is answered may be that of this request: each run of a processor numbers its own anew.
            self.order.clear();
            self.oldest_since = now;
        }
        self.outgoing.extend_from_slice(&request.line);
        // One that is never answered must not keep the ids of all that were answered since.
        if self.order.len() > 2 * limits::CONCURRENCY_MAX {
            self.order.retain(|id| self.held.contains_key(id));
        }
        self.order.push_back(request.id);
        let written_before = self.written.count();
        self.held.insert(request.id, RequestHold { since: now, written_before, asker: request.asker });
    }

    /// What was handed over first of what is held.
    fn oldest(&mut self) -> Option<u64> {
        while self.order.front().is_some_and(|id| !self.held.contains_key(id)) {
            self.order.pop_front();
        }
        self.order.front().copied()
    }

    /// The request of an answer, and what was written meanwhile unless it went well.
    fn answered(
        &mut self,
        answer: &OutcomeEnvelope,
        now: Duration,
    ) -> Result<(RequestHold<A>, Output), String> {
        let id = answer.id.ok_or("without the id of its request")?;
        let is_oldest = self.oldest() == Some(id);
        let held = self.held.remove(&id).ok_or_else(|| format!("request {id}, which it does not hold"))?;
        if is_oldest {
            self.oldest_since = now;
        }
        self.window.answered(now.saturating_sub(held.since));
        let output = match answer.outcome {
            OutcomeWord::Complete => Output::default(),
            _ => self.written.since(held.written_before),
        };
        Ok((held, output))
    }
}

fn take_out<A>(waiting: &mut VecDeque<ChildRequest<A>>, id: u64) -> Option<ChildRequest<A>> {
    let at = waiting.iter().position(|request| request.id == id)?;
    waiting.remove(at)
}

impl Rest {
    /// What becomes of a message that no child can be given meanwhile.
    fn failure(&self, now: Duration) -> Failure {
        match self.is_shortage {
            true => Failure::unbegun(self.why.clone()),
            false => Failure::new(self.why.clone()).retry_after(self.until.saturating_sub(now)),
        }
    }
}

#[cfg(test)]
mod tests;
