//! How messages end, fail, are set aside and come back.

use crate::clock::Timestamp;
use crate::engine::rules::record::Stream;
use crate::engine::simulation::reference::naive::Cause;
use crate::engine::simulation::reference::naive::Naive;
use crate::engine::simulation::reference::naive::State;
use crate::queue::Expired;
use crate::queue::Spent;

impl Naive {
    /// Its place is settled, but it was never handled.
    pub(crate) fn give_up(&mut self, key: &Stream, position: Option<u64>) {
        if let Some(position) = position {
            self.flow(key).given_up.insert(position);
        }
    }

    /// Moves a message to the dead letters.
    pub(crate) fn kill(&mut self, seq: u64) {
        self.set(seq, State::Dead);
        let message = self.message(seq).expect("it is stored").clone();
        self.give_up(&message.key, message.position);
    }

    pub(crate) fn is_expired(&self, seq: u64) -> bool {
        self.message(seq).and_then(|m| m.expires).is_some_and(|expires| expires <= self.now)
    }

    pub(crate) fn expire(&mut self, seq: u64) {
        let message = self.message(seq).expect("it is stored").clone();
        self.lift(&message.key, Cause::Spent(seq));
        match self.options.expired {
            Expired::DeadLetter => self.kill(seq),
            Expired::Drop => {
                self.remove(seq);
                self.give_up(&message.key, message.position);
            }
        }
    }

    pub(crate) fn complete(&mut self, seq: u64) {
        let message = self.remove(seq);
        let flow = self.flow(&message.key);
        flow.done = flow.done.max(message.place());
        flow.completed.extend(message.position);
    }

    /// A message that was handed out has failed; `due` is when it is to be tried again, if not at once.
    pub(crate) fn fail(&mut self, seq: u64, due: Option<Timestamp>) {
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let due = due.filter(|due| *due > self.now);
        let message = self.message(seq).expect("it is stored").clone();
        let is_spent = message.count >= self.options.delivery_count_max;
        if let State::Locked(Some((back, true))) = message.state {
            // Beside the line it blocks nobody.
            self.set(seq, State::Asked { due: due.or(back), aside: true });
            if is_spent {
                self.kill(seq);
            }
            return;
        }
        let held = self.held(&message.key);
        let is_held_by_another = matches!(held, Some(Cause::Spent(_) | Cause::Quarantine));
        if !is_spent || is_held_by_another {
            return self.set(seq, due.map_or(State::Ready, |due| State::Failed(Some(due))));
        }
        let is_named = matches!(message.key, Stream::Named(_));
        match self.options.spent_policy() {
            Spent::Hold if is_named => {
                self.set(seq, State::Failed(None));
                self.hold(&message.key, Cause::Spent(seq));
            }
            Spent::Quarantine if is_named => {
                self.kill(seq);
                self.hold(&message.key, Cause::Quarantine);
            }
            _ => self.kill(seq),
        }
    }

    /// It was not started: the hand-out is not counted.
    pub(crate) fn give_back(&mut self, seq: u64) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].count -= 1;
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let message = &mut self.messages[index];
        message.state = match message.state {
            State::Locked(Some((due, aside))) => State::Asked { due, aside },
            _ => State::Ready,
        };
    }

    pub(crate) fn set_aside(&mut self, seq: u64, due: Option<Timestamp>) {
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let message = self.message(seq).expect("it is stored");
        let was_aside = matches!(message.state, State::Locked(Some((_, true))));
        let aside = was_aside || !self.options.hold_on_defer;
        self.set(seq, State::Asked { due, aside });
    }
}
