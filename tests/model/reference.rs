//! The naive reference: plain vectors and linear scans, written from the contract and from nothing else.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use seriatim::queue::HoldKind;

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
    pub(crate) exhausted: Policy,
    /// Skip a gap that has lasted; else hold.
    pub(crate) skip_gap: bool,
    pub(crate) drop_expired: bool,
    pub(crate) keep_deferred: bool,
    pub(crate) hold_on_defer: bool,
    pub(crate) window: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Early,
    Scheduled(u64),
    Failed(Option<u64>),
    ByConsumer {
        due: Option<u64>,
        aside: bool,
    },
    /// Handed out, with the instant at which it would have come back by itself.
    Locked {
        aside: bool,
        until: u64,
        back: Option<u64>,
        asked: bool,
    },
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
    /// How long it lives, which begins anew with a redrive.
    pub(crate) lives: Option<u64>,
    /// Whether it was set aside when no delivery was left, and so has one more.
    pub(crate) has_extra: bool,
}

impl Message {
    pub(crate) fn place(&self) -> u64 {
        self.position.unwrap_or(self.seq)
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Operator,
    Exhausted(u64),
    Gap,
    Quarantine,
}

impl Cause {
    pub(crate) fn kind(self) -> HoldKind {
        match self {
            Cause::Operator => HoldKind::Operator,
            Cause::Exhausted(_) => HoldKind::Exhausted,
            Cause::Gap => HoldKind::Gap,
            Cause::Quarantine => HoldKind::Quarantine,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Workflow {
    pub(crate) completed: BTreeSet<u64>,
    pub(crate) given_up: BTreeSet<u64>,
    /// Oldest first, at most one of each kind.
    pub(crate) held: Vec<Cause>,
    /// The first missing position and when the gap's wait is over.
    pub(crate) gap: Option<(u64, Option<u64>)>,
    pub(crate) done: u64,
}

impl Workflow {
    pub(crate) fn settled(&self, position: u64) -> bool {
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
    pub(crate) next_seq: u64,
    pub(crate) workflows: BTreeMap<Key, Workflow>,
    pub(crate) ids: BTreeMap<u64, (u64, u64)>,
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

    pub(crate) fn positional(&self, key: Key) -> bool {
        self.options.positional && matches!(key, Key::Named(_))
    }

    pub(crate) fn at(&self, seq: u64) -> Option<usize> {
        self.messages.iter().position(|message| message.seq == seq)
    }

    pub(crate) fn message(&self, seq: u64) -> Option<&Message> {
        self.at(seq).map(|index| &self.messages[index])
    }

    pub(crate) fn of(&mut self, key: Key) -> &mut Workflow {
        self.workflows.entry(key).or_default()
    }

    pub(crate) fn held(&self, key: Key) -> Vec<Cause> {
        self.workflows.get(&key).map(|workflow| workflow.held.clone()).unwrap_or_default()
    }

    pub(crate) fn is_held(&self, key: Key) -> bool {
        !self.held(key).is_empty()
    }

    pub(crate) fn is_held_for(&self, key: Key, kind: HoldKind) -> bool {
        self.held(key).iter().any(|cause| cause.kind() == kind)
    }

    /// Holds a workflow for one cause more.
    pub(crate) fn hold_for(&mut self, key: Key, cause: Cause) {
        if !self.is_held_for(key, cause.kind()) {
            self.of(key).held.push(cause);
        }
    }

    /// Whether the position has a message that is not a dead letter.
    pub(crate) fn live_at(&self, key: Key, position: u64) -> Option<&Message> {
        self.messages.iter().find(|m| m.key == key && m.position == Some(position) && !m.is_dead())
    }

    pub(crate) fn first_missing(&self, key: Key) -> u64 {
        let settled = |position| self.workflows.get(&key).is_some_and(|w| w.settled(position));
        (1..).find(|p| !settled(*p) && self.live_at(key, *p).is_none()).expect("positions are endless")
    }

    pub(crate) fn is_early(&self, message: &Message) -> bool {
        let missing = || self.first_missing(message.key);
        message.state == State::Ready
            && self.positional(message.key)
            && message.position.is_some_and(|position| position > missing())
    }

    /// The state as an observer sees it.
    pub(crate) fn shown(&self, message: &Message) -> State {
        match self.is_early(message) || self.is_behind_scheduled(message) {
            true => State::Early,
            false => message.state.clone(),
        }
    }

    /// A scheduled head is a known predecessor: what stands behind it waits as early.
    fn is_behind_scheduled(&self, message: &Message) -> bool {
        let head = || self.head(message.key).filter(|head| matches!(head.state, State::Scheduled(_)));
        message.state == State::Ready
            && self.positional(message.key)
            && head().is_some_and(|head| head.place() < message.place())
    }

    pub(crate) fn in_line(&self, message: &Message) -> bool {
        match message.state {
            State::Scheduled(_) => self.positional(message.key),
            State::ByConsumer { aside, .. } | State::Locked { aside, .. } => !aside,
            State::Dead(_) => false,
            _ => true,
        }
    }

    pub(crate) fn head(&self, key: Key) -> Option<&Message> {
        let line = self.messages.iter().filter(|m| m.key == key && self.in_line(m));
        line.min_by_key(|m| m.place())
    }

    pub(crate) fn is_locked(&self, key: Key) -> bool {
        self.messages.iter().any(|m| m.key == key && matches!(m.state, State::Locked { .. }))
    }

    /// The messages that a receive may hand out.
    pub(crate) fn offered(&self) -> Vec<u64> {
        let keys: BTreeSet<Key> = self.messages.iter().map(|m| m.key).collect();
        let free = keys.into_iter().filter(|key| !self.is_held(*key) && !self.is_locked(*key));
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
        if let (Some(dead_letter), Some(position)) = (key, position) {
            let key = Key::Named(dead_letter);
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
        self.messages.push(Message {
            seq,
            key,
            position,
            id,
            state,
            count: 0,
            expires,
            lives,
            has_extra: false,
        });
        self.after();
        if dead { Sent::DeadLettered(seq) } else { Sent::Accepted(seq) }
    }

    pub(crate) fn hand_out(&mut self, seq: u64) {
        let index = self.at(seq).expect("only stored messages are handed out");
        let until = self.now + LOCK;
        let message = &mut self.messages[index];
        message.count += 1;
        let (aside, back, asked) = match message.state {
            State::ByConsumer { due, aside } => (aside, due, true),
            _ => (false, None, false),
        };
        message.state = State::Locked { aside, until, back, asked };
        self.after();
    }

    pub(crate) fn can_fetch(&self, seq: u64) -> bool {
        let asked = |m: &&Message| matches!(m.state, State::ByConsumer { .. });
        self.message(seq).filter(asked).is_some_and(|m| !self.is_locked(m.key) && !self.is_held(m.key))
    }

    pub(crate) fn complete(&mut self, seq: u64) {
        let message = self.messages.remove(self.at(seq).expect("it is locked"));
        self.completed += 1;
        let workflow = self.of(message.key);
        workflow.done = workflow.done.max(message.place());
        if let Some(position) = message.position {
            workflow.completed.insert(position);
        }
        self.after();
    }

    pub(crate) fn give_up(&mut self, message: &Message) {
        if let Some(position) = message.position {
            self.of(message.key).given_up.insert(position);
        }
    }

    pub(crate) fn kill(&mut self, seq: u64, reason: &'static str) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].state = State::Dead(reason);
        let message = self.messages[index].clone();
        self.give_up(&message);
    }

    pub(crate) fn expire(&mut self, seq: u64) {
        let key = self.message(seq).expect("it is stored").key;
        self.lift(key, Cause::Exhausted(seq));
        if !self.options.drop_expired {
            return self.kill(seq, "TTLExpiredException");
        }
        let message = self.messages.remove(self.at(seq).expect("it is stored"));
        self.give_up(&message);
    }

    pub(crate) fn is_expired(&self, seq: u64) -> bool {
        self.message(seq).and_then(|m| m.expires).is_some_and(|expires| expires <= self.now)
    }

    /// A locked message failed; `due` is when it is tried again, if not at once.
    pub(crate) fn fail(&mut self, seq: u64, due: Option<u64>) {
        self.fail_quietly(seq, due);
        self.after();
    }

    pub(crate) fn fail_quietly(&mut self, seq: u64, due: Option<u64>) {
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let due = due.filter(|due| *due > self.now);
        let index = self.at(seq).expect("it is locked");
        let message = &mut self.messages[index];
        if let State::Locked { aside: true, back, .. } = message.state {
            message.state = State::ByConsumer { due: due.or(back), aside: true };
            if message.count >= self.options.count_max {
                self.kill(seq, "MaxDeliveryCountExceeded");
            }
            return;
        }
        let key = message.key;
        let by_another = [HoldKind::Exhausted, HoldKind::Quarantine];
        let held_by_another = by_another.into_iter().any(|kind| self.is_held_for(key, kind));
        if self.messages[index].count < self.options.count_max || held_by_another {
            let message = &mut self.messages[index];
            message.state = due.map_or(State::Ready, |due| State::Failed(Some(due)));
            return;
        }
        match (self.options.exhausted, key) {
            (_, Key::Single(_)) => self.kill(seq, "MaxDeliveryCountExceeded"),
            (Policy::Hold, _) => {
                self.messages[index].state = State::Failed(None);
                self.hold_for(key, Cause::Exhausted(seq));
            }
            (Policy::Skip, _) => self.kill(seq, "MaxDeliveryCountExceeded"),
            (Policy::Quarantine, _) => {
                self.kill(seq, "MaxDeliveryCountExceeded");
                self.hold_for(key, Cause::Quarantine);
            }
        }
    }

    pub(crate) fn release(&mut self, seq: u64) {
        let index = self.at(seq).expect("it is locked");
        self.messages[index].count -= 1;
        if self.is_expired(seq) {
            self.expire(seq);
        } else {
            let message = &mut self.messages[index];
            message.state = match message.state {
                State::Locked { asked: true, aside, back, .. } => State::ByConsumer { due: back, aside },
                _ => State::Ready,
            };
        }
        self.after();
    }

    pub(crate) fn defer(&mut self, seq: u64, due: Option<u64>) {
        let message = self.message(seq).expect("it is locked");
        if message.has_extra && message.count > self.options.count_max {
            return self.fail(seq, None);
        }
        if self.is_expired(seq) {
            self.expire(seq);
        } else {
            let index = self.at(seq).expect("it is locked");
            let message = &mut self.messages[index];
            let was_aside = matches!(message.state, State::Locked { aside: true, .. });
            let aside = was_aside || !self.options.hold_on_defer;
            message.state = State::ByConsumer { due, aside };
            message.has_extra = message.count >= self.options.count_max;
            if self.options.keep_deferred {
                message.expires = None;
            }
        }
        self.after();
    }

    pub(crate) fn dead_letter(&mut self, seq: u64) {
        self.kill(seq, "asked");
        self.after();
    }

    pub(crate) fn cancel(&mut self, seq: u64, void: bool) -> bool {
        let scheduled = |m: &Message| matches!(m.state, State::Scheduled(_));
        let Some(index) = self.at(seq).filter(|index| scheduled(&self.messages[*index])) else {
            return false;
        };
        let message = self.messages.remove(index);
        // What was cancelled may be sent again.
        self.ids.retain(|_, (known, _)| *known != seq);
        if void {
            self.give_up(&message);
        }
        self.after();
        true
    }

    /// Another instant; it lives from then on as long as it would have.
    pub(crate) fn reschedule(&mut self, seq: u64, at: u64) -> bool {
        let Some(index) = self.at(seq) else { return false };
        let begins = at.max(self.now);
        let message = &mut self.messages[index];
        let State::Scheduled(due) = message.state else { return false };
        message.expires = message.expires.map(|expires| expires - due + begins);
        message.state = State::Scheduled(at);
        self.after();
        true
    }
}
