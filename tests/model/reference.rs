//! The naive reference: plain vectors and linear scans, written from the contract and from nothing else.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// The lock, the gap's wait and the duplicate window, in milliseconds.
pub(crate) const LOCK: u64 = 30_000;
pub(crate) const GAP: u64 = 10_000;
pub(crate) const WINDOW: u64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Hold,
    Skip,
    Quarantine,
}

/// The queue's options, as far as the reference knows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) positional: bool,
    pub(crate) count_max: u32,
    pub(crate) spent: Policy,
    /// Skip a gap that has lasted; else hold.
    pub(crate) skip_gap: bool,
    pub(crate) drop_expired: bool,
    pub(crate) hold_on_defer: bool,
    pub(crate) window: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Early,
    Scheduled(u64),
    Failed(Option<u64>),
    Asked { due: Option<u64>, aside: bool },
    Locked { aside: bool, until: u64 },
    Dead(&'static str),
}

/// A workflow by its letter, or the message that is one for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Single(u64),
    Named(char),
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) seq: u64,
    pub(crate) key: Key,
    pub(crate) position: Option<u64>,
    pub(crate) id: Option<u64>,
    pub(crate) state: State,
    pub(crate) count: u32,
    pub(crate) expires: Option<u64>,
}

impl Message {
    fn place(&self) -> u64 {
        self.position.unwrap_or(self.seq)
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Operator,
    Spent(u64),
    Gap,
    Quarantine,
}

#[derive(Clone, Debug, Default)]
struct Workflow {
    completed: BTreeSet<u64>,
    given_up: BTreeSet<u64>,
    held: Option<Cause>,
    /// The first missing position and when the gap's wait is over.
    gap: Option<(u64, Option<u64>)>,
    high: u64,
}

impl Workflow {
    fn settled(&self, position: u64) -> bool {
        self.completed.contains(&position) || self.given_up.contains(&position)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Accepted(u64),
    Duplicate(u64),
    AlreadySettled,
    DeadLettered(u64),
    Refused,
}

pub(crate) struct Reference {
    pub(crate) now: u64,
    pub(crate) options: Options,
    pub(crate) messages: Vec<Message>,
    next_seq: u64,
    workflows: BTreeMap<Key, Workflow>,
    ids: BTreeMap<u64, (u64, u64)>,
    pub(crate) completed: u64,
    pub(crate) accepted: u64,
}

impl Reference {
    pub(crate) fn new(now: u64, options: Options) -> Reference {
        Reference {
            now,
            options,
            messages: Vec::new(),
            next_seq: 1,
            workflows: BTreeMap::new(),
            ids: BTreeMap::new(),
            completed: 0,
            accepted: 0,
        }
    }

    fn positional(&self, key: Key) -> bool {
        self.options.positional && matches!(key, Key::Named(_))
    }

    fn at(&self, seq: u64) -> Option<usize> {
        self.messages.iter().position(|message| message.seq == seq)
    }

    pub(crate) fn message(&self, seq: u64) -> Option<&Message> {
        self.at(seq).map(|index| &self.messages[index])
    }

    fn of(&mut self, key: Key) -> &mut Workflow {
        self.workflows.entry(key).or_default()
    }

    pub(crate) fn held(&self, key: Key) -> Option<Cause> {
        self.workflows.get(&key).and_then(|workflow| workflow.held)
    }

    /// Whether the position has a message that is not a dead letter.
    fn live_at(&self, key: Key, position: u64) -> Option<&Message> {
        self.messages.iter().find(|m| m.key == key && m.position == Some(position) && !m.is_dead())
    }

    fn first_missing(&self, key: Key) -> u64 {
        let settled = |position| self.workflows.get(&key).is_some_and(|w| w.settled(position));
        (1..).find(|p| !settled(*p) && self.live_at(key, *p).is_none()).expect("positions are endless")
    }

    fn is_early(&self, message: &Message) -> bool {
        let missing = || self.first_missing(message.key);
        message.state == State::Ready
            && self.positional(message.key)
            && message.position.is_some_and(|position| position > missing())
    }

    /// The state as an observer sees it.
    pub(crate) fn shown(&self, message: &Message) -> State {
        if self.is_early(message) { State::Early } else { message.state.clone() }
    }

    fn in_line(&self, message: &Message) -> bool {
        match message.state {
            State::Scheduled(_) => self.positional(message.key),
            State::Asked { aside, .. } | State::Locked { aside, .. } => !aside,
            State::Dead(_) => false,
            _ => true,
        }
    }

    fn head(&self, key: Key) -> Option<&Message> {
        let line = self.messages.iter().filter(|m| m.key == key && self.in_line(m));
        line.min_by_key(|m| m.place())
    }

    fn is_locked(&self, key: Key) -> bool {
        self.messages.iter().any(|m| m.key == key && matches!(m.state, State::Locked { .. }))
    }

    /// The messages that a receive may hand out.
    pub(crate) fn offered(&self) -> Vec<u64> {
        let keys: BTreeSet<Key> = self.messages.iter().map(|m| m.key).collect();
        let free = keys.into_iter().filter(|key| self.held(*key).is_none() && !self.is_locked(*key));
        let heads = free.filter_map(|key| self.head(key));
        heads.filter(|m| m.state == State::Ready && !self.is_early(m)).map(|m| m.seq).collect()
    }

    pub(crate) fn send(
        &mut self,
        key: Option<char>,
        position: Option<u64>,
        id: Option<u64>,
        schedule: Option<u64>,
        lives: Option<u64>,
    ) -> Sent {
        let fits = position.is_some() == (self.options.positional && key.is_some());
        if !fits {
            return Sent::Refused;
        }
        if let (true, Some(id)) = (self.options.window, id)
            && let Some((seq, _)) = self.ids.get(&id).filter(|(_, until)| self.now < *until)
        {
            return Sent::Duplicate(*seq);
        }
        let mut dead = false;
        if let (Some(letter), Some(position)) = (key, position) {
            let key = Key::Named(letter);
            if let Some(pending) = self.live_at(key, position) {
                let same = id.is_none() && pending.id.is_none() || id.is_some() && id == pending.id;
                return if same { Sent::Duplicate(pending.seq) } else { Sent::Refused };
            }
            let workflow = self.of(key);
            if workflow.completed.contains(&position) {
                return Sent::AlreadySettled;
            }
            dead = workflow.given_up.contains(&position);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        self.accepted += 1;
        if let (true, Some(id)) = (self.options.window, id) {
            self.ids.insert(id, (seq, self.now + WINDOW));
        }
        let due = schedule.filter(|due| *due > self.now);
        let state = match (dead, due) {
            (true, _) => State::Dead("arrived_after_gap"),
            (false, Some(due)) => State::Scheduled(due),
            (false, None) => State::Ready,
        };
        let expires = lives.map(|lives| due.unwrap_or(self.now) + lives);
        let key = key.map_or(Key::Single(seq), Key::Named);
        self.messages.push(Message { seq, key, position, id, state, count: 0, expires });
        self.after();
        if dead { Sent::DeadLettered(seq) } else { Sent::Accepted(seq) }
    }

    pub(crate) fn hand_out(&mut self, seq: u64) {
        let index = self.at(seq).expect("only stored messages are handed out");
        let until = self.now + LOCK;
        let message = &mut self.messages[index];
        message.count += 1;
        let aside = matches!(message.state, State::Asked { aside: true, .. });
        message.state = State::Locked { aside, until };
        let (key, place) = (message.key, message.place());
        if !aside {
            let workflow = self.of(key);
            workflow.high = workflow.high.max(place);
        }
        self.after();
    }

    pub(crate) fn can_fetch(&self, seq: u64) -> bool {
        let asked = |m: &&Message| matches!(m.state, State::Asked { .. });
        self.message(seq).filter(asked).is_some_and(|m| !self.is_locked(m.key) && self.held(m.key).is_none())
    }

    pub(crate) fn complete(&mut self, seq: u64) {
        let message = self.messages.remove(self.at(seq).expect("it is locked"));
        self.completed += 1;
        if let Some(position) = message.position {
            self.of(message.key).completed.insert(position);
        }
        self.after();
    }

    fn give_up(&mut self, message: &Message) {
        if let Some(position) = message.position {
            self.of(message.key).given_up.insert(position);
        }
    }

    fn kill(&mut self, seq: u64, reason: &'static str) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].state = State::Dead(reason);
        let message = self.messages[index].clone();
        self.give_up(&message);
    }

    fn expire(&mut self, seq: u64) {
        if !self.options.drop_expired {
            return self.kill(seq, "TTLExpiredException");
        }
        let message = self.messages.remove(self.at(seq).expect("it is stored"));
        self.give_up(&message);
    }

    fn is_expired(&self, seq: u64) -> bool {
        self.message(seq).and_then(|m| m.expires).is_some_and(|expires| expires <= self.now)
    }

    /// A locked message failed; `due` is when it is tried again, if not at once.
    pub(crate) fn fail(&mut self, seq: u64, due: Option<u64>) {
        self.fail_quietly(seq, due);
        self.after();
    }

    fn fail_quietly(&mut self, seq: u64, due: Option<u64>) {
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let due = due.filter(|due| *due > self.now);
        let index = self.at(seq).expect("it is locked");
        let message = &mut self.messages[index];
        if matches!(message.state, State::Locked { aside: true, .. }) {
            message.state = State::Asked { due, aside: true };
            return;
        }
        if message.count < self.options.count_max {
            message.state = due.map_or(State::Ready, |due| State::Failed(Some(due)));
            return;
        }
        let key = message.key;
        match self.options.spent {
            Policy::Hold => {
                message.state = State::Failed(None);
                self.of(key).held.get_or_insert(Cause::Spent(seq));
            }
            Policy::Skip => self.kill(seq, "MaxDeliveryCountExceeded"),
            Policy::Quarantine => {
                self.kill(seq, "MaxDeliveryCountExceeded");
                self.of(key).held.get_or_insert(Cause::Quarantine);
            }
        }
    }

    pub(crate) fn release(&mut self, seq: u64) {
        if self.is_expired(seq) {
            self.expire(seq);
        } else {
            let index = self.at(seq).expect("it is locked");
            let message = &mut self.messages[index];
            message.count -= 1;
            message.state = match message.state {
                State::Locked { aside: true, .. } => State::Asked { due: None, aside: true },
                _ => State::Ready,
            };
        }
        self.after();
    }

    pub(crate) fn defer(&mut self, seq: u64, due: Option<u64>) {
        if self.is_expired(seq) {
            self.expire(seq);
        } else {
            let index = self.at(seq).expect("it is locked");
            let message = &mut self.messages[index];
            let was_aside = matches!(message.state, State::Locked { aside: true, .. });
            let aside = was_aside || !self.options.hold_on_defer;
            message.state = State::Asked { due, aside };
        }
        self.after();
    }

    pub(crate) fn dead_letter(&mut self, seq: u64) {
        self.kill(seq, "asked");
        self.after();
    }

    pub(crate) fn cancel(&mut self, seq: u64) -> bool {
        let scheduled = |m: &Message| matches!(m.state, State::Scheduled(_));
        let Some(index) = self.at(seq).filter(|index| scheduled(&self.messages[*index])) else {
            return false;
        };
        let message = self.messages.remove(index);
        self.give_up(&message);
        self.after();
        true
    }

    pub(crate) fn hold(&mut self, key: Key) {
        self.of(key).held.get_or_insert(Cause::Operator);
        self.after();
    }

    pub(crate) fn resume(&mut self, key: Key) -> bool {
        if self.held(key).is_none() {
            return false;
        }
        let workflow = self.of(key);
        (workflow.held, workflow.gap) = (None, None);
        if let Some(seq) = self.head(key).filter(|m| m.state == State::Failed(None)).map(|m| m.seq) {
            self.set(seq, State::Ready);
        }
        self.after();
        true
    }

    fn set(&mut self, seq: u64, state: State) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].state = state;
    }

    pub(crate) fn retry_now(&mut self, key: Key) -> bool {
        let waits = |m: &&Message| matches!(m.state, State::Failed(_));
        let Some(seq) = self.head(key).filter(waits).map(|m| m.seq) else { return false };
        self.set(seq, State::Ready);
        self.lift(key, Cause::Spent(seq));
        self.after();
        true
    }

    fn lift(&mut self, key: Key, cause: Cause) {
        let workflow = self.of(key);
        workflow.held = workflow.held.filter(|held| *held != cause);
    }

    pub(crate) fn skip_head(&mut self, key: Key) -> bool {
        let Some(head) = self.head(key).filter(|m| !self.is_early(m)) else { return false };
        let seq = head.seq;
        if self.is_locked(key) {
            return false;
        }
        self.kill(seq, "SkippedByOperator");
        self.lift(key, Cause::Spent(seq));
        self.after();
        true
    }

    pub(crate) fn skip_gap(&mut self, key: Key) -> bool {
        let waits = self.messages.iter().any(|m| m.key == key && self.is_early(m));
        if !waits {
            return false;
        }
        self.give_up_gap(key);
        self.lift(key, Cause::Gap);
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
        let single = matches!(message.key, Key::Single(_));
        let free = message.position.is_none_or(|position| self.live_at(message.key, position).is_none());
        if single || workflow.held.is_some() && message.place() >= workflow.high && free {
            self.messages[index].state = State::Ready;
            self.messages[index].expires = None;
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
        self.messages.push(Message { seq, state: State::Ready, count: 0, expires: None, ..message });
        self.after();
        Some(Some(seq))
    }

    /// When the next thing is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let of_message = |m: &Message| {
            let due = match m.state {
                State::Scheduled(due) | State::Locked { until: due, .. } => Some(due),
                State::Failed(due) | State::Asked { due, .. } => due,
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
                Some(State::Failed(due) | State::Asked { due, .. }) => *due,
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
    fn after(&mut self) {
        self.after_without_sweep();
        let swept: Vec<u64> = self
            .messages
            .iter()
            .filter(|m| self.held(m.key) == Some(Cause::Quarantine) && self.in_line(m))
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
        }
    }

    fn judge_gap(&mut self, key: Key) {
        let Some((at, None)) = self.workflows.get(&key).and_then(|w| w.gap) else { return };
        let waits = self.messages.iter().any(|m| m.key == key && self.is_early(m));
        let before = self.head(key).is_some_and(|head| head.place() < at);
        let reached = !before && !self.is_locked(key) && self.first_missing(key) == at;
        if !waits || !reached || self.held(key).is_some() {
            return;
        }
        if self.options.skip_gap {
            self.give_up_gap(key);
        } else {
            self.of(key).held = Some(Cause::Gap);
        }
    }
}
