//! What operators do, and what happens when time has passed.

use std::cmp::Reverse;

use crate::clock::Timestamp;
use crate::engine::rules::command::Operation;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::naive::Cause;
use crate::engine::tests::simulation::reference::naive::Flow;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::id::Position;
use crate::queue::HoldKind;

/// Something that is due: in which order things of one instant are done is not said by the contract.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Message(u64),
    Expiry(u64),
    Gap(WorkflowRef),
    Sweep(WorkflowRef),
}

impl Naive {
    /// Whether an operation is done.
    pub(crate) fn operate(&mut self, key: &WorkflowRef, operation: &Operation) -> bool {
        let is_known = self.exists(key) || self.lock(key).is_some();
        match operation {
            Operation::Hold { .. } => {
                self.hold(key, Cause::Operator);
                true
            }
            _ if !is_known => false,
            Operation::Resume { redrive } => self.resume(key, *redrive),
            Operation::ResumeFor { kind } => {
                let is_held = self.is_held_for(key, *kind);
                if is_held {
                    self.resume_for(key, *kind);
                }
                is_held
            }
            Operation::RetryNow => self.retry_now(key),
            Operation::SkipHead { .. } => self.skip_head(key, None),
            Operation::SkipMessage { sequence, .. } => self.skip_head(key, Some(sequence.get())),
            Operation::VoidGap { range: None } => self.skip_gap(key),
            Operation::VoidGap { range: Some((from, to)) } => self.void(key, *from, *to),
            Operation::ReleaseLock => {
                let is_locked = self.lock(key).is_some();
                self.take_from_holder(key);
                is_locked
            }
        }
    }

    fn resume(&mut self, key: &WorkflowRef, redrive: bool) -> bool {
        let held = self.held(key);
        for cause in &held {
            self.resume_for(key, cause.kind());
        }
        if redrive && !held.is_empty() {
            self.flow(key).held = vec![Cause::Redriving];
        }
        !held.is_empty()
    }

    /// Lifts one cause. What goes on is tried again, and waits anew for what is missing.
    fn resume_for(&mut self, key: &WorkflowRef, kind: HoldKind) {
        let held = self.held(key);
        let exhausted = held.iter().find_map(|cause| match cause {
            Cause::Exhausted(seq) if kind == HoldKind::Exhausted => Some(*seq),
            _ => None,
        });
        self.try_again(exhausted);
        self.flow(key).held.retain(|cause| cause.kind() != kind);
        if kind == HoldKind::Gap || !self.is_held(key) {
            self.flow(key).gap = None;
        }
        if !self.is_held(key) {
            let head = self.head(key).map(|head| head.seq);
            self.try_again(head);
        }
    }

    fn try_again(&mut self, seq: Option<u64>) {
        let seq = seq.filter(|seq| self.message(*seq).is_some_and(|m| m.state == State::Failed(None)));
        if let Some(seq) = seq {
            self.make_ready(seq);
        }
    }

    fn make_ready(&mut self, seq: u64) {
        self.set(seq, State::Ready);
        let index = self.at(seq).expect("it is stored");
        self.messages[index].has_extra = false;
    }

    fn retry_now(&mut self, key: &WorkflowRef) -> bool {
        let head = self.head(key).filter(|head| matches!(head.state, State::Failed(_))).map(|head| head.seq);
        let Some(seq) = head else { return false };
        self.make_ready(seq);
        self.lift(key, Cause::Exhausted(seq));
        true
    }

    fn skip_head(&mut self, key: &WorkflowRef, meant: Option<u64>) -> bool {
        let is_beyond = |place: u64| self.positional(key) && place > self.first_missing(key);
        let head = self.head(key).filter(|head| !is_beyond(head.place())).map(|head| head.seq);
        let is_meant = |seq: &u64| meant.is_none_or(|meant| meant == *seq);
        let Some(seq) = head.filter(is_meant).filter(|_| self.lock(key).is_none()) else { return false };
        self.kill(seq);
        self.lift(key, Cause::Exhausted(seq));
        true
    }

    fn skip_gap(&mut self, key: &WorkflowRef) -> bool {
        let is_chained = self.chained(key);
        if self.early(key) == 0 || is_chained && self.first_stray(key).is_none() {
            return false;
        }
        self.give_up_gap(key);
        true
    }

    fn void(&mut self, key: &WorkflowRef, from: Position, to: Position) -> bool {
        let (from, to) = (from.get(), to.get());
        let is_there = |position: u64| {
            self.live_at(key, position).is_some()
                || self.flows.get(key).is_some_and(|flow| flow.settled(position))
        };
        if !self.positional(key) || from > to || from < self.first() || (from..=to).any(is_there) {
            return false;
        }
        self.flow(key).given_up.extend(from..=to);
        true
    }

    /// Puts back whatever can return to its place, and resumes.
    fn redrive_all(&mut self, key: &WorkflowRef) {
        let mut dead: Vec<(u64, u64)> = self
            .messages
            .iter()
            .filter(|message| message.key == *key && message.state == State::Dead)
            .map(|message| (message.place(), message.seq))
            .collect();
        dead.sort_unstable();
        for (_, seq) in dead {
            if self.is_place_ahead(seq) && self.has_room(1, true) {
                self.put_back(seq);
            }
        }
        self.resume_for(key, HoldKind::Redriving);
    }

    /// Whether a dead letter can return to its place: it is free, nothing behind it was completed or is handed out.
    pub(crate) fn is_place_ahead(&self, seq: u64) -> bool {
        let message = self.message(seq).expect("it is stored");
        if matches!(message.key, WorkflowRef::Single(_)) {
            return true;
        }
        if self.chained(&message.key) {
            return self.is_link_ahead(message);
        }
        let place = message.place();
        let Some(flow) = self.flows.get(&message.key).filter(|flow| !flow.held.is_empty()) else {
            return false;
        };
        let is_taken =
            message.position.is_some_and(|position| self.live_at(&message.key, position).is_some());
        place > flow.done && !is_taken && !self.has_later_out(&message.key, place)
    }

    /// Whether a holder has a message out that stands behind a place.
    pub(crate) fn has_later_out(&self, key: &WorkflowRef, place: u64) -> bool {
        let lock = self.flows.get(key).and_then(|flow| flow.lock.as_ref());
        let out = lock.into_iter().flat_map(|lock| &lock.out).filter_map(|seq| self.message(*seq));
        out.filter(|m| self.in_line(m)).any(|m| m.place() > place)
    }

    pub(crate) fn put_back(&mut self, seq: u64) {
        let index = self.at(seq).expect("it is stored");
        let message = &mut self.messages[index];
        message.state = State::Ready;
        (message.has_extra, message.is_stray) = (false, false);
        let lives = message.lives.into_iter().chain(self.options.time_to_live).min();
        message.expires = lives.map(|lives| Due::engine(self.now + lives));
        let (key, position) = (message.key.clone(), message.position);
        if self.chained(&key) {
            self.link(seq);
        } else if let Some(position) = position {
            self.flow(&key).given_up.remove(&position);
        }
    }

    /// Time has come to `now`: locks run out, then what is due happens in its order.
    pub(crate) fn advance(&mut self, now: ClockInstants) {
        (self.now, self.wall) = (now.engine, now.wall);
        while let Some(key) = self.next_lost() {
            self.take_from_holder(&key);
            self.close(&key);
        }
        while let Some(due) = self.next_due() {
            let key = self.happen(due);
            self.close(&key);
        }
    }

    fn next_lost(&self) -> Option<WorkflowRef> {
        let locks = self.flows.iter().filter_map(|(key, flow)| Some((key, flow.lock.as_ref()?)));
        let lost = locks.filter(|(_, lock)| lock.until <= self.now);
        lost.min_by_key(|(_, lock)| (lock.until, lock.number)).map(|(key, _)| key.clone())
    }

    /// What is to be done first of what is due.
    fn next_due(&self) -> Option<What> {
        let is_due = |at: &Due| at.is_past(self.clocks());
        let on_engine = |at: Option<Timestamp>| at.map(Due::engine).filter(is_due);
        let messages = self.messages.iter().filter_map(|message| match message.state {
            State::Scheduled(due) => Some((due, What::Message(message.seq))),
            State::Failed(due) | State::ByConsumer { due, .. } => Some((due?, What::Message(message.seq))),
            _ => None,
        });
        let may_expire = |state: &State| !matches!(state, State::Dead | State::Locked(_));
        let expiries = self.messages.iter().filter(|message| may_expire(&message.state));
        let expiries = expiries.filter_map(|message| Some((message.expires?, What::Expiry(message.seq))));
        let gap = |flow: &Flow| on_engine(flow.gap.and_then(|(_, due)| due));
        let gaps = self.flows.iter().filter_map(|(key, flow)| Some((gap(flow)?, What::Gap(key.clone()))));
        let sweep = |flow: &Flow| on_engine(flow.sweep);
        let sweeps =
            self.flows.iter().filter_map(|(key, flow)| Some((sweep(flow)?, What::Sweep(key.clone()))));
        let all = messages.chain(expiries).chain(gaps).chain(sweeps);
        // What has been due for longest comes first, each on its own clock.
        let overdue = |at: &Due| Reverse(at.clock(self.clocks()).since(at.at()));
        let first =
            all.filter(|(at, _)| is_due(at)).min_by_key(|(at, what)| (overdue(at), what.clone(), *at));
        first.map(|(_, what)| what)
    }

    /// Does what is due; the workflow it was due for.
    fn happen(&mut self, due: What) -> WorkflowRef {
        match due {
            What::Message(seq) => {
                self.come_due(seq);
                self.key_of(seq)
            }
            What::Expiry(seq) => {
                let key = self.key_of(seq);
                self.expire(seq);
                key
            }
            What::Gap(key) => {
                if let Some((_, due)) = &mut self.flow(&key).gap {
                    *due = None;
                }
                key
            }
            What::Sweep(key) => {
                self.flow(&key).sweep = None;
                if self.is_held_for(&key, HoldKind::Quarantine) {
                    let out = |state: &State| matches!(state, State::Locked(_));
                    let line = self.line(&key);
                    let line: Vec<u64> = line.into_iter().filter(|m| !out(&m.state)).map(|m| m.seq).collect();
                    let unreached: Vec<u64> = self.unreached(&key).iter().map(|m| m.seq).collect();
                    let unreached = unreached.into_iter().filter(|_| self.chained(&key));
                    let all: Vec<u64> = line.into_iter().chain(unreached).collect();
                    all.into_iter().for_each(|seq| self.kill(seq));
                } else if self.is_held_for(&key, HoldKind::Redriving) {
                    self.redrive_all(&key);
                }
                key
            }
        }
    }

    /// A message that is scheduled, failed or set aside is ready.
    pub(crate) fn come_due(&mut self, seq: u64) {
        let (now, wall) = (self.now, self.wall);
        let index = self.at(seq).expect("it is stored");
        let message = &mut self.messages[index];
        if matches!(message.state, State::Scheduled(_)) {
            // It begins to live now; what is left of its life is a duration.
            let of_wall = message.expires.filter(|expires| expires.is_of_wall());
            let left = of_wall.map(|expires| Due::engine(now + expires.at().since(wall)));
            message.expires = left.or(message.expires);
        }
        self.set(seq, State::Ready);
    }
}
