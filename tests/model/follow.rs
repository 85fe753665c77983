//! What operators can do in the reference, and what follows from the passing of time and from every change.

use seriatim::queue::HoldKind;

use crate::model::reference::Cause;
use crate::model::reference::GAP;
use crate::model::reference::Key;
use crate::model::reference::Message;
use crate::model::reference::Reference;
use crate::model::reference::State;
use crate::model::reference::WINDOW;

impl Reference {
    pub(crate) fn hold(&mut self, key: Key) {
        self.hold_for(key, Cause::Operator);
        self.after();
    }

    pub(crate) fn resume(&mut self, key: Key) -> bool {
        let held = self.held(key);
        held.iter().for_each(|cause| self.lift_by_hand(key, *cause));
        self.after();
        !held.is_empty()
    }

    /// Lifts one cause only.
    pub(crate) fn resume_for(&mut self, key: Key, kind: HoldKind) -> bool {
        let cause = self.held(key).into_iter().find(|cause| cause.kind() == kind);
        if let Some(cause) = cause {
            self.lift_by_hand(key, cause);
            self.after();
        }
        cause.is_some()
    }

    /// What is exhausted is tried again, and a gap waits anew.
    fn lift_by_hand(&mut self, key: Key, cause: Cause) {
        self.lift(key, cause);
        if cause == Cause::Gap || !self.is_held(key) {
            self.of(key).gap = None;
        }
        let head = self.head(key).filter(|_| !self.is_held(key)).map(|m| m.seq);
        // A dead letter that was put back may have come before the one that is exhausted.
        let tried = |seq: &u64| head == Some(*seq) || cause == Cause::Exhausted(*seq);
        for seq in self.seqs().into_iter().filter(tried) {
            if self.message(seq).is_some_and(|m| m.state == State::Failed(None)) {
                self.make_ready(seq);
            }
        }
    }

    fn make_ready(&mut self, seq: u64) {
        self.set(seq, State::Ready);
        let index = self.at(seq).expect("it is stored");
        self.messages[index].has_extra = false;
    }

    fn set(&mut self, seq: u64, state: State) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].state = state;
    }

    pub(crate) fn retry_now(&mut self, key: Key) -> bool {
        let waits = |m: &&Message| matches!(m.state, State::Failed(_));
        let Some(seq) = self.head(key).filter(waits).map(|m| m.seq) else { return false };
        self.make_ready(seq);
        self.lift(key, Cause::Exhausted(seq));
        self.after();
        true
    }

    pub(crate) fn lift(&mut self, key: Key, cause: Cause) {
        self.of(key).held.retain(|held| *held != cause);
    }

    pub(crate) fn skip_head(&mut self, key: Key) -> bool {
        let missing = self.positional(key).then(|| self.first_missing(key));
        let beyond = |m: &Message| missing.is_some_and(|missing| m.place() > missing);
        let Some(head) = self.head(key).filter(|m| !beyond(m)) else { return false };
        let seq = head.seq;
        if self.is_locked(key) {
            return false;
        }
        self.kill(seq, "SkippedByOperator");
        self.lift(key, Cause::Exhausted(seq));
        self.after();
        true
    }

    pub(crate) fn skip_gap(&mut self, key: Key) -> bool {
        let waits = self.messages.iter().any(|m| m.key == key && self.is_early(m));
        if !waits {
            return false;
        }
        self.give_up_gap(key);
        self.after();
        true
    }

    fn give_up_gap(&mut self, key: Key) {
        let missing = self.first_missing(key);
        let line = self.messages.iter().filter(|m| m.key == key && self.in_line(m));
        let waiting = line.map(Message::place).filter(|place| *place > missing).min();
        let waiting = waiting.expect("something waits behind a gap");
        let workflow = self.of(key);
        for position in missing..waiting {
            if !workflow.settled(position) {
                workflow.given_up.insert(position);
            }
        }
    }

    pub(crate) fn release_lock(&mut self, key: Key) -> bool {
        let locked: Vec<u64> = self.locked().filter(|m| m.key == key).map(|m| m.seq).collect();
        for seq in &locked {
            self.fail_quietly(*seq, None);
        }
        self.after();
        !locked.is_empty()
    }

    fn locked(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|m| matches!(m.state, State::Locked { .. }))
    }

    /// `Some(None)` is in place, `Some(Some(seq))` as a new message.
    pub(crate) fn redrive(&mut self, seq: u64) -> Option<Option<u64>> {
        let index = self.at(seq).filter(|index| self.messages[*index].is_dead())?;
        let message = self.messages[index].clone();
        let workflow = self.of(message.key).clone();
        if self.is_held_for(message.key, HoldKind::Quarantine) {
            return None;
        }
        let single = matches!(message.key, Key::Single(_));
        let free = message.position.is_none_or(|position| self.live_at(message.key, position).is_none());
        let behind = |m: &&Message| m.key == message.key && self.in_line(m) && m.place() > message.place();
        let out = |m: &Message| matches!(m.state, State::Locked { .. });
        let later_out = self.messages.iter().filter(behind).any(out);
        if single || !workflow.held.is_empty() && message.place() > workflow.done && free && !later_out {
            let put_back = &mut self.messages[index];
            // It begins anew: the delivery that an earlier deferral allowed it beyond the maximum is forgotten.
            (put_back.state, put_back.has_extra) = (State::Ready, false);
            put_back.expires = put_back.lives.map(|lives| self.now + lives);
            if let Some(position) = message.position {
                self.of(message.key).given_up.remove(&position);
            }
            self.after();
            return Some(None);
        }
        if self.positional(message.key) {
            return None;
        }
        self.messages.remove(index);
        let seq = self.next_seq;
        self.next_seq += 1;
        if let (true, Some(id)) = (self.options.window, message.id) {
            self.ids.insert(id, (seq, self.now + WINDOW));
        }
        let expires = message.lives.map(|lives| self.now + lives);
        let has_extra = false;
        self.messages.push(Message { seq, state: State::Ready, count: 0, expires, has_extra, ..message });
        self.after();
        Some(Some(seq))
    }

    /// When the next thing is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let of_message = |m: &Message| {
            let due = match m.state {
                State::Scheduled(due) | State::Locked { until: due, .. } => Some(due),
                State::Failed(due) | State::ByConsumer { due, .. } => due,
                _ => None,
            };
            let expires = m.expires.filter(|expires| !m.is_dead() && *expires > self.now);
            [due, expires].into_iter().flatten().min()
        };
        let messages = self.messages.iter().filter_map(of_message);
        let gaps = self.workflows.values().filter_map(|w| w.gap.and_then(|(_, due)| due));
        messages.chain(gaps).min()
    }

    /// Moves the clock; nothing may be due before the new instant.
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
        let lost = |m: &&Message| matches!(m.state, State::Locked { until, .. } if until <= now);
        let lost: Vec<u64> = self.messages.iter().filter(lost).map(|m| m.seq).collect();
        for seq in lost {
            self.fail_quietly(seq, None);
            self.after_without_sweep();
        }
        for seq in self.seqs() {
            let due = match self.message(seq).map(|m| &m.state) {
                Some(State::Scheduled(due)) => Some(*due),
                Some(State::Failed(due) | State::ByConsumer { due, .. }) => *due,
                _ => None,
            };
            if due.is_some_and(|due| due <= now) {
                self.set(seq, State::Ready);
                self.after_without_sweep();
            }
        }
        for seq in self.seqs() {
            let stays = |m: &Message| m.is_dead() || matches!(m.state, State::Locked { .. });
            if self.is_expired(seq) && !self.message(seq).is_some_and(stays) {
                self.expire(seq);
                self.after_without_sweep();
            }
        }
        for workflow in self.workflows.values_mut() {
            if let Some((_, due)) = &mut workflow.gap
                && due.is_some_and(|due| due <= now)
            {
                *due = None;
            }
        }
        self.after();
    }

    fn seqs(&self) -> Vec<u64> {
        let mut seqs: Vec<u64> = self.messages.iter().map(|m| m.seq).collect();
        seqs.sort_unstable();
        seqs
    }

    /// What follows from every change: gaps are watched, and quarantined workflows are swept.
    pub(crate) fn after(&mut self) {
        // What comes back aside after the instant it was set aside until is ready at once.
        for message in &mut self.messages {
            if matches!(message.state, State::ByConsumer { due: Some(due), .. } if due <= self.now) {
                message.state = State::Ready;
            }
        }
        self.after_without_sweep();
        let swept: Vec<u64> = self
            .messages
            .iter()
            .filter(|m| self.is_held_for(m.key, HoldKind::Quarantine) && self.in_line(m))
            .filter(|m| !matches!(m.state, State::Locked { .. }))
            .map(|m| m.seq)
            .collect();
        for seq in swept {
            self.kill(seq, "Quarantined");
        }
        self.after_without_sweep();
    }

    fn after_without_sweep(&mut self) {
        let keys: Vec<Key> = self.workflows.keys().copied().filter(|key| self.positional(*key)).collect();
        for key in keys {
            self.judge_gap(key);
            let waits = self.messages.iter().any(|m| m.key == key && self.is_early(m));
            let missing = self.first_missing(key);
            let due = Some(self.now + GAP);
            let workflow = self.of(key);
            workflow.gap = match workflow.gap {
                _ if !waits => None,
                Some((at, due)) if at == missing => Some((at, due)),
                _ => Some((missing, due)),
            };
            // A hold for a gap ends with it.
            if workflow.gap.is_none_or(|(_, due)| due.is_some()) {
                self.lift(key, Cause::Gap);
            }
        }
    }

    fn judge_gap(&mut self, key: Key) {
        let Some((at, None)) = self.workflows.get(&key).and_then(|w| w.gap) else { return };
        let waits = self.messages.iter().any(|m| m.key == key && self.is_early(m));
        let before = self.head(key).is_some_and(|head| head.place() < at);
        let reached = !before && self.first_missing(key) == at;
        if !waits || !reached {
            return;
        }
        match self.options.skip_gap {
            true if self.is_held(key) => {}
            true => self.give_up_gap(key),
            false => self.hold_for(key, Cause::Gap),
        }
    }
}
