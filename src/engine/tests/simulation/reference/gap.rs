//! What follows from every change of a workflow: gaps are watched and judged, exhausted heads hold, idleness is noted.

use crate::clock::Timestamp;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::naive::Cause;
use crate::engine::tests::simulation::reference::naive::Message;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::queue::GapAction;
use crate::queue::HoldKind;

impl Naive {
    /// Called after every change of a workflow.
    pub(crate) fn close(&mut self, key: &WorkflowRef) {
        self.judge_gap(key);
        self.close_unjudged(key);
    }

    /// Called after a message was accepted, which brings no workflow nearer to its gap.
    pub(crate) fn close_unjudged(&mut self, key: &WorkflowRef) {
        let is_gone = !self.placed(key) && self.is_empty(key) && self.lock(key).is_none();
        if is_gone && self.flows.get(key).is_none_or(|flow| flow.sweep.is_none()) {
            self.flows.remove(key);
            return;
        }
        self.watch_gap(key);
        self.move_cursor(key);
        let is_swept =
            self.is_held_for(key, HoldKind::Quarantine) || self.is_held_for(key, HoldKind::Redriving);
        let is_looked_at = !is_swept && self.lock(key).is_none();
        let head = self.head(key).filter(|head| is_looked_at && head.state == State::Failed(None));
        if let Some(seq) = head.map(|head| head.seq) {
            self.hold(key, Cause::Exhausted(seq));
        }
        self.plan_sweep(key);
        let (is_idle, now) = (self.placed(key) && self.is_empty(key), self.now);
        let flow = self.flow(key);
        flow.forgotten_at = None;
        flow.idle_since = if is_idle { Some(flow.idle_since.unwrap_or(now)) } else { None };
    }

    fn watch_gap(&mut self, key: &WorkflowRef) {
        let open = match self.early(key) {
            _ if self.chained(key) => self.awaited_stray(key),
            0 => None,
            _ => Some(self.first_missing(key)),
        };
        let due = Some(open.map_or(self.now, |open| self.end_of_wait(key, open)));
        let flow = self.flow(key);
        flow.gap = match (flow.gap, open) {
            (_, None) => None,
            (Some((at, due)), Some(open)) if at == open => Some((at, due)),
            (_, Some(open)) => Some((open, due)),
        };
        if flow.gap.is_none_or(|gap| gap.1.is_some()) {
            self.lift(key, Cause::Gap);
        }
    }

    /// When the wait for what is missing now is over. Strays wait beside each other: one that was not waited for because
    /// another was has waited since it came, but not since before the other began to.
    fn end_of_wait(&self, key: &WorkflowRef, open: u64) -> Timestamp {
        let wait = self.options.gap.wait;
        let before = self.flows.get(key).and_then(|flow| flow.gap).filter(|_| self.chained(key));
        let Some((_, due)) = before else { return self.now + wait };
        let came = self.message(open).expect("it is stored").handed_at;
        let began = Timestamp::from_millis(due.map_or(0, |due| {
            due.as_millis().saturating_sub(wait.as_millis().try_into().expect("a short wait"))
        }));
        (came.max(began) + wait).max(self.now)
    }

    fn plan_sweep(&mut self, key: &WorkflowRef) {
        let is_left = |message: &&Message| !matches!(message.state, State::Locked(_));
        let is_quarantined = self.is_held_for(key, HoldKind::Quarantine);
        let is_unreached = self.chained(key) && !self.unreached(key).is_empty();
        let is_left = is_quarantined && (is_unreached || self.line(key).iter().any(is_left));
        if is_left || self.is_held_for(key, HoldKind::Redriving) {
            let now = self.now;
            self.flow(key).sweep.get_or_insert(now);
        }
    }

    /// Holds a workflow for one cause more; a quarantine ends a redrive.
    pub(crate) fn hold(&mut self, key: &WorkflowRef, cause: Cause) {
        if cause == Cause::Quarantine {
            self.lift(key, Cause::Redriving);
        }
        if !self.is_held_for(key, cause.kind()) {
            self.flow(key).held.push(cause);
        }
    }

    pub(crate) fn lift(&mut self, key: &WorkflowRef, cause: Cause) {
        self.flow(key).held.retain(|held| *held != cause);
    }

    /// A gap that has lasted is judged once everything before it is settled or set aside, whoever has the workflow. What
    /// is held is not skipped.
    fn judge_gap(&mut self, key: &WorkflowRef) {
        let Some((at, None)) = self.flows.get(key).and_then(|flow| flow.gap) else { return };
        let before = self.head(key).is_some_and(|head| head.place() < at);
        let is_reached = match self.chained(key) {
            true => self.awaited_stray(key) == Some(at),
            false => !before && self.first_missing(key) == at,
        };
        if self.early(key) == 0 || !is_reached || self.is_held_for(key, HoldKind::Gap) {
            return;
        }
        match self.options.gap.then {
            GapAction::Skip if self.is_held(key) => {}
            GapAction::Hold => self.hold(key, Cause::Gap),
            GapAction::Skip => self.give_up_gap(key),
            GapAction::Wait => {
                let due = Some(self.now + self.options.gap.wait);
                self.flow(key).gap = Some((at, due));
            }
        }
    }

    /// Goes on with the lowest waiting position. In after-order nobody goes on: the first stray is given up.
    pub(crate) fn give_up_gap(&mut self, key: &WorkflowRef) {
        if self.chained(key) {
            let stray = self.first_stray(key).expect("somebody waits");
            self.kill(stray);
            self.messages.iter_mut().filter(|m| m.seq == stray).for_each(|m| m.is_stray = true);
            return;
        }
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
