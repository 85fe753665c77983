//! What happens when a reminder is due: late perhaps, never early, never lost.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::due::Due;
use crate::engine::rules::line::LinePlace;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;

impl Step<'_> {
    /// Does what a reminder that is due reminds of. `used_at` is the last use of its queue that is not on disk.
    pub(crate) fn remind(&mut self, reminder: Reminder, used_at: Timestamp) -> Read<()> {
        assert!(reminder.due.is_past(self.clocks()), "a reminder never fires early");
        self.write(Change::Reminder(reminder.clone(), false))?;
        if let (QueueId::OF_TOPICS, Remind::Answer(key)) = (reminder.queue, &reminder.what) {
            return self.forget_answer(reminder.queue, key.clone());
        }
        // A deleted queue leaves its reminders behind, so that deleting it looks for none.
        let Some(queue) = self.records.queue(reminder.queue)? else {
            return Ok(());
        };
        match reminder.what {
            Remind::Due(sequence) => self.bring_back(&queue, sequence),
            Remind::Expiry(sequence) => self.expire_unlocked(&queue, sequence),
            Remind::Gap(stream) => {
                let mut workflow = OpenWorkflow::open(self, &queue, stream)?;
                workflow.gap_is_overdue(reminder.due.at());
                workflow.close(self)
            }
            Remind::Sweep(stream) => self.sweep(&queue, stream),
            Remind::Forget(stream) => self.forget(&queue, stream),
            Remind::Duplicate(id) => self.forget_duplicate(&queue, id),
            Remind::Idle => self.check_idle(queue.id, used_at),
            Remind::Answer(key) => self.forget_answer(queue.id, key),
            Remind::History => self.forget_history(&queue),
            Remind::Cursors => self.forget_cursors(&queue),
        }
    }

    /// A scheduled, failed or set-aside message is due.
    fn bring_back(&mut self, queue: &Arc<QueueRecord>, sequence: SequenceNumber) -> Read<()> {
        let before = self.message_listed(queue.id, sequence)?;
        OpenWorkflow::open(self, queue, before.stream.clone())?.bring_back(self, sequence, &before)
    }

    /// The expiry of a scheduled message whose instant has come: what is left of its time to live runs on engine time.
    fn begin_to_live(&self, expiry: Due) -> Due {
        if expiry.is_of_wall() { Due::engine(self.now + expiry.at().since(self.wall)) } else { expiry }
    }

    /// A message's time to live is over. One that is handed out is protected until it comes back.
    fn expire_unlocked(&mut self, queue: &Arc<QueueRecord>, sequence: SequenceNumber) -> Read<()> {
        let message = self.message_listed(queue.id, sequence)?;
        if matches!(message.status, Status::Locked { .. }) {
            return Ok(());
        }
        let mut workflow = OpenWorkflow::open(self, queue, message.stream.clone())?;
        workflow.expire(self, sequence, &message)?;
        workflow.close(self)
    }

    /// Goes on with what one command could not finish: extending a run, quarantining or redriving a workflow.
    fn sweep(&mut self, queue: &Arc<QueueRecord>, stream: WorkflowRef) -> Read<()> {
        let mut workflow = OpenWorkflow::open(self, queue, stream)?;
        workflow.record.rare.sweep = None;
        let from = self.locks.take_redrive_from(&workflow.key);
        if workflow.record.rare.holds.has(HoldKind::Quarantine) {
            workflow.quarantine_some(self)?;
        } else if workflow.record.rare.holds.has(HoldKind::Redriving) && workflow.put_back_some(self, from)? {
            workflow.resume_for(self, HoldKind::Redriving)?;
        }
        if workflow.is_extending() {
            workflow.extend(self)?;
        }
        workflow.close(self)
    }

    /// Forgets a workflow that has been idle for long enough, or looks again when it could be.
    fn forget(&mut self, queue: &Arc<QueueRecord>, stream: WorkflowRef) -> Read<()> {
        let mut workflow = OpenWorkflow::open(self, queue, stream)?;
        workflow.record.forget = None;
        let idle = workflow.record.idle_since.filter(|_| workflow.is_empty());
        let Some(since) = idle else {
            // It is in use. Nothing has happened to it, so its gap is judged when something does.
            return workflow.close_unjudged(self);
        };
        let due = since + queue.options.forget_after;
        let is_busy = self.locks.of(&workflow.key).is_some() || workflow.is_extending();
        if due > self.now || is_busy {
            workflow.remind_to_forget(self, due.max(self.now + queue.options.lock))?;
            return workflow.close(self);
        }
        let is_done = workflow.leave_cursor(self)? || workflow.forget_places(self)?;
        if !is_done {
            workflow.remind_to_forget(self, self.now)?;
            return workflow.close(self);
        }
        workflow.forget_record(self)
    }

    fn forget_duplicate(&mut self, queue: &Arc<QueueRecord>, id: MessageId) -> Read<()> {
        let known = self.records.duplicate(queue.id, &id)?;
        if known.is_some_and(|known| known.until <= self.now) {
            self.write(Change::Duplicate(queue.id, id, None))?;
        }
        Ok(())
    }
}

impl OpenWorkflow {
    /// Makes a scheduled, failed or set-aside message ready, and closes the workflow.
    pub(crate) fn bring_back(
        mut self: Box<Self>,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: &Arc<MessageRecord>,
    ) -> Read<()> {
        let mut message = MessageRecord::clone(before);
        message.status = Status::Ready;
        if matches!(before.status, Status::Scheduled { .. }) {
            message.rare.expires_at = before.rare.expires_at.map(|expiry| step.begin_to_live(expiry));
        }
        let aside = self.is_aside(before);
        if aside {
            self.leave(step, sequence, before)?;
        }
        self.restate(step, sequence, Some(before), &message)?;
        if let (true, Some(rank)) = (aside, message.rank) {
            if self.has_places() && rank >= self.record.cursor {
                self.unmark(step, rank)?;
            }
            self.join(step, sequence, LinePlace::Line(rank))?;
        }
        self.close(step)
    }
}
