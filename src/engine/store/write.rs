//! A change becomes rows.

use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::store::key::Key;
use crate::engine::store::turn::Turn;
use crate::error::Fault;

/// The value of a row whose key says all.
const NOTHING: &() = &();

impl Turn<'_> {
    /// Puts or deletes the rows of one change.
    pub(crate) fn apply_change(&mut self, change: Change) -> Result<(), Fault> {
        self.changed = true;
        match change {
            Change::Numbers(numbers) => {
                self.kept.numbers = numbers;
                Ok(())
            }
            Change::Queue(record) => {
                self.queues.set(&Key::queue(record.id), Some(&record))?;
                self.keep_queue(record);
                Ok(())
            }
            Change::QueueGone(queue) => self.delete_queue(queue),
            Change::Tally(queue, tally) => {
                self.kept.tallies.insert(queue, tally);
                self.kept.dirty_tallies.insert(queue);
                Ok(())
            }
            Change::Workflow(key, record) => self.workflows.set(&Key::workflow(&key), record.as_ref()),
            Change::State(key, state) => self.states.set(&Key::workflow(&key), state.as_ref()),
            Change::Message(key, record) => self.messages.set(&Key::message(key), record.as_ref()),
            Change::Content(key, content) => self.contents.set(&Key::message(key), content.as_ref()),
            Change::Line(key, rank, entry) => {
                self.line.set(&Key::workflow(&key).number(rank), entry.as_ref())
            }
            Change::Aside(key, rank, entry) => {
                self.aside.set(&Key::workflow(&key).number(rank), entry.as_ref())
            }
            other => self.apply_rare_change(other),
        }
    }

    fn apply_rare_change(&mut self, change: Change) -> Result<(), Fault> {
        match change {
            Change::Link(key, after, link) => {
                self.links.set(&Key::workflow(&key).optional_id(after.as_ref()), link.as_ref())
            }
            Change::Trail(key, rank, entry) => {
                self.trails.set(&Key::workflow(&key).number(rank), entry.as_ref())
            }
            Change::Root(key, sequence, there) => {
                self.roots.set(&Key::workflow(&key).number(sequence.get()), there.then_some(NOTHING))
            }
            Change::Waiting(key, id, entry) => {
                self.waiting.set(&Key::workflow(&key).text(id.as_str()), entry.as_ref())
            }
            Change::Mark(key, rank, mark) => self.marks.set(&Key::workflow(&key).number(rank), mark.as_ref()),
            Change::Holding(key, holding) => self.holdings.set(&Key::workflow(&key), holding.as_ref()),
            Change::Ready(queue, ticket, stream) => {
                self.ready.set(&Key::queue(queue).number(ticket), stream.as_ref())
            }
            Change::Reminder(reminder, there) => {
                self.reminders.set(&Key::reminder(&reminder), there.then_some(NOTHING))
            }
            Change::DeadLetter(key, there) => self.list_dead_letter(&key, there),
            Change::Duplicate(queue, id, entry) => {
                self.duplicates.set(&Key::queue(queue).text(id.as_str()), entry.as_ref())
            }
            other => unreachable!("every change has its rows: {other:?}"),
        }
    }

    fn list_dead_letter(&mut self, key: &DeadLetterKey, there: bool) -> Result<(), Fault> {
        let entry = there.then_some(NOTHING);
        let sequence = key.sequence.get();
        let by_workflow = Key::workflow(&key.workflow).number(key.rank).number(sequence);
        self.dead_by_workflow.set(&by_workflow, entry)?;
        let by_reason = Key::queue(key.workflow.queue).text(&key.reason).number(sequence);
        self.dead_by_reason.set(&by_reason, entry)
    }
}
