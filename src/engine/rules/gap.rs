//! Gaps: a predecessor is missing while later messages wait. Never silent: a reminder, then the queue's policy.

use crate::clock::Timestamp;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::record::GapRecord;
use crate::engine::rules::record::HoldCause;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Settled;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow::Workflow;
use crate::queue::GapThen;

impl Workflow {
    /// Keeps the reminder of the gap that is there, and drops that of one that is gone.
    pub(crate) fn plan_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        let waiting = self.record.early > 0 && !self.record.extending;
        let gone = |gap: &GapRecord| !waiting || gap.at != self.record.through;
        if self.record.gap.as_ref().is_some_and(gone) {
            self.drop_gap(step)?;
        }
        if waiting && self.record.gap.is_none() {
            let due = step.now + self.queue.options.gap.wait;
            self.record.gap = Some(GapRecord { at: self.record.through, since: step.now, due: Some(due) });
            step.set_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))?;
        }
        Ok(())
    }

    pub(crate) fn drop_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        if let Some(due) = self.record.gap.take().and_then(|gap| gap.due) {
            step.drop_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))?;
        }
        Ok(())
    }

    /// A gap's reminder is due: it has lasted long enough.
    pub(crate) fn gap_is_overdue(&mut self, due: Timestamp) {
        let gap = self.record.gap.as_mut().expect("a gap's reminder is dropped with the gap");
        assert_eq!(gap.due, Some(due), "a gap has one reminder");
        gap.due = None;
    }

    /// Applies the policy to a gap that has lasted long enough, once the workflow has come to it.
    pub(crate) fn judge_overdue_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        let Some(gap) = self.record.gap else { return Ok(()) };
        let before = step.records.line_from(&self.key, 0)?.filter(|(rank, _)| *rank <= self.record.through);
        let reached = before.is_none() && step.locks.of(&self.key).is_none();
        let there = self.record.early > 0 && gap.at == self.record.through && !self.record.extending;
        if gap.due.is_some() || self.record.hold.is_some() || !reached || !there {
            return Ok(());
        }
        self.tell(step, None, EventKind::Gap { since: gap.since })?;
        match self.queue.options.gap.then {
            GapThen::Hold => {
                self.hold(step, HoldCause::Gap, "a predecessor has not come in time")?;
                Ok(())
            }
            GapThen::Skip => self.skip_gap(step),
            GapThen::Wait => {
                let due = step.now + self.queue.options.gap.wait;
                self.record.gap = Some(GapRecord { due: Some(due), ..gap });
                step.set_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))
            }
        }
    }

    /// Goes on with the lowest waiting message, and records what was given up.
    pub(crate) fn skip_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        self.drop_gap(step)?;
        let from = self.record.through + 1;
        if self.is_chained() {
            self.skip_to_root(step)?;
            self.tell(step, None, EventKind::GapSkipped { from, to: from })?;
            return Ok(());
        }
        let waiting = step.records.line_from(&self.key, from)?;
        let (waiting, _) = waiting.expect("where a gap is, a message waits behind it");
        self.give_up(step, from, waiting - 1, Settled::Skipped)?;
        self.tell(step, None, EventKind::GapSkipped { from, to: waiting - 1 })?;
        Ok(())
    }
}
