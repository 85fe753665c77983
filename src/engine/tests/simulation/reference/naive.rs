//! One queue as the contract describes it: its messages, its workflows, and what follows from their places.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::chain::Link;
use crate::id::MessageId;
use crate::id::WorkflowId;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// Where a message is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Scheduled(Due),
    Failed(Option<Due>),
    ByConsumer {
        due: Option<Due>,
        aside: bool,
    },
    /// With how it was set aside, if it was fetched by number.
    Locked(Option<(Option<Due>, bool)>),
    Dead,
}

impl State {
    /// What is handed out and was not started is as it was before.
    pub(crate) fn of_unstarted(&self) -> State {
        match self {
            State::Locked(Some((due, aside))) => State::ByConsumer { due: *due, aside: *aside },
            _ => State::Ready,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) seq: u64,
    pub(crate) key: WorkflowRef,
    /// As its sender named it, even where that means nothing.
    pub(crate) workflow_id: Option<WorkflowId>,
    /// Its position; in after-order the place that the chain has given it.
    pub(crate) position: Option<u64>,
    /// Whether the chain gives it its place, and who stands before it there.
    pub(crate) is_linked: bool,
    pub(crate) after: Option<MessageId>,
    pub(crate) id: Option<MessageId>,
    pub(crate) body: Bytes,
    pub(crate) state: State,
    pub(crate) count: u32,
    /// When it was last handed out or hidden; until then, when it was accepted.
    pub(crate) handed_at: Timestamp,
    pub(crate) expires: Option<Due>,
    /// As its sender said it.
    pub(crate) lives: Option<Duration>,
    pub(crate) suspect: Suspect,
    /// Whether it was set aside when no delivery was left, and so has one more.
    pub(crate) has_extra: bool,
    /// Whether it is dead because nothing was known of its predecessor.
    pub(crate) is_stray: bool,
}

/// Whether a message was in a run that failed without a word on where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    No,
    /// Not delivered alone yet: its delivery in the run is still to be returned.
    New,
    Known,
}

impl Message {
    pub(crate) fn place(&self) -> u64 {
        // What the chain has not reached is before everything: it never is in the line.
        self.position.unwrap_or(if self.is_linked { 0 } else { self.seq })
    }

    /// The first delivery of a suspect alone takes the place of the one in the run.
    pub(crate) fn count_delivery(&mut self) {
        match self.suspect {
            Suspect::New => self.suspect = Suspect::Known,
            Suspect::No | Suspect::Known => self.count += 1,
        }
    }
}

/// Why a workflow is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Operator,
    Exhausted(u64),
    Gap,
    Predecessor,
    Quarantine,
    Redriving,
}

impl Cause {
    pub(crate) fn kind(self) -> HoldKind {
        match self {
            Cause::Operator => HoldKind::Operator,
            Cause::Exhausted(_) => HoldKind::Exhausted,
            Cause::Gap => HoldKind::Gap,
            Cause::Predecessor => HoldKind::Predecessor,
            Cause::Quarantine => HoldKind::Quarantine,
            Cause::Redriving => HoldKind::Redriving,
        }
    }
}

/// Who holds a workflow.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    pub(crate) token: LockToken,
    pub(crate) until: Timestamp,
    pub(crate) is_whole: bool,
    /// Whether what it was given for is a run.
    pub(crate) is_run: bool,
    /// Whether its holder wants to keep what he has ahead of a message that fails.
    pub(crate) is_apart: bool,
    pub(crate) out: Vec<u64>,
    /// What was taken back because its holder gave back one before it, and what he was not handed again since.
    pub(crate) given_back_behind: Vec<u64>,
    /// Of locks that end at one instant, the one granted first ends first.
    pub(crate) number: u64,
}

/// What is known of a workflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) completed: BTreeSet<u64>,
    /// Settled, but never handled.
    pub(crate) given_up: BTreeSet<u64>,
    /// Who follows whom, in after-order.
    pub(crate) links: Vec<Link>,
    /// The first place that was never settled with all before it.
    pub(crate) cursor: u64,
    /// The highest place that was completed.
    pub(crate) done: u64,
    /// Oldest first, at most one of each kind.
    pub(crate) held: Vec<Cause>,
    /// The first missing position, and when its wait is over. In after-order the number of the stray that is waited for.
    pub(crate) gap: Option<(u64, Option<Timestamp>)>,
    pub(crate) state: Option<Bytes>,
    pub(crate) state_set_at: Option<Timestamp>,
    pub(crate) lock: Option<Lock>,
    /// When what it holds is to be dead-lettered or put back.
    pub(crate) sweep: Option<Timestamp>,
    pub(crate) idle_since: Option<Timestamp>,
    /// Since when the workflow is forgotten, and only its places are remembered.
    pub(crate) forgotten_at: Option<Timestamp>,
}

impl Flow {
    pub(crate) fn settled(&self, position: u64) -> bool {
        self.completed.contains(&position) || self.given_up.contains(&position)
    }
}

/// A queue.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    pub(crate) options: QueueOptions,
    /// Engine time, and what people call the time.
    pub(crate) now: Timestamp,
    pub(crate) wall: Timestamp,
    pub(crate) messages: Vec<Message>,
    pub(crate) flows: BTreeMap<WorkflowRef, Flow>,
    pub(crate) ids: BTreeMap<MessageId, (u64, Timestamp)>,
    /// Locks granted so far.
    pub(crate) granted: u64,
    /// Whether what was due was done in several turns.
    pub(crate) in_several: bool,
}

impl Naive {
    pub(crate) fn new(options: QueueOptions, clocks: ClockInstants) -> Naive {
        let (messages, flows, ids) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let ClockInstants { engine: now, wall } = clocks;
        Naive { options, now, wall, messages, flows, ids, granted: 0, in_several: false }
    }

    pub(crate) fn clocks(&self) -> ClockInstants {
        ClockInstants { engine: self.now, wall: self.wall }
    }

    pub(crate) fn at(&self, seq: u64) -> Option<usize> {
        self.messages.iter().position(|message| message.seq == seq)
    }

    pub(crate) fn message(&self, seq: u64) -> Option<&Message> {
        self.messages.iter().find(|message| message.seq == seq)
    }

    pub(crate) fn key_of(&self, seq: u64) -> WorkflowRef {
        self.message(seq).expect("it is stored").key.clone()
    }

    pub(crate) fn set(&mut self, seq: u64, state: State) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].state = state;
    }

    pub(crate) fn remove(&mut self, seq: u64) -> Message {
        let index = self.at(seq).expect("it is stored");
        self.messages.remove(index)
    }

    pub(crate) fn flow(&mut self, key: &WorkflowRef) -> &mut Flow {
        if !self.flows.contains_key(key) {
            self.flows.insert(key.clone(), Flow::default());
        }
        self.flows.get_mut(key).expect("it is there")
    }

    /// Its state is set, or cleared.
    pub(crate) fn set_state(&mut self, key: &WorkflowRef, state: Option<Bytes>) {
        let at = state.is_some().then_some(self.wall);
        let flow = self.flow(key);
        (flow.state, flow.state_set_at) = (state, at);
    }

    pub(crate) fn is_held(&self, key: &WorkflowRef) -> bool {
        self.flows.get(key).is_some_and(|flow| !flow.held.is_empty())
    }

    /// What a workflow is held for.
    pub(crate) fn held(&self, key: &WorkflowRef) -> Vec<Cause> {
        self.flows.get(key).map(|flow| flow.held.clone()).unwrap_or_default()
    }

    pub(crate) fn is_held_for(&self, key: &WorkflowRef, kind: HoldKind) -> bool {
        self.held(key).iter().any(|cause| cause.kind() == kind)
    }

    pub(crate) fn lock(&self, key: &WorkflowRef) -> Option<&Lock> {
        self.flows.get(key).and_then(|flow| flow.lock.as_ref())
    }

    /// The position every workflow begins with.
    pub(crate) fn first(&self) -> u64 {
        match self.options.order {
            Order::Position { first } => first.get(),
            _ => 1,
        }
    }

    pub(crate) fn positional(&self, key: &WorkflowRef) -> bool {
        matches!(self.options.order, Order::Position { .. }) && matches!(key, WorkflowRef::Named(_))
    }

    /// Whether its messages have places that can be missing.
    pub(crate) fn placed(&self, key: &WorkflowRef) -> bool {
        self.positional(key) || self.chained(key)
    }

    /// The message that has a position and is not a dead letter.
    pub(crate) fn live_at(&self, key: &WorkflowRef, position: u64) -> Option<&Message> {
        let here = |m: &&Message| m.key == *key && m.position == Some(position) && m.state != State::Dead;
        self.messages.iter().find(here)
    }

    pub(crate) fn first_missing(&self, key: &WorkflowRef) -> u64 {
        let live = self.messages.iter().filter(|m| m.key == *key && m.state != State::Dead);
        let live: Vec<u64> = live.filter_map(|message| message.position).collect();
        let flow = self.flows.get(key);
        let settled = |position| flow.is_some_and(|flow| flow.settled(position));
        let missing = |position: &u64| !settled(*position) && !live.contains(position);
        (self.first()..).find(missing).expect("positions are endless")
    }

    pub(crate) fn is_early(&self, message: &Message) -> bool {
        let is_beyond = |position: u64| position > self.first_missing(&message.key);
        let is_early = match self.chained(&message.key) {
            true => message.position.is_none(),
            false => self.positional(&message.key) && message.position.is_some_and(is_beyond),
        };
        message.state == State::Ready && is_early
    }

    /// How many messages of a workflow wait for a predecessor.
    pub(crate) fn early(&self, key: &WorkflowRef) -> u64 {
        if self.chained(key) {
            return self.unreached(key).iter().filter(|m| m.state == State::Ready).count() as u64;
        }
        if !self.positional(key) {
            return 0;
        }
        let missing = self.first_missing(key);
        let of_workflow = self.messages.iter().filter(|m| m.key == *key && m.state == State::Ready);
        of_workflow.filter(|message| message.place() > missing).count() as u64
    }

    /// Whether the workflow waits for this message, or will come to it.
    pub(crate) fn in_line(&self, message: &Message) -> bool {
        match message.state {
            _ if self.chained(&message.key) && message.position.is_none() => false,
            State::Scheduled(_) => self.placed(&message.key),
            State::ByConsumer { aside, .. } | State::Locked(Some((_, aside))) => !aside,
            State::Dead => false,
            _ => true,
        }
    }

    /// The messages of a workflow's line, in order.
    pub(crate) fn line(&self, key: &WorkflowRef) -> Vec<&Message> {
        let mut line: Vec<&Message> =
            self.messages.iter().filter(|m| m.key == *key && self.in_line(m)).collect();
        line.sort_by_key(|message| message.place());
        line
    }

    pub(crate) fn head(&self, key: &WorkflowRef) -> Option<&Message> {
        let in_line = |message: &&Message| message.key == *key && self.in_line(message);
        self.messages.iter().filter(in_line).min_by_key(|message| message.place())
    }

    /// Whether nothing is stored of a workflow.
    pub(crate) fn is_empty(&self, key: &WorkflowRef) -> bool {
        let kept = self.flows.get(key).is_some_and(|flow| flow.state.is_some() || !flow.held.is_empty());
        !kept && !self.messages.iter().any(|message| message.key == *key)
    }

    /// Whether a workflow is known.
    pub(crate) fn exists(&self, key: &WorkflowRef) -> bool {
        let is_kept = |flow: &Flow| flow.sweep.is_some() || flow.idle_since.is_some();
        !self.is_empty(key) || self.flows.get(key).is_some_and(is_kept)
    }
}
