//! Remembered cursors: each is of a workflow that is forgotten, listed by age and counted, and the oldest will be forgotten.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::store::schema::CursorCounts;
use crate::engine::store::schema::Cursors;
use crate::engine::store::schema::CursorsByAge;
use crate::engine::verify::compare::RowComparison;
use crate::error::Fault;
use crate::queue::Order;

impl RowComparison<'_, '_> {
    /// Compares the cursors that are remembered with their lists and their counts.
    pub(crate) fn compare_cursors(&mut self) -> Result<(), Fault> {
        let mut found: BTreeMap<QueueId, u64> = BTreeMap::new();
        for row in self.rows.rows::<Cursors>()? {
            let (queue, stream, cursor) = row?;
            self.findings.go_on();
            *found.entry(queue).or_default() += 1;
            let key = WorkflowKey { queue, stream: stream.clone() };
            let order = self.queue(queue).map(|queue| queue.options.order);
            let is_listed = self.rows.get::<CursorsByAge>(&queue, &(cursor.since, stream.clone()))?.is_some();
            let problem = match order {
                None => "its queue is not there",
                Some(Order::Position { .. }) if self.workflow(&key)?.is_some() => "its workflow is there",
                Some(Order::Position { .. }) if !is_listed => "it is not listed by its age",
                Some(Order::Position { .. }) => continue,
                Some(_) => "its queue has no positions",
            };
            self.findings.row::<Cursors>(&queue, &stream, problem);
        }
        for row in self.rows.rows::<CursorsByAge>()? {
            let (queue, listed, ()) = row?;
            self.findings.go_on();
            let cursor = self.rows.get::<Cursors>(&queue, &listed.1)?;
            if cursor.map(|cursor| cursor.since) != Some(listed.0) {
                self.findings.row::<CursorsByAge>(&queue, &listed, "its cursor is not of this age");
            }
        }
        self.compare_cursor_counts(found)
    }

    fn compare_cursor_counts(&mut self, mut found: BTreeMap<QueueId, u64>) -> Result<(), Fault> {
        let mut counts: BTreeMap<QueueId, CursorCount> = BTreeMap::new();
        for row in self.rows.rows::<CursorCounts>()? {
            let (queue, (), count) = row?;
            found.entry(queue).or_default();
            counts.insert(queue, count);
        }
        for (queue, found) in found {
            let count = counts.get(&queue).copied().unwrap_or_default();
            let reminder = |due: Timestamp| Reminder { due: due.into(), queue, what: Remind::Cursors };
            let is_reminded = match count.check {
                Some(due) => self.is_reminded(reminder(due))?,
                None => count.kept == 0,
            };
            if self.queue(queue).is_none() {
                self.findings.row::<CursorCounts>(&queue, &(), "its queue is not there");
            } else if count.kept != found {
                let problem = format!("it counts {} cursors, there are {found}", count.kept);
                self.findings.row::<CursorCounts>(&queue, &(), problem);
            } else if !is_reminded {
                self.findings.row::<CursorCounts>(&queue, &(), "the reminder of its cursors is not there");
            }
        }
        Ok(())
    }
}
