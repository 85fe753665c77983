//! What operators do, and what happens when time has passed.

use crate::clock::Timestamp;
use crate::engine::rules::command::Operation;
use crate::engine::rules::record::Stream;
use crate::engine::simulation::reference::naive::Cause;
use crate::engine::simulation::reference::naive::Flow;
use crate::engine::simulation::reference::naive::Naive;
use crate::engine::simulation::reference::naive::State;
use crate::id::Position;

/// Something that is due: in which order things of one instant are done is not said by the contract.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Message(u64),
    Expiry(u64),
    Gap(Stream),
    Sweep(Stream),
}

impl Naive {
    /// Whether an operation is done.
    pub(crate) fn operate(&mut self, key: &Stream, operation: &Operation) -> bool {
        let is_known = self.exists(key) || self.lock(key).is_some();
        match operation {
            Operation::Hold { .. } => {
                self.hold(key, Cause::Operator);
                true
            }
            _ if !is_known => false,
            Operation::Resume { redrive } => self.resume(key, *redrive),
            Operation::RetryNow => self.retry_now(key),
            Operation::SkipHead { .. } => self.skip_head(key),
            Operation::VoidGap { range: None } => self.skip_gap(key),
            Operation::VoidGap { range: Some((from, to)) } => self.void(key, *from, *to),
            Operation::ReleaseLock => {
                let is_locked = self.lock(key).is_some();
                self.take_from_holder(key);
                is_locked
            }
        }
    }

    fn resume(&mut self, key: &Stream, redrive: bool) -> bool {
        if self.held(key).is_none() {
            return false;
        }
        match redrive {
            true => self.flow(key).held = Some(Cause::Redriving),
            false => self.end_hold(key),
        }
        true
    }

    fn end_hold(&mut self, key: &Stream) {
        let flow = self.flow(key);
        flow.gap = None;
        let spent = match flow.held.take() {
            Some(Cause::Spent(seq)) => Some(seq),
            _ => None,
        };
        self.try_again(spent);
        let head = self.head(key).map(|head| head.seq);
        self.try_again(head);
    }

    fn try_again(&mut self, seq: Option<u64>) {
        let seq = seq.filter(|seq| self.message(*seq).is_some_and(|m| m.state == State::Failed(None)));
        if let Some(seq) = seq {
            self.set(seq, State::Ready);
        }
    }

    fn retry_now(&mut self, key: &Stream) -> bool {
        let head = self.head(key).filter(|head| matches!(head.state, State::Failed(_))).map(|head| head.seq);
        let Some(seq) = head else { return false };
        self.set(seq, State::Ready);
        self.lift(key, Cause::Spent(seq));
        true
    }

    fn skip_head(&mut self, key: &Stream) -> bool {
        let is_beyond = |place: u64| self.positional(key) && place > self.first_missing(key);
        let head = self.head(key).filter(|head| !is_beyond(head.place())).map(|head| head.seq);
        let Some(seq) = head.filter(|_| self.lock(key).is_none()) else { return false };
        self.kill(seq);
        self.lift(key, Cause::Spent(seq));
        true
    }

    fn skip_gap(&mut self, key: &Stream) -> bool {
        if self.early(key) == 0 {
            return false;
        }
        self.give_up_gap(key);
        self.lift(key, Cause::Gap);
        true
    }

    fn void(&mut self, key: &Stream, from: Position, to: Position) -> bool {
        let (from, to) = (from.get(), to.get());
        let is_there = |position: u64| {
            self.live_at(key, position).is_some()
                || self.flows.get(key).is_some_and(|flow| flow.settled(position))
        };
        let is_positional = self.positional(key);
        if !is_positional || from > to || from < self.first() || (from..=to).any(is_there) {
            return false;
        }
        self.flow(key).given_up.extend(from..=to);
        self.lift(key, Cause::Gap);
        true
    }

    /// Puts back whatever can return to its place, and resumes.
    fn redrive_all(&mut self, key: &Stream) {
        let mut dead: Vec<(u64, u64)> = self
            .messages
            .iter()
            .filter(|message| message.key == *key && message.state == State::Dead)
            .map(|message| (message.place(), message.seq))
            .collect();
        dead.sort_unstable();
        for (_, seq) in dead {
            if self.is_place_ahead(seq) {
                self.put_back(seq);
            }
        }
        self.end_hold(key);
    }

    /// Whether a dead letter can return to its place: it is free, nothing behind it was completed or is handed out.
    pub(crate) fn is_place_ahead(&self, seq: u64) -> bool {
        let message = self.message(seq).expect("it is stored");
        if matches!(message.key, Stream::Single(_)) {
            return true;
        }
        let Some(flow) = self.flows.get(&message.key).filter(|flow| flow.held.is_some()) else {
            return false;
        };
        let is_taken =
            message.position.is_some_and(|position| self.live_at(&message.key, position).is_some());
        let out = flow.lock.iter().flat_map(|lock| &lock.out).filter_map(|seq| self.message(*seq));
        let is_overtaken = out.filter(|m| self.in_line(m)).any(|m| m.place() > message.place());
        message.place() > flow.done && !is_taken && !is_overtaken
    }

    pub(crate) fn put_back(&mut self, seq: u64) {
        let index = self.at(seq).expect("it is stored");
        let message = &mut self.messages[index];
        message.state = State::Ready;
        message.expires = None;
        let (key, position) = (message.key.clone(), message.position);
        if let Some(position) = position {
            self.flow(&key).given_up.remove(&position);
        }
    }

    /// Time has come to `now`: locks run out, then what is due happens in its order.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.now = now;
        while let Some(key) = self.next_lost() {
            self.take_from_holder(&key);
            self.close(&key);
        }
        while let Some(due) = self.next_due() {
            let key = self.happen(due);
            self.close(&key);
        }
    }

    fn next_lost(&self) -> Option<Stream> {
        let locks = self.flows.iter().filter_map(|(key, flow)| Some((key, flow.lock.as_ref()?)));
        let lost = locks.filter(|(_, lock)| lock.until <= self.now);
        lost.min_by_key(|(_, lock)| (lock.until, lock.number)).map(|(key, _)| key.clone())
    }

    /// What is to be done first of what is due.
    fn next_due(&self) -> Option<Due> {
        let is_due = |at: &Timestamp| *at <= self.now;
        let messages = self.messages.iter().filter_map(|message| match message.state {
            State::Scheduled(due) => Some((due, Due::Message(message.seq))),
            State::Failed(due) | State::Asked { due, .. } => Some((due?, Due::Message(message.seq))),
            _ => None,
        });
        let may_expire = |state: &State| !matches!(state, State::Dead | State::Locked(_));
        let expiries = self.messages.iter().filter(|message| may_expire(&message.state));
        let expiries = expiries.filter_map(|message| Some((message.expires?, Due::Expiry(message.seq))));
        let gap = |flow: &Flow| flow.gap.and_then(|(_, due)| due).filter(is_due);
        let gaps = self.flows.iter().filter_map(|(key, flow)| Some((gap(flow)?, Due::Gap(key.clone()))));
        let sweep = |flow: &Flow| flow.sweep.filter(is_due);
        let sweeps =
            self.flows.iter().filter_map(|(key, flow)| Some((sweep(flow)?, Due::Sweep(key.clone()))));
        let all = messages.chain(expiries).chain(gaps).chain(sweeps);
        all.filter(|(at, _)| is_due(at)).min().map(|(_, due)| due)
    }

    /// Does what is due; the workflow it was due for.
    fn happen(&mut self, due: Due) -> Stream {
        match due {
            Due::Message(seq) => {
                self.set(seq, State::Ready);
                self.key_of(seq)
            }
            Due::Expiry(seq) => {
                let key = self.key_of(seq);
                self.expire(seq);
                key
            }
            Due::Gap(key) => {
                if let Some((_, due)) = &mut self.flow(&key).gap {
                    *due = None;
                }
                key
            }
            Due::Sweep(key) => {
                self.flow(&key).sweep = None;
                match self.held(&key) {
                    Some(Cause::Quarantine) => {
                        let out = |state: &State| matches!(state, State::Locked(_));
                        let line = self.line(&key);
                        let line: Vec<u64> =
                            line.into_iter().filter(|m| !out(&m.state)).map(|m| m.seq).collect();
                        line.into_iter().for_each(|seq| self.kill(seq));
                    }
                    Some(Cause::Redriving) => self.redrive_all(&key),
                    _ => {}
                }
                key
            }
        }
    }
}
