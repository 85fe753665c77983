//! What holders do with what they hold.

use crate::engine::rules::command::Retry;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::naive::Cause;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::send::Unsent;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::queue::ExhaustedPolicy;
use crate::queue::Order;

/// How a settle can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    NoQueue,
    LockLost,
    AlreadySettled(SettledHow),
    NotFound,
    NoWorkflow,
    Send(Unsent),
    Other,
}

impl Refused {
    /// What a refusal says, without its words.
    pub(crate) fn of(refusal: &SettleRefusal) -> Refused {
        match refusal {
            SettleRefusal::LockLost => Refused::LockLost,
            SettleRefusal::AlreadySettled { how } => Refused::AlreadySettled(*how),
            SettleRefusal::QueueNotFound => Refused::NoQueue,
            SettleRefusal::MessageNotFound(_) => Refused::NotFound,
            SettleRefusal::NoWorkflow => Refused::NoWorkflow,
            SettleRefusal::Send(refusal) => Refused::Send(Unsent::of(refusal)),
            _ => Refused::Other,
        }
    }
}

impl Naive {
    /// Whether the last hand-out of a message is its holder's.
    pub(crate) fn check_held(&self, key: &WorkflowRef, seq: u64, count: u32) -> Result<(), Refused> {
        let Some(message) = self.message(seq) else { return Err(Refused::NotFound) };
        let is_out = self.lock(key).is_some_and(|lock| lock.out.contains(&seq));
        if is_out && message.count == count { Ok(()) } else { Err(Refused::LockLost) }
    }

    pub(crate) fn settle(&mut self, key: &WorkflowRef, seq: u64, settlement: &Settlement) {
        self.take_back(key, seq);
        let is_given_back = *settlement == Settlement::Release;
        let held_before = self.held(key);
        let message = self.message(seq).expect("it is out").clone();
        match settlement {
            Settlement::Complete(_) => return self.complete(seq),
            Settlement::Abandon { retry, .. } => {
                let due = self.due_of(*retry, message.count);
                self.fail(seq, due);
            }
            Settlement::Defer { .. } if self.has_used_extra(&message) => self.fail(seq, None),
            Settlement::Defer { until, .. } => self.set_aside(seq, *until),
            Settlement::DeadLetter { .. } => self.kill_predecessor(seq),
            Settlement::Release => self.give_back(seq),
            Settlement::Suspect { retry, .. } => {
                let due = self.due_of(*retry, message.count);
                self.suspect(seq, due);
            }
            Settlement::Postpone { retry, .. } => {
                let due = self.due_of(*retry, message.count);
                self.postpone(seq, due);
            }
        }
        let blocks = |state: &State| {
            matches!(state, State::Ready | State::Failed(_) | State::ByConsumer { aside: false, .. })
        };
        let blocks = self.message(seq).is_some_and(|message| blocks(&message.state));
        let options = &self.options;
        let is_apart = self.lock(key).is_some_and(|lock| lock.is_apart)
            && options.order == Order::Arrival
            && options.exhausted_policy() == ExhaustedPolicy::Skip
            && !options.hold_on_defer;
        let is_new = |cause: &Cause| !held_before.iter().any(|held| held.kind() == cause.kind());
        if blocks && !is_apart || self.held(key).iter().any(is_new) {
            self.revoke_behind(key, message.place(), is_given_back);
        }
    }

    /// What is left of a run has failed, and its holder does not know where.
    pub(crate) fn fail_run(&mut self, key: &WorkflowRef, run: &[u64], retry: Retry) {
        run.iter().for_each(|seq| self.take_back(key, *seq));
        let count = self.message(run[0]).expect("it is out").count;
        let due = self.due_of(retry, count);
        self.fail_together(run, due);
    }

    pub(crate) fn take_back(&mut self, key: &WorkflowRef, seq: u64) {
        if let Some(lock) = &mut self.flow(key).lock {
            lock.out.retain(|out| *out != seq);
        }
    }

    fn due_of(&self, retry: Retry, count: u32) -> Option<Due> {
        match retry {
            Retry::Now => None,
            Retry::After(delay) => Some(Due::engine(self.now + delay)),
            Retry::At(at) => Some(Due::wall(at)),
            Retry::Backoff(chance) => Some(Due::engine(self.now + self.options.backoff.delay(count, chance))),
        }
    }

    /// What a holder has ahead of a message that failed is taken back, and offered again after it; it stays counted.
    fn revoke_behind(&mut self, key: &WorkflowRef, place: u64, is_given_back: bool) {
        let out = self.lock(key).map(|lock| lock.out.clone()).unwrap_or_default();
        for seq in out {
            let message = self.message(seq).expect("it is out").clone();
            if !self.in_line(&message) || message.place() < place {
                continue;
            }
            self.take_back(key, seq);
            if self.is_expired(seq) {
                self.expire(seq);
            } else {
                self.set(seq, message.state.of_unstarted());
                let lock = self.flow(key).lock.as_mut().filter(|_| is_given_back);
                lock.into_iter().for_each(|lock| lock.given_back_behind.push(seq));
            }
        }
    }

    /// A holder gives back what was taken back because he gave back one before it: it is not counted either. Says whether it is so.
    pub(crate) fn give_back_behind(&mut self, key: &WorkflowRef, seq: u64, count: u32) -> bool {
        let is_behind = self.lock(key).is_some_and(|lock| lock.given_back_behind.contains(&seq));
        let message = self.message(seq).filter(|_| is_behind);
        let is_back = |state: &State| matches!(state, State::Ready | State::ByConsumer { .. });
        if !message.is_some_and(|message| is_back(&message.state) && message.count == count) {
            return false;
        }
        if let Some(lock) = &mut self.flow(key).lock {
            lock.given_back_behind.retain(|behind| *behind != seq);
        }
        let index = self.at(seq).expect("it is stored");
        self.messages[index].count -= 1;
        true
    }

    /// Gives a workflow accepted whole back: what its holder has is given back uncounted.
    pub(crate) fn close_workflow(&mut self, key: &WorkflowRef) {
        let lock = self.flow(key).lock.take();
        for seq in lock.map(|lock| lock.out).unwrap_or_default() {
            self.give_back(seq);
        }
    }
}
