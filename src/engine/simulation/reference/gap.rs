//! What follows from every change of a workflow: gaps are watched and judged, spent heads hold, idleness is noted.

use crate::engine::rules::record::Stream;
use crate::engine::simulation::reference::naive::Cause;
use crate::engine::simulation::reference::naive::Message;
use crate::engine::simulation::reference::naive::Naive;
use crate::engine::simulation::reference::naive::State;
use crate::queue::GapThen;

impl Naive {
    /// Called after every change of a workflow.
    pub(crate) fn close(&mut self, key: &Stream) {
        self.judge_gap(key);
        self.close_unjudged(key);
    }

    /// Called after a message was accepted, which brings no workflow nearer to its gap.
    pub(crate) fn close_unjudged(&mut self, key: &Stream) {
        let is_gone = !self.positional(key) && self.is_empty(key) && self.lock(key).is_none();
        if is_gone && self.flows.get(key).is_none_or(|flow| flow.sweep.is_none()) {
            self.flows.remove(key);
            return;
        }
        let is_free = self.held(key).is_none() && self.lock(key).is_none();
        let spent = self.head(key).filter(|head| is_free && head.state == State::Failed(None)).map(|m| m.seq);
        if let Some(seq) = spent {
            self.hold(key, Cause::Spent(seq));
        }
        self.watch_gap(key);
        self.plan_sweep(key);
        let (is_idle, now) = (self.positional(key) && self.is_empty(key), self.now);
        let flow = self.flow(key);
        flow.idle_since = if is_idle { Some(flow.idle_since.unwrap_or(now)) } else { None };
    }

    fn watch_gap(&mut self, key: &Stream) {
        if !self.positional(key) {
            return;
        }
        let (waits, missing) = (self.early(key) > 0, self.first_missing(key));
        let due = Some(self.now + self.options.gap.wait);
        let flow = self.flow(key);
        flow.gap = match flow.gap {
            _ if !waits => None,
            Some((at, due)) if at == missing => Some((at, due)),
            _ => Some((missing, due)),
        };
    }

    fn plan_sweep(&mut self, key: &Stream) {
        let is_left = |message: &&Message| !matches!(message.state, State::Locked(_));
        let is_wanted = match self.held(key) {
            Some(Cause::Quarantine) => self.line(key).iter().any(is_left),
            Some(Cause::Redriving) => true,
            _ => false,
        };
        if is_wanted {
            let now = self.now;
            self.flow(key).sweep.get_or_insert(now);
        }
    }

    /// Holds a workflow, unless it is held: a quarantine takes over every hold, an operator one that would end by
    /// itself.
    pub(crate) fn hold(&mut self, key: &Stream, cause: Cause) {
        let flow = self.flow(key);
        let takes_over = match (cause, flow.held) {
            (_, None) | (Cause::Quarantine, _) => true,
            (Cause::Operator, Some(held)) => matches!(held, Cause::Spent(_) | Cause::Gap),
            _ => false,
        };
        if takes_over {
            flow.held = Some(cause);
        }
    }

    pub(crate) fn lift(&mut self, key: &Stream, cause: Cause) {
        let flow = self.flow(key);
        flow.held = flow.held.filter(|held| *held != cause);
    }

    /// A gap that has lasted is judged once the workflow has come to it.
    fn judge_gap(&mut self, key: &Stream) {
        let Some((at, None)) = self.flows.get(key).and_then(|flow| flow.gap) else { return };
        let before = self.head(key).is_some_and(|head| head.place() < at);
        let is_reached = !before && self.lock(key).is_none() && self.first_missing(key) == at;
        if self.early(key) == 0 || !is_reached || self.held(key).is_some() {
            return;
        }
        match self.options.gap.then {
            GapThen::Hold => self.hold(key, Cause::Gap),
            GapThen::Skip => self.give_up_gap(key),
            GapThen::Wait => {
                let due = Some(self.now + self.options.gap.wait);
                self.flow(key).gap = Some((at, due));
            }
        }
    }

    /// Goes on with the lowest waiting position.
    pub(crate) fn give_up_gap(&mut self, key: &Stream) {
        let missing = self.first_missing(key);
        let waiting = self.line(key).into_iter().map(Message::place).find(|place| *place > missing);
        let waiting = waiting.expect("something waits behind a gap");
        let stored: Vec<u64> = (missing..waiting).filter(|p| self.live_at(key, *p).is_some()).collect();
        let flow = self.flow(key);
        flow.gap = None;
        for position in (missing..waiting).filter(|position| !stored.contains(position)) {
            if !flow.settled(position) {
                flow.given_up.insert(position);
            }
        }
    }
}
