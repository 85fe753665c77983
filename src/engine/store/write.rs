//! A change becomes rows.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Read;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::memtables::Memtables;
use crate::engine::store::turn::Turn;
use crate::engine::store::weight::Weight;
use crate::engine::store::weight::weight_of_failures;
use crate::error::Fault;
use crate::id::SequenceNumber;

impl MutableRecords for Turn<'_> {
    fn begin_trial(&mut self) {
        Turn::begin_trial(self);
    }

    fn roll_back(&mut self) {
        Turn::roll_back(self);
    }

    fn write(&mut self, change: Change) -> Result<(), Fault> {
        self.changed = true;
        self.note_written(|| weight_of(&change));
        let (memtables, base) = (&mut *self.memtables, &self.base);
        match change {
            Change::Workflow(key, record) => self.write_workflow(&key, record.map(|record| *record)),
            Change::Message(key, record) => self.write_message(key, record),
            Change::Content(key, content) => self.write_content(key, content),
            Change::Line(key, rank, entry) => self.write_line(&key, rank, entry),
            Change::Holding(key, holding) => self.write_holding(&key, holding),
            Change::Ready(queue, ticket, stream) => self.set_ready(queue, ticket, stream),
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
            Change::Handovers(partition, mark) => {
                memtables.handovers.set(base, &(), &u64::from(partition), mark)
            }
            Change::Audit(number, entry) => memtables.audit.set(base, &(), &number, entry),
            Change::Queue(record) => {
                self.put_queue(*record);
                Ok(())
            }
            Change::QueueGone(queue) => {
                self.delete_queue(queue);
                Ok(())
            }
        }
    }

    fn write_workflow(&mut self, key: &WorkflowKey, record: Option<WorkflowRecord>) -> Result<(), Fault> {
        self.changed = true;
        self.note_written(|| 2 * ROW_BYTES + weight_of_key(key));
        let is_trial = self.memtables.workflows.trial.is_some();
        self.meta.standing.note(key, record.as_ref(), is_trial);
        let Memtables { of_workflows, workflows, .. } = &mut *self.memtables;
        workflows.set(of_workflows, &self.base, key, &(), record)
    }

    fn write_message(&mut self, key: MessageKey, record: Option<Arc<MessageRecord>>) -> Result<(), Fault> {
        self.note_message(key, record.as_deref());
        let Memtables { of_messages, messages, .. } = &mut *self.memtables;
        messages.set(of_messages, &self.base, &key, &(), record)
    }

    fn update_message(
        &mut self,
        key: MessageKey,
        found: Arc<MessageRecord>,
        change: &mut dyn FnMut(&mut MessageRecord),
    ) -> Read<Arc<MessageRecord>> {
        let mut found = Some(found);
        let Memtables { of_messages, messages, .. } = &mut *self.memtables;
        let changed = messages.update(of_messages, &key, &(), |kept| {
            // Given up first: when the window has the only reference, nothing is copied.
            let is_same = found.take().is_some_and(|found| Arc::ptr_eq(&found, kept));
            assert!(is_same, "what is changed is what was found");
            change(Arc::make_mut(kept));
            kept.clone()
        });
        if let Some(record) = changed {
            self.note_message(key, Some(&record));
            return Ok(record);
        }
        let mut record = found.expect("nothing was changed in the window");
        // It is flushed then. What was read of it goes first, for the same reason.
        messages.flushed.forget(&key.queue, &key.sequence);
        change(Arc::make_mut(&mut record));
        messages.place(of_messages, &key, &(), Some(record.clone()), true);
        self.note_message(key, Some(&record));
        Ok(record)
    }

    fn write_content(&mut self, key: MessageKey, content: Option<MessageContent>) -> Result<(), Fault> {
        self.changed = true;
        self.note_written(|| ROW_BYTES + content.as_ref().map_or(0, Weight::bytes));
        let Memtables { of_messages, contents, .. } = &mut *self.memtables;
        contents.set(of_messages, &self.base, &key, &(), content)
    }

    fn write_line(
        &mut self,
        key: &WorkflowKey,
        rank: u64,
        entry: Option<SequenceNumber>,
    ) -> Result<(), Fault> {
        self.changed = true;
        self.note_written(|| weight_of_key(key));
        let Memtables { of_workflows, line, .. } = &mut *self.memtables;
        line.set(of_workflows, &self.base, key, &rank, entry)
    }

    fn write_ready(&mut self, key: &WorkflowKey, ticket: u64, is_ready: bool) -> Result<(), Fault> {
        self.set_ready(key.queue, ticket, is_ready.then(|| key.stream.clone()))
    }

    fn write_holding(&mut self, key: &WorkflowKey, holding: Option<Holding>) -> Result<(), Fault> {
        self.changed = true;
        let listed = holding.as_ref().map_or(0, |holding| 10 * holding.out.len() as u64);
        self.note_written(|| weight_of_key(key) + listed);
        let Memtables { of_workflows, holdings, .. } = &mut *self.memtables;
        holdings.set(of_workflows, &self.base, key, &(), holding)
    }
}

impl Turn<'_> {
    #[inline]
    fn set_ready(&mut self, queue: QueueId, ticket: u64, stream: Option<WorkflowRef>) -> Result<(), Fault> {
        self.changed = true;
        self.note_written(|| ROW_BYTES + stream.as_ref().map_or(0, weight_of_stream));
        self.memtables.ready.set(&self.base, &queue, &ticket, stream)
    }

    /// Notes that a message is written.
    #[inline]
    fn note_message(&mut self, key: MessageKey, record: Option<&MessageRecord>) {
        self.changed = true;
        self.note_written(|| weight_of_message(record));
        if let Some(record) = record {
            self.meta.standing.note_message(key.queue, record);
        }
    }

    fn list_dead_letter(&mut self, key: DeadLetterKey, there: bool) -> Result<(), Fault> {
        let DeadLetterKey { workflow, rank, sequence, reason } = key;
        let (memtables, base, entry) = (&mut *self.memtables, &self.base, there.then_some(()));
        memtables.dead_by_workflow.set(base, &workflow, &(rank, sequence), entry)?;
        memtables.dead_by_reason.set(base, &workflow.queue, &(reason, sequence), entry)
    }
}

/// At least as many bytes as the rows of a change take in the entry of its turn.
fn weight_of(change: &Change) -> u64 {
    match change {
        // Counted where they are set.
        Change::Workflow(..)
        | Change::Message(..)
        | Change::Content(..)
        | Change::Line(..)
        | Change::Holding(..)
        | Change::Ready(..) => 0,
        Change::State(key, state) => weight_of_key(key) + state.as_ref().map_or(0, Weight::bytes),
        Change::Aside(key, ..)
        | Change::Link(key, ..)
        | Change::Trail(key, ..)
        | Change::Root(key, ..)
        | Change::Waiting(key, ..)
        | Change::Mark(key, ..)
        | Change::HistoryOfWorkflow(key, ..)
        | Change::Cursor(key, ..) => 2 * weight_of_key(key),
        Change::DeadLetter(key, _) => 2 * (weight_of_key(&key.workflow) + key.reason.len() as u64),
        Change::Answer(_, _, answer) => 4 * ROW_BYTES + answer.as_ref().map_or(0, Weight::bytes),
        Change::Audit(_, entry) => 4 * ROW_BYTES + entry.as_ref().map_or(0, Weight::bytes),
        Change::History(_, _, entry) => 8 * ROW_BYTES + entry.as_ref().map_or(0, Weight::bytes),
        Change::Topic(_, topic) => ROW_BYTES + topic.as_ref().map_or(0, Weight::bytes),
        Change::Handovers(_, mark) => ROW_BYTES + mark.as_ref().map_or(0, Weight::bytes),
        Change::Reminder(reminder, _) => match &reminder.what {
            Remind::Sweep(_) => 16 * ROW_BYTES,
            _ => 8 * ROW_BYTES,
        },
        _ => 4 * ROW_BYTES,
    }
}

/// What a row takes beside texts: its key, lengths, numbers and instants.
const ROW_BYTES: u64 = 64;

#[inline]
fn weight_of_stream(stream: &WorkflowRef) -> u64 {
    stream.workflow_id().map_or(9, |id| id.as_str().len() as u64)
}

#[inline]
fn weight_of_key(key: &WorkflowKey) -> u64 {
    ROW_BYTES + weight_of_stream(&key.stream)
}

#[inline]
fn weight_of_message(record: Option<&MessageRecord>) -> u64 {
    let Some(record) = record else { return ROW_BYTES };
    let ids = [&record.message_id, &record.rare.after].into_iter().flatten().map(|id| id.as_str().len());
    let ids = ids.sum::<usize>() as u64;
    2 * ROW_BYTES + weight_of_stream(&record.stream) + ids + weight_of_failures(record)
}
