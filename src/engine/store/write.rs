//! A change becomes rows.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::turn::Turn;
use crate::error::Fault;
use crate::id::SequenceNumber;

impl Turn<'_> {
    /// Puts or deletes the rows of one change.
    pub(crate) fn apply_change(&mut self, change: Change) -> Result<(), Fault> {
        self.changed = true;
        let (memtables, base) = (&mut *self.memtables, &self.base);
        match change {
            Change::Workflow(key, record) => {
                let is_trial = memtables.workflows.trial.is_some();
                self.meta.standing.note(&key, record.as_deref(), is_trial);
                memtables.workflows.set(base, &key.queue, &key.stream, record)
            }
            Change::Message(key, record) => self.set_message(key, record),
            Change::Content(key, content) => memtables.contents.set(base, &key.queue, &key.sequence, content),
            Change::Line(key, rank, entry) => self.set_line(&key, rank, entry),
            Change::Holding(key, holding) => self.set_holding(&key, holding),
            Change::Ready(queue, ticket, stream) => memtables.ready.set(base, &queue, &ticket, stream),
            Change::Mark(key, rank, mark) => memtables.marks.set(base, &key, &rank, mark),
            Change::Reminder(reminder, there) => {
                memtables.reminders.set(base, &(), &ReminderKey::new(&reminder), there.then_some(()))
            }
            Change::Duplicate(queue, id, entry) => memtables.duplicates.set(base, &queue, &id, entry),
            Change::Numbers(numbers) => {
                self.meta.numbers = numbers;
                Ok(())
            }
            Change::Counters(queue, counters) => {
                self.meta.counters.insert(queue, *counters);
                self.meta.touched_counters.insert(queue);
                Ok(())
            }
            Change::Answer(queue, key, answered) => memtables.answers.set(base, &queue, &key, answered),
            Change::AnswerCount(queue, count) => memtables.answer_counts.set(base, &queue, &(), count),
            Change::History(queue, number, entry) => memtables.history.set(base, &queue, &number, entry),
            Change::HistoryOfMessage(queue, sequence, entry) => {
                memtables.history_by_message.set(base, &queue, &sequence, entry)
            }
            Change::HistoryOfWorkflow(key, number, there) => {
                memtables.history_by_workflow.set(base, &key, &number, there.then_some(()))
            }
            Change::Cursor(key, since, cursor) => {
                let there = cursor.map(|_| ());
                memtables.cursors_by_age.set(base, &key.queue, &(since, key.stream.clone()), there)?;
                memtables.cursors.set(base, &key.queue, &key.stream, cursor)
            }
            Change::CursorCount(queue, count) => memtables.cursor_counts.set(base, &queue, &(), count),
            other => self.apply_rare_change(other),
        }
    }

    fn apply_rare_change(&mut self, change: Change) -> Result<(), Fault> {
        let (memtables, base) = (&mut *self.memtables, &self.base);
        match change {
            Change::State(key, state) => memtables.states.set(base, &key.queue, &key.stream, state),
            Change::Aside(key, rank, entry) => memtables.aside.set(base, &key, &rank, entry),
            Change::Link(key, after, link) => memtables.links.set(base, &key, &after, link),
            Change::Trail(key, rank, entry) => memtables.trails.set(base, &key, &rank, entry),
            Change::Root(key, sequence, there) => {
                memtables.roots.set(base, &key, &sequence, there.then_some(()))
            }
            Change::Waiting(key, id, entry) => memtables.waiting.set(base, &key, &id, entry),
            Change::DeadLetter(key, there) => self.list_dead_letter(*key, there),
            Change::Topic(name, topic) => memtables.topics.set(base, &(), &name, topic),
            Change::Audit(number, entry) => memtables.audit.set(base, &(), &number, entry),
            Change::Queue(record) => {
                self.put_queue(*record);
                Ok(())
            }
            Change::QueueGone(queue) => {
                self.delete_queue(queue);
                Ok(())
            }
            other => unreachable!("every change has its rows: {other:?}"),
        }
    }

    pub(crate) fn set_message(
        &mut self,
        key: MessageKey,
        record: Option<Arc<MessageRecord>>,
    ) -> Result<(), Fault> {
        self.changed = true;
        if let Some(record) = &record {
            self.meta.standing.note_message(key.queue, record);
        }
        self.memtables.messages.set(&self.base, &key.queue, &key.sequence, record)
    }

    pub(crate) fn set_line(
        &mut self,
        key: &WorkflowKey,
        rank: u64,
        entry: Option<SequenceNumber>,
    ) -> Result<(), Fault> {
        self.changed = true;
        self.memtables.line.set(&self.base, key, &rank, entry)
    }

    pub(crate) fn set_holding(&mut self, key: &WorkflowKey, holding: Option<Holding>) -> Result<(), Fault> {
        self.changed = true;
        self.memtables.holdings.set(&self.base, &key.queue, &key.stream, holding)
    }

    fn list_dead_letter(&mut self, key: DeadLetterKey, there: bool) -> Result<(), Fault> {
        let DeadLetterKey { workflow, rank, sequence, reason } = key;
        let (memtables, base, entry) = (&mut *self.memtables, &self.base, there.then_some(()));
        memtables.dead_by_workflow.set(base, &workflow, &(rank, sequence), entry)?;
        memtables.dead_by_reason.set(base, &workflow.queue, &(reason, sequence), entry)
    }
}
