//! Places in order: the cursor, the unbroken run that begins at it, and the ranks that are settled ahead of it.

use crate::engine::rules::change::Change;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::limits;

impl OpenWorkflow {
    /// Lets the workflow go on past a message that was settled or set aside.
    pub(crate) fn pass(
        &mut self,
        step: &mut Step<'_>,
        message: &MessageRecord,
        how: SettlementKind,
    ) -> Read<()> {
        if !self.has_places() {
            return Ok(());
        }
        if self.is_chained() && how != SettlementKind::Aside {
            self.settle_link(step, message, how)?;
        }
        match message.rank {
            Some(rank) => self.pass_range(step, rank, rank, how),
            None => self.extend_unless_planned(step),
        }
    }

    /// Lets the workflow go on past ranks that were settled, set aside or given up.
    pub(crate) fn pass_range(
        &mut self,
        step: &mut Step<'_>,
        from: u64,
        to: u64,
        how: SettlementKind,
    ) -> Read<()> {
        let in_turn = from <= self.record.cursor;
        if !in_turn || is_remembered(how) {
            self.mark(step, from, to, how)?;
        }
        if in_turn {
            self.record.cursor = self.record.cursor.max(to + 1);
        }
        self.pass_marks(step)?;
        // What was settled within the run leaves the run's end, and what is beyond it, as they were.
        let within = in_turn && self.record.cursor - 1 <= self.record.through && !self.is_chained();
        self.record.through = self.record.through.max(self.record.cursor - 1);
        if !within {
            self.extend_unless_planned(step)?;
        }
        self.trim_links(step)
    }

    /// Moves the cursor past ranks that were settled ahead of their turn; a limited number of ranges in one command.
    fn pass_marks(&mut self, step: &mut Step<'_>) -> Read<()> {
        for looked in 0.. {
            let Some(mark) = self.mark_at(step, self.record.cursor)? else { break };
            if looked == limits::EXTEND_MAX {
                self.record.rare.extending = true;
                break;
            }
            self.record.cursor = mark.to + 1;
            if !is_remembered(mark.how) {
                step.write(Change::Mark(self.key.clone(), mark.from, None))?;
            }
        }
        Ok(())
    }

    /// Lets a message join the run that has come to the place behind its end.
    pub(crate) fn reach(&mut self, step: &mut Step<'_>, rank: u64, message: &MessageRecord) -> Read<()> {
        let is_next = self.has_places() && !self.is_chained() && rank == self.record.through + 1;
        if is_next && self.record.rare.shortening.is_none() {
            self.take_into_run(step, rank, message)?;
        }
        Ok(())
    }

    /// Moves the end of the run to the place of a message that waited for it.
    fn take_into_run(&mut self, step: &mut Step<'_>, rank: u64, message: &MessageRecord) -> Read<()> {
        self.record.through = rank;
        self.count_as_reached(step, message)
    }

    /// Lets early messages join the run, unless the next steps do so anyway, or take places out of it first: a command that
    /// passes many messages would do the work of many steps.
    pub(crate) fn extend_unless_planned(&mut self, step: &mut Step<'_>) -> Read<()> {
        if self.is_extending() { Ok(()) } else { self.extend(step) }
    }

    /// Lets early messages join the run as far as there is no gap; at most a limited number in one command.
    pub(crate) fn extend(&mut self, step: &mut Step<'_>) -> Read<()> {
        if !self.shorten(step)? {
            return Ok(());
        }
        // Only where it was set: writing to a rare field makes room for all of them.
        if self.record.rare.extending {
            self.record.rare.extending = false;
        }
        for looked in 0.. {
            if looked > 0 && (step.joined >= limits::EXTEND_MAX || step.records.is_full()) {
                self.record.rare.extending = true;
                break;
            }
            if !self.extend_by_one(step)? {
                break;
            }
            step.joined += 1;
        }
        self.pass_marks(step)?;
        // Where the turn had room for a part of the run only, the cursor may have come further.
        self.record.through = self.record.through.max(self.record.cursor - 1);
        Ok(())
    }

    fn extend_by_one(&mut self, step: &mut Step<'_>) -> Read<bool> {
        let next = self.record.through + 1;
        if let Some(mark) = self.mark_at(step, next)? {
            self.record.through = mark.to;
            return Ok(true);
        }
        if self.is_chained() {
            return self.extend_chain(step, next);
        }
        match step.records.line_from(&self.key, next)? {
            Some((rank, sequence)) if rank == next => {
                let message = step.message_listed(self.key.queue, sequence)?;
                self.take_into_run(step, next, &message)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The settled range that a rank is in.
    pub(crate) fn mark_at(&self, step: &Step<'_>, rank: u64) -> Read<Option<MarkRecord>> {
        Ok(step.records.mark_upto(&self.key, rank)?.filter(|mark| rank <= mark.to))
    }

    /// Records ranks as settled, joining ranges that were settled in the same way.
    pub(crate) fn mark(&mut self, step: &mut Step<'_>, from: u64, to: u64, how: SettlementKind) -> Read<()> {
        if from == to {
            self.unmark(step, from)?;
        }
        let mut mark = MarkRecord { from, to, how };
        if let Some(left) = from.checked_sub(1).map_or(Ok(None), |rank| self.mark_at(step, rank))?
            && left.how == how
        {
            mark.from = left.from;
        }
        if let Some(right) = self.mark_at(step, to + 1)?
            && right.how == how
        {
            mark.to = right.to;
            step.write(Change::Mark(self.key.clone(), right.from, None))?;
        }
        step.write(Change::Mark(self.key.clone(), mark.from, Some(mark)))
    }

    /// Takes a rank out of the range it is in: its message is back.
    pub(crate) fn unmark(&mut self, step: &mut Step<'_>, rank: u64) -> Read<()> {
        let Some(mark) = self.mark_at(step, rank)? else {
            return Ok(());
        };
        let left = (mark.from < rank).then(|| MarkRecord { to: rank - 1, ..mark });
        step.write(Change::Mark(self.key.clone(), mark.from, left))?;
        if rank < mark.to {
            let right = MarkRecord { from: rank + 1, ..mark };
            step.write(Change::Mark(self.key.clone(), right.from, Some(right)))?;
        }
        Ok(())
    }

    /// Gives up every rank from `from` to `to` that is neither stored nor settled, a limited number of ranges in one
    /// command; says up to which it came.
    pub(crate) fn give_up(
        &mut self,
        step: &mut Step<'_>,
        from: u64,
        to: u64,
        how: SettlementKind,
    ) -> Read<u64> {
        let mut next = from;
        for _ in 0..limits::SWEEP_MAX {
            if next > to {
                break;
            }
            if let Some(mark) = self.mark_at(step, next)? {
                next = mark.to + 1;
                continue;
            }
            let upto = step.records.mark_from(&self.key, next)?.map_or(to, |mark| to.min(mark.from - 1));
            self.pass_range(step, next, upto, how)?;
            next = upto + 1;
        }
        Ok(next - 1)
    }

    /// Drops what is remembered of settled ranks, a limited number at once; true when done.
    pub(crate) fn forget_places(&mut self, step: &mut Step<'_>) -> Read<bool> {
        for _ in 0..limits::SWEEP_MAX {
            let Some(mark) = step.records.mark_from(&self.key, 0)? else {
                if !self.forget_link(step)? {
                    return Ok(true);
                }
                continue;
            };
            step.write(Change::Mark(self.key.clone(), mark.from, None))?;
        }
        Ok(false)
    }
}

/// Whether a settled rank is remembered after the cursor has passed: it was never handled, so a message that comes
/// for it must not be ignored as a resend.
pub(crate) fn is_remembered(how: SettlementKind) -> bool {
    !matches!(how, SettlementKind::Completed | SettlementKind::Aside)
}
