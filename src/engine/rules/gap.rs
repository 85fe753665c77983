//! Gaps: a predecessor is missing while later messages wait. Never silent: a reminder, then the queue's policy.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::records::Read;
use crate::engine::rules::remember::HistorySubject;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow_record::GapRecord;
use crate::queue::GapAction;
use crate::queue::HoldKind;

/// After this a long gap is given up further: not in the same turn.
const GAP_STEP: Duration = Duration::from_millis(1);

impl OpenWorkflow {
    /// Keeps the reminder of the gap that is there, and drops that of one that is gone, with the hold for it.
    pub(crate) fn plan_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        // Nothing waits early, and there was neither a gap nor a hold for one.
        if self.record.early == 0 && self.record.rare.if_set().is_none() {
            return Ok(());
        }
        let open = self.open_gap(step)?;
        let before = self.record.rare.gap;
        let stays = |gap: &GapRecord| open.is_some_and(|open| open.at == gap.at);
        if before.as_ref().is_some_and(|gap| !stays(gap)) {
            self.drop_gap(step)?;
        }
        if self.record.rare.gap.is_none() {
            self.lift_hold(step, HoldKind::Gap)?;
        }
        let (Some(open), None) = (open, self.record.rare.gap) else { return Ok(()) };
        // A stray waits for itself, since the live chain is settled: also while another one waits before it.
        let wait = self.queue.options.gap.wait;
        let (since, from) = match (open.came_at, before) {
            (Some(came_at), Some(before)) => (before.since, came_at.max(began(&before, wait))),
            _ => (step.wall, step.now),
        };
        // One whose wait is over already is judged in the next turn.
        self.judge_gap_at(step, (open.at, since), (from + wait).max(step.now))
    }

    /// Lets a gap be judged at an instant.
    fn judge_gap_at(
        &mut self,
        step: &mut Step<'_>,
        (at, since): (u64, Timestamp),
        due: Timestamp,
    ) -> Read<()> {
        self.record.rare.gap = Some(GapRecord { at, since, due: Some(due) });
        step.set_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))
    }

    /// What is missing while others wait for it. In after-order, nothing as long as the live chain goes on: a message
    /// whose predecessor is unknown waits from when everything in the chain is settled.
    fn open_gap(&self, step: &Step<'_>) -> Read<Option<OpenGap>> {
        if self.record.early == 0 || self.is_extending() {
            return Ok(None);
        }
        if !self.is_chained() {
            return Ok(Some(OpenGap { at: self.record.through, came_at: None }));
        }
        if self.is_before_gap(step)? {
            return Ok(None);
        }
        let stray = self.first_stray(step)?;
        Ok(stray.map(|(sequence, stray)| OpenGap { at: sequence.get(), came_at: Some(stray.handed_out_at) }))
    }

    /// Whether messages before the gap are still to be settled.
    fn is_before_gap(&self, step: &Step<'_>) -> Read<bool> {
        let first = step.records.line_from(&self.key, 0)?;
        Ok(first.is_some_and(|(rank, _)| rank <= self.record.through))
    }

    pub(crate) fn drop_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        if let Some(due) = self.record.rare.gap.take().and_then(|gap| gap.due) {
            step.drop_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))?;
        }
        Ok(())
    }

    /// A gap's reminder is due: it has lasted long enough.
    pub(crate) fn gap_is_overdue(&mut self, due: Timestamp) {
        let gap = self.record.rare.gap.as_mut().expect("a gap's reminder is dropped with the gap");
        assert_eq!(gap.due, Some(due), "a gap has one reminder");
        gap.due = None;
    }

    /// Applies the policy to a gap that has lasted long enough, once everything before it is settled or set aside. A
    /// holder does not stop it, and another hold stops only what cannot be undone: nothing is given up as long as it stands.
    pub(crate) fn judge_overdue_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        let Some(gap) = self.record.rare.gap.filter(|gap| gap.due.is_none()) else { return Ok(()) };
        let is_there = self.open_gap(step)?.is_some_and(|open| open.at == gap.at);
        let policy = self.queue.options.gap.then;
        let stays =
            self.record.rare.holds.has(HoldKind::Gap) || (policy == GapAction::Skip && self.is_held());
        if stays || !is_there || self.is_before_gap(step)? {
            return Ok(());
        }
        self.emit(step, None, EventKind::Gap { since: gap.since })?;
        match policy {
            GapAction::Hold => {
                self.hold(step, HoldCause::Gap, "a predecessor has not come in time")?;
                Ok(())
            }
            GapAction::Skip => self.skip_gap(step),
            GapAction::Wait => {
                let due = step.now + self.queue.options.gap.wait;
                self.judge_gap_at(step, (gap.at, gap.since), due)
            }
        }
    }

    /// Goes on with the lowest waiting message, and records what was given up. In after-order, gives up the first message
    /// whose predecessor is unknown: the chain waits for its own successor.
    pub(crate) fn skip_gap(&mut self, step: &mut Step<'_>) -> Read<()> {
        if self.is_chained() {
            return self.give_up_stray(step);
        }
        let since = self.record.rare.gap.map(|gap| gap.since);
        self.drop_gap(step)?;
        let from = self.record.through + 1;
        let waiting = step.records.line_from(&self.key, from)?;
        let (waiting, _) = waiting.expect("where a gap is, a message waits behind it");
        let to = self.give_up(step, from, waiting - 1, SettlementKind::Skipped)?;
        self.remember(step, HistorySubject::Places(from, to), HistoryEnding::Skipped)?;
        self.emit(step, None, EventKind::GapSkipped { from, to })?;
        if to + 1 == waiting || self.is_extending() {
            return Ok(());
        }
        // So much lies in it that one command gave up a part only: what is left is the same gap.
        let left = (self.record.through, since.unwrap_or(step.wall));
        self.judge_gap_at(step, left, step.now + GAP_STEP)
    }
}

/// What is missing while others wait for it.
#[derive(Clone, Copy)]
struct OpenGap {
    /// The last rank before it; in after-order the number of the message whose predecessor is unknown.
    at: u64,
    /// In after-order: when that message came, in engine time.
    came_at: Option<Timestamp>,
}

/// When the wait of a gap began, in engine time, as far as its reminder tells; if it is over, nothing waits for that any
/// more.
fn began(gap: &GapRecord, wait: Duration) -> Timestamp {
    let wait_ms = whole_millis(wait);
    let due_ms = gap.due.map_or(0, Timestamp::as_millis);
    Timestamp::from_millis(due_ms.saturating_sub(wait_ms))
}
