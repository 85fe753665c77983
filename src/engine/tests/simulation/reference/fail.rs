//! How messages end, fail, are set aside and come back.

use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::chain::Ended;
use crate::engine::tests::simulation::reference::naive::Cause;
use crate::engine::tests::simulation::reference::naive::Lock;
use crate::engine::tests::simulation::reference::naive::Message;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::naive::Suspect;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::HoldKind;

impl Naive {
    /// Its place is settled, but it was never handled.
    pub(crate) fn give_up(&mut self, message: &Message) {
        if self.chained(&message.key) {
            self.end_link(message, Ended::GivenUp);
        } else if let Some(position) = message.position {
            self.flow(&message.key).given_up.insert(position);
        }
    }

    /// Moves a message to the dead letters.
    pub(crate) fn kill(&mut self, seq: u64) {
        self.set(seq, State::Dead);
        let index = self.at(seq).expect("it is stored");
        self.messages[index].suspect = Suspect::No;
        let message = self.message(seq).expect("it is stored").clone();
        self.give_up(&message);
    }

    /// The same where in after-order nothing that follows it may go on.
    pub(crate) fn kill_predecessor(&mut self, seq: u64) {
        let key = self.key_of(seq);
        self.kill(seq);
        self.hold_behind(&key);
    }

    fn hold_behind(&mut self, key: &WorkflowRef) {
        if self.chained(key) && self.options.exhausted_policy() == ExhaustedPolicy::Hold {
            self.hold(key, Cause::Predecessor);
        }
    }

    pub(crate) fn is_expired(&self, seq: u64) -> bool {
        self.message(seq).and_then(|m| m.expires).is_some_and(|expires| expires.is_past(self.clocks()))
    }

    pub(crate) fn expire(&mut self, seq: u64) {
        let message = self.message(seq).expect("it is stored").clone();
        self.lift(&message.key, Cause::Exhausted(seq));
        match self.options.expired {
            ExpiryPolicy::DeadLetter => self.kill_predecessor(seq),
            ExpiryPolicy::Drop => {
                self.remove(seq);
                self.give_up(&message);
                self.hold_behind(&message.key);
            }
        }
    }

    pub(crate) fn complete(&mut self, seq: u64) {
        let message = self.remove(seq);
        let is_chained = self.chained(&message.key);
        let flow = self.flow(&message.key);
        flow.done = flow.done.max(message.place());
        match is_chained {
            true => self.end_link(&message, Ended::Completed),
            false => flow.completed.extend(message.position),
        }
    }

    /// A message that was handed out has failed; `due` is when it is to be tried again, if not at once.
    pub(crate) fn fail(&mut self, seq: u64, due: Option<Due>) {
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let due = due.filter(|due| !due.is_past(self.clocks()));
        let message = self.message(seq).expect("it is stored").clone();
        let is_exhausted = message.count >= self.options.delivery_count_max;
        if let State::Locked(Some((back, true))) = message.state {
            // Beside the line it blocks nobody.
            self.set(seq, State::ByConsumer { due: due.or(back), aside: true });
            if is_exhausted && !self.has_all_dead() {
                self.kill(seq);
            }
            return;
        }
        let by_another = [HoldKind::Exhausted, HoldKind::Quarantine, HoldKind::Predecessor];
        let is_held_by_another = by_another.into_iter().any(|kind| self.is_held_for(&message.key, kind));
        if !is_exhausted || is_held_by_another {
            return self.set(seq, due.map_or(State::Ready, |due| State::Failed(Some(due))));
        }
        let is_named = matches!(message.key, WorkflowRef::Named(_));
        match self.options.exhausted_policy() {
            ExhaustedPolicy::Skip | ExhaustedPolicy::Quarantine if is_named && self.has_all_dead() => {
                self.set(seq, State::Failed(None));
                self.hold(&message.key, Cause::Exhausted(seq));
            }
            _ if !is_named && self.has_all_dead() => {
                // Nobody could name its workflow to resume it.
                let longest = Due::engine(self.now + self.options.backoff.max);
                self.set(seq, State::Failed(Some(due.unwrap_or(longest))));
            }
            ExhaustedPolicy::Hold if is_named => {
                self.set(seq, State::Failed(None));
                self.hold(&message.key, Cause::Exhausted(seq));
            }
            ExhaustedPolicy::Quarantine if is_named => {
                self.kill(seq);
                self.hold(&message.key, Cause::Quarantine);
            }
            _ => self.kill(seq),
        }
    }

    /// A holder has lost all it had. Of a run nobody knows where it failed.
    pub(crate) fn fail_all(&mut self, lock: &Lock) {
        match lock.is_run {
            true => self.fail_together(&lock.out, None),
            false => lock.out.iter().for_each(|seq| self.fail(*seq, None)),
        }
    }

    /// A run has failed; `due` is when its first is to be tried again, if not at once. Who was alone in it has failed.
    pub(crate) fn fail_together(&mut self, run: &[u64], due: Option<Due>) {
        match run {
            [seq] => self.fail(*seq, due),
            _ => run.iter().enumerate().for_each(|(index, seq)| {
                self.suspect(*seq, due.filter(|_| index == 0));
            }),
        }
    }

    /// It failed with others, and is not blamed for that. Who is a suspect already was alone.
    pub(crate) fn suspect(&mut self, seq: u64, due: Option<Due>) {
        let message = self.message(seq).expect("it is stored").clone();
        let is_beside = matches!(message.state, State::Locked(Some((_, true))));
        if is_beside || message.suspect != Suspect::No {
            return self.fail(seq, due);
        }
        let index = self.at(seq).expect("it is stored");
        self.messages[index].suspect = Suspect::New;
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let due = due.filter(|due| !due.is_past(self.clocks()));
        self.set(seq, due.map_or(State::Ready, |due| State::Failed(Some(due))));
    }

    /// It was not started: the hand-out is not counted.
    pub(crate) fn give_back(&mut self, seq: u64) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].count -= 1;
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        self.messages[index].state = self.messages[index].state.of_unstarted();
    }

    /// It was handled, and waits for room: the hand-out is not counted.
    pub(crate) fn postpone(&mut self, seq: u64, due: Option<Due>) {
        let index = self.at(seq).expect("it is stored");
        self.messages[index].count -= 1;
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let due = due.filter(|due| !due.is_past(self.clocks()));
        let message = &mut self.messages[index];
        message.state = match message.state {
            State::Locked(Some((back, true))) => State::ByConsumer { due: due.or(back), aside: true },
            _ => due.map_or(State::Ready, |due| State::Failed(Some(due))),
        };
    }

    /// Whether not even the delivery is left that setting it aside allowed.
    pub(crate) fn has_used_extra(&self, message: &Message) -> bool {
        message.has_extra && message.count > self.options.delivery_count_max
    }

    pub(crate) fn set_aside(&mut self, seq: u64, until: DeferralEnd) {
        if self.is_expired(seq) {
            return self.expire(seq);
        }
        let message = self.message(seq).expect("it is stored");
        let was_aside = matches!(message.state, State::Locked(Some((_, true))));
        let aside = was_aside || !self.options.hold_on_defer;
        let due = match until {
            DeferralEnd::ByConsumer => None,
            DeferralEnd::After(delay) => Some(Due::engine(self.now + delay)),
            DeferralEnd::At(at) => Some(Due::wall(at)),
        };
        self.set(seq, State::ByConsumer { due, aside });
        let index = self.at(seq).expect("it is stored");
        self.messages[index].has_extra = self.messages[index].count >= self.options.delivery_count_max;
        if self.options.keep_deferred {
            self.messages[index].expires = None;
        }
    }
}
