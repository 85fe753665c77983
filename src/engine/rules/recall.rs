//! Cursors outlast their workflows: a late duplicate of a forgotten workflow meets the cursor, instead of beginning anew.

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;

impl OpenWorkflow {
    /// Begins where a workflow that was forgotten stood, if that is remembered.
    pub(crate) fn recall(&mut self, step: &Step<'_>) -> Read<()> {
        if !self.has_cursor() {
            return Ok(());
        }
        self.recalled = step.records.cursor(&self.key)?;
        if let Some(cursor) = self.recalled {
            self.record.cursor = cursor.next;
            self.record.through = cursor.next - 1;
            self.record.done = cursor.done;
        }
        Ok(())
    }

    /// Leaves the cursor of a workflow that is forgotten, with the ranges that were not completed; false when there is none,
    /// or it has not moved.
    pub(crate) fn leave_cursor(&self, step: &mut Step<'_>) -> Read<bool> {
        let has_moved = self.record.cursor > self.first_rank();
        if !self.has_cursor() || !(has_moved || step.records.mark_from(&self.key, 0)?.is_some()) {
            return Ok(false);
        }
        let cursor = Cursor { next: self.record.cursor, done: self.record.done, since: step.now };
        step.keep_cursor(&self.queue, &self.key, cursor)?;
        Ok(true)
    }

    /// Takes the cursor back that it was opened with: from now on it is the workflow's own.
    pub(crate) fn take_cursor(&self, step: &mut Step<'_>) -> Read<()> {
        let Some(cursor) = self.recalled else { return Ok(()) };
        let mut count = step.records.cursor_count(self.key.queue)?;
        step.drop_cursor(&self.key, cursor, &mut count)?;
        if count.kept == 0 {
            step.drop_cursor_check(self.key.queue, &mut count)?;
        }
        step.count_cursors(self.key.queue, count)
    }

    /// Whether its place is remembered when it is forgotten.
    fn has_cursor(&self) -> bool {
        self.has_places() && matches!(self.queue.options.order, Order::Position { .. })
    }
}

impl Step<'_> {
    fn keep_cursor(&mut self, queue: &QueueRecord, key: &WorkflowKey, cursor: Cursor) -> Read<()> {
        let mut count = self.records.cursor_count(queue.id)?;
        self.write(Change::Cursor(key.clone(), cursor.since, Some(cursor)))?;
        count.kept += 1;
        self.plan_cursor_check(queue.id, &queue.options, &mut count)?;
        self.count_cursors(queue.id, count)
    }

    /// Forgets cursors that are too old or too many, the oldest first and a limited number at once.
    pub(crate) fn forget_cursors(&mut self, queue: &QueueRecord) -> Read<()> {
        let mut count = self.records.cursor_count(queue.id)?;
        count.check = None;
        for _ in 0..limits::SWEEP_MAX {
            let Some((since, key)) = self.records.cursor_oldest(queue.id)? else { break };
            let is_old = since + queue.options.remember_cursor <= self.now;
            if !is_old && count.kept <= queue.options.cursors_max {
                break;
            }
            let cursor = self.records.cursor(&key)?.expect("every cursor that is listed is kept");
            if self.drop_a_range(&key, cursor)? {
                self.drop_cursor(&key, cursor, &mut count)?;
                // A queue that is to remember none has not too many.
                count.cut += u64::from(!is_old && queue.options.cursors_max > 0);
            }
        }
        self.plan_cursor_check(queue.id, &queue.options, &mut count)?;
        self.count_cursors(queue.id, count)
    }

    /// The options of a queue become others: the cursors it remembers are judged by them.
    pub(crate) fn change_cursors(&mut self, queue: &QueueRecord, options: &QueueOptions) -> Read<()> {
        let mut count = self.records.cursor_count(queue.id)?;
        if count.kept == 0 {
            return Ok(());
        }
        self.drop_cursor_check(queue.id, &mut count)?;
        self.plan_cursor_check(queue.id, options, &mut count)?;
        self.count_cursors(queue.id, count)
    }

    /// Drops one range of a cursor that is to be forgotten; true when none is left. What is left in between never takes a
    /// position that was given up for one that was completed: ranges are joined before the last one goes.
    fn drop_a_range(&mut self, key: &WorkflowKey, cursor: Cursor) -> Read<bool> {
        if let Some(ahead) = self.records.mark_from(key, cursor.next)? {
            self.write(Change::Mark(key.clone(), ahead.from, None))?;
            return Ok(false);
        }
        let Some(first) = self.records.mark_from(key, 0)? else { return Ok(true) };
        let Some(second) = self.records.mark_from(key, first.from + 1)? else {
            self.write(Change::Mark(key.clone(), first.from, None))?;
            return Ok(true);
        };
        let both = MarkRecord { to: second.to, how: SettlementKind::Skipped, ..first };
        self.write(Change::Mark(key.clone(), second.from, None))?;
        self.write(Change::Mark(key.clone(), first.from, Some(both)))?;
        Ok(false)
    }

    fn drop_cursor(&mut self, key: &WorkflowKey, cursor: Cursor, count: &mut CursorCount) -> Read<()> {
        count.kept = count.kept.checked_sub(1).expect("every cursor that is kept is counted");
        self.write(Change::Cursor(key.clone(), cursor.since, None))
    }

    /// Sets the reminder to look at the oldest cursor, or moves it to now when there are too many.
    fn plan_cursor_check(
        &mut self,
        queue: QueueId,
        options: &QueueOptions,
        count: &mut CursorCount,
    ) -> Read<()> {
        let Some(due) = self.end_of_oldest(queue, options, count)? else { return Ok(()) };
        if count.check.is_some_and(|check| check <= due) {
            return Ok(());
        }
        self.drop_cursor_check(queue, count)?;
        count.check = Some(due);
        self.set_reminder(due, queue, Remind::Cursors)
    }

    /// When the oldest cursor is looked at: at once when there are too many. One that is due soon waits a moment for others.
    fn end_of_oldest(
        &self,
        queue: QueueId,
        options: &QueueOptions,
        count: &CursorCount,
    ) -> Read<Option<Timestamp>> {
        let Some((since, _)) = self.records.cursor_oldest(queue)? else { return Ok(None) };
        let due = since + options.remember_cursor;
        if due <= self.now || count.kept > options.cursors_max {
            return Ok(Some(self.now));
        }
        Ok(Some(due.max(self.now + limits::CURSORS_FORGET_EVERY)))
    }

    /// Counts settled links of an after-ordered workflow that were forgotten because there were too many.
    pub(crate) fn count_cut_links(&mut self, queue: QueueId, cut: u64) -> Read<()> {
        if cut == 0 {
            return Ok(());
        }
        let mut count = self.records.cursor_count(queue)?;
        count.links_cut += cut;
        self.count_cursors(queue, count)
    }

    fn drop_cursor_check(&mut self, queue: QueueId, count: &mut CursorCount) -> Read<()> {
        match count.check.take() {
            Some(check) => self.drop_reminder(check, queue, Remind::Cursors),
            None => Ok(()),
        }
    }

    fn count_cursors(&mut self, queue: QueueId, count: CursorCount) -> Read<()> {
        let count = Some(count).filter(|count| *count != CursorCount::default());
        self.write(Change::CursorCount(queue, count))
    }
}
