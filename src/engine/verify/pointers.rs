//! Every row that points at something: what it points at is there, and says the same.

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::store::schema::Answers;
use crate::engine::store::schema::CursorCounts;
use crate::engine::store::schema::DeadByReason;
use crate::engine::store::schema::Duplicates;
use crate::engine::store::schema::Ready;
use crate::engine::store::schema::Reminders;
use crate::engine::verify::compare::RowComparison;
use crate::engine::verify::compare::reminders_of;
use crate::error::Fault;

impl RowComparison<'_, '_> {
    /// Each ready workflow is there under its ticket.
    pub(crate) fn compare_ready(&mut self) -> Result<(), Fault> {
        for row in self.rows.rows::<Ready>()? {
            let (queue, ticket, stream) = row?;
            self.findings.go_on();
            let workflow = self.workflow(&WorkflowKey { queue, stream })?;
            if workflow.and_then(|workflow| workflow.ticket) != Some(ticket) {
                self.findings.row::<Ready>(&queue, &ticket, "its workflow does not have this ticket");
            }
            if ticket > self.ledger.numbers.next_ticket {
                self.findings.row::<Ready>(&queue, &ticket, "its ticket was never given");
            }
        }
        Ok(())
    }

    /// Each reminder reminds of something, unless its queue is gone.
    pub(crate) fn compare_reminders(&mut self) -> Result<(), Fault> {
        for row in self.rows.rows::<Reminders>()? {
            let ((), key, ()) = row?;
            self.findings.go_on();
            let Some(reminder) = key.reminder() else {
                self.findings.row::<Reminders>(&(), &key, "it makes no sense");
                continue;
            };
            let exists = reminder.queue == QueueId::OF_TOPICS || self.queue(reminder.queue).is_some();
            if exists && !self.is_meant(&reminder)? {
                self.findings.row::<Reminders>(&(), &key, "it reminds of nothing");
            }
        }
        Ok(())
    }

    /// Whether what a reminder is about waits for this instant.
    fn is_meant(&self, reminder: &Reminder) -> Result<bool, Fault> {
        let (due, queue) = (reminder.due, reminder.queue);
        let is_due = |at: Option<Timestamp>| at.map(Due::engine) == Some(due);
        let workflow = |stream: &_| self.workflow(&WorkflowKey { queue, stream: Clone::clone(stream) });
        Ok(match &reminder.what {
            Remind::Due(sequence) | Remind::Expiry(sequence) => {
                let key = MessageKey { queue, sequence: *sequence };
                self.message(key)?.is_some_and(|message| reminders_of(key, &message).contains(reminder))
            }
            Remind::Gap(stream) => {
                is_due(workflow(stream)?.and_then(|workflow| workflow.rare.gap).and_then(|gap| gap.due))
            }
            Remind::Sweep(stream) => is_due(workflow(stream)?.and_then(|workflow| workflow.rare.sweep)),
            Remind::Forget(stream) => is_due(workflow(stream)?.and_then(|workflow| workflow.forget)),
            Remind::Duplicate(id) => {
                is_due(self.rows.get::<Duplicates>(&queue, id)?.map(|known| known.until))
            }
            Remind::Idle => is_due(self.queue(queue).and_then(|record| record.idle_check)),
            Remind::Answer(key) => is_due(self.rows.get::<Answers>(&queue, key)?.map(|known| known.until)),
            Remind::Cursors => {
                is_due(self.rows.get::<CursorCounts>(&queue, &())?.and_then(|count| count.check))
            }
            Remind::History => {
                is_due(self.ledger.counters.get(&queue).and_then(|counters| counters.history.check))
            }
        })
    }

    /// Each row of a list of dead letters names one, under its own reason.
    pub(crate) fn compare_dead_letters(&mut self) -> Result<(), Fault> {
        for row in self.rows.rows::<DeadByReason>()? {
            let (queue, (reason, sequence), ()) = row?;
            self.findings.go_on();
            let message = self.message(MessageKey { queue, sequence })?;
            let named = message.is_some_and(|message| match &message.status {
                Status::DeadLettered(dead_letter) => dead_letter.reason == reason,
                _ => false,
            });
            if !named {
                let problem = "its message is no dead letter with this reason";
                self.findings.row::<DeadByReason>(&queue, &(reason, sequence), problem);
            }
        }
        Ok(())
    }

    /// Each message ID that is remembered will be forgotten.
    pub(crate) fn compare_duplicates(&mut self) -> Result<(), Fault> {
        for row in self.rows.rows::<Duplicates>()? {
            let (queue, id, known) = row?;
            self.findings.go_on();
            let reminder = Reminder { due: known.until.into(), queue, what: Remind::Duplicate(id.clone()) };
            if self.queue(queue).is_none() {
                self.findings.row::<Duplicates>(&queue, &id, "its queue is not there");
            } else if !self.is_reminded(reminder)? {
                self.findings.row::<Duplicates>(&queue, &id, "its reminder is not there");
            }
            if known.sequence.get() >= self.ledger.numbers.next_sequence {
                self.findings.row::<Duplicates>(&queue, &id, "its message's number was never given");
            }
        }
        Ok(())
    }
}
