//! What may be handed out.

use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::naive::Lock;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::naive::Suspect;
use crate::token::LockToken;

/// What a lock is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockOf {
    Messages,
    Run,
    Workflow,
}

impl Naive {
    /// The workflows that offer something.
    pub(crate) fn offering(&self) -> Vec<WorkflowRef> {
        let is_free = |key: &&WorkflowRef| !self.is_held(key) && self.lock(key).is_none();
        let offers = |key: &&WorkflowRef| {
            self.head(key).is_some_and(|head| head.state == State::Ready && !self.is_early(head))
        };
        self.flows.keys().filter(is_free).filter(offers).cloned().collect()
    }

    /// What the holder of a workflow may be handed next, in order.
    pub(crate) fn run(&self, key: &WorkflowRef) -> Vec<u64> {
        let mut run = Vec::new();
        if self.is_held(key) {
            return run;
        }
        let (mut out, mut is_alone) = (0, false);
        for message in self.line(key) {
            let is_suspect = message.suspect != Suspect::No;
            match message.state {
                State::Locked(_) => {}
                State::Ready if !self.is_early(message) => {
                    // A suspect is never out with another.
                    if is_alone || is_suspect && out > 0 {
                        break;
                    }
                    run.push(message.seq);
                }
                _ => break,
            }
            (out, is_alone) = (out + 1, is_alone || is_suspect);
        }
        run
    }

    pub(crate) fn grant(&mut self, key: &WorkflowRef, token: LockToken, of: LockOf) {
        self.granted += 1;
        let until = self.now + self.options.lock;
        let number = self.granted;
        let (is_whole, is_run) = (of == LockOf::Workflow, of == LockOf::Run);
        let (is_apart, out, given_back_behind) = (false, Vec::new(), Vec::new());
        let lock = Lock { token, until, is_whole, is_run, is_apart, out, given_back_behind, number };
        self.flow(key).lock = Some(lock);
    }

    /// Counts a hand-out and puts the message into its holder's hands.
    pub(crate) fn hand_out(&mut self, seq: u64) {
        let index = self.at(seq).expect("it is stored");
        let message = &mut self.messages[index];
        message.count_delivery();
        message.handed_at = self.now;
        let fetched = match message.state {
            State::ByConsumer { due, aside } => Some((due, aside)),
            _ => None,
        };
        message.state = State::Locked(fetched);
        let key = message.key.clone();
        let lock = self.flow(&key).lock.as_mut().expect("its workflow is locked");
        lock.out.push(seq);
        lock.given_back_behind.retain(|behind| *behind != seq);
    }

    /// Whether a message can be fetched by number.
    pub(crate) fn is_asked(&self, seq: u64) -> bool {
        self.message(seq).is_some_and(|message| match message.state {
            State::ByConsumer { aside, .. } => aside || message.count > 0,
            _ => false,
        })
    }

    /// The workflow that a token holds.
    pub(crate) fn held_by(&self, token: LockToken) -> Option<WorkflowRef> {
        let holds = |key: &&WorkflowRef| self.lock(key).is_some_and(|lock| lock.token == token);
        self.flows.keys().find(holds).cloned()
    }

    /// A lock on messages ends with the last of them.
    pub(crate) fn end_empty_lock(&mut self, key: &WorkflowRef) {
        let flow = self.flow(key);
        if flow.lock.as_ref().is_some_and(|lock| !lock.is_whole && lock.out.is_empty()) {
            flow.lock = None;
        }
    }

    /// Takes the workflow from its holder; everything he has fails, in order.
    pub(crate) fn take_from_holder(&mut self, key: &WorkflowRef) {
        if let Some(lock) = self.flow(key).lock.take() {
            self.fail_all(&lock);
        }
    }
}
