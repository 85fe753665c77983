//! What happens when a reminder is due: late perhaps, never early, never lost.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::line::LinePlace;
use crate::engine::rules::record::HoldCause;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Stream;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow::Workflow;
use crate::id::MessageId;
use crate::id::SequenceNumber;

impl Step<'_> {
    /// Does what a reminder that is due reminds of. `used_at` is the last use of its queue that is not on disk.
    pub(crate) fn remind(&mut self, reminder: Reminder, used_at: Timestamp) -> Read<()> {
        assert!(reminder.due <= self.now, "a reminder never fires early");
        self.write(Change::Reminder(reminder.clone(), false))?;
        // A deleted queue leaves its reminders behind, so that deleting it looks for none.
        let Some(queue) = self.records.queue(reminder.queue)? else {
            return Ok(());
        };
        match reminder.what {
            Remind::Due(sequence) => self.bring_back(&queue, sequence),
            Remind::Expiry(sequence) => self.expire_unlocked(&queue, sequence),
            Remind::Gap(stream) => {
                let mut workflow = Workflow::open(self, &queue, stream)?;
                workflow.gap_is_overdue(reminder.due);
                workflow.close(self)
            }
            Remind::Sweep(stream) => self.sweep(&queue, stream),
            Remind::Forget(stream) => self.forget(&queue, stream),
            Remind::Duplicate(id) => self.forget_duplicate(&queue, id),
            Remind::Idle => self.check_idle(queue.id, used_at),
            Remind::Answer(key) => self.forget_answer(queue.id, key),
        }
    }

    /// A scheduled, failed or set-aside message is due.
    fn bring_back(&mut self, queue: &Arc<QueueRecord>, sequence: SequenceNumber) -> Read<()> {
        let before = self.message_listed(queue.id, sequence)?;
        let mut workflow = Workflow::open(self, queue, before.stream.clone())?;
        let mut message = MessageRecord::clone(&before);
        message.status = Status::Ready;
        let aside = workflow.is_aside(&before);
        if aside {
            workflow.leave(self, sequence, &before)?;
        }
        workflow.restate(self, sequence, Some(&before), &message)?;
        if let (true, Some(rank)) = (aside, message.rank) {
            if workflow.is_positional() && rank >= workflow.record.cursor {
                workflow.unmark(self, rank)?;
            }
            workflow.join(self, sequence, LinePlace::Line(rank))?;
        }
        workflow.close(self)
    }

    /// A message's time to live is over. One that is handed out is protected until it comes back.
    fn expire_unlocked(&mut self, queue: &Arc<QueueRecord>, sequence: SequenceNumber) -> Read<()> {
        let message = self.message_listed(queue.id, sequence)?;
        if matches!(message.status, Status::Locked { .. }) {
            return Ok(());
        }
        let mut workflow = Workflow::open(self, queue, message.stream.clone())?;
        workflow.expire(self, sequence, &message)?;
        workflow.close(self)
    }

    /// Goes on with what one command could not finish: extending a run, quarantining or redriving a workflow.
    fn sweep(&mut self, queue: &Arc<QueueRecord>, stream: Stream) -> Read<()> {
        let mut workflow = Workflow::open(self, queue, stream)?;
        workflow.record.sweep = None;
        match workflow.record.hold.as_ref().map(|hold| hold.cause.clone()) {
            Some(HoldCause::Quarantine(_)) => workflow.quarantine_some(self)?,
            Some(HoldCause::Redriving) => {
                let done = workflow.put_back_some(self)?;
                workflow.resume_redriven(self, done)?;
            }
            _ => {}
        }
        if workflow.record.extending {
            workflow.extend(self)?;
        }
        workflow.close(self)
    }

    /// Forgets a workflow that has been idle for long enough, or looks again when it could be.
    fn forget(&mut self, queue: &Arc<QueueRecord>, stream: Stream) -> Read<()> {
        let mut workflow = Workflow::open(self, queue, stream)?;
        workflow.record.forget = None;
        let idle = workflow.record.idle_since.filter(|_| workflow.is_empty());
        let Some(since) = idle else {
            return workflow.close(self);
        };
        let due = since + queue.options.forget_after;
        let held = self.locks.of(&workflow.key).is_some();
        if due > self.now || held {
            workflow.remind_to_forget(self, due.max(self.now + queue.options.lock))?;
            return workflow.close(self);
        }
        if !workflow.forget_places(self)? {
            workflow.remind_to_forget(self, self.now)?;
            return workflow.close(self);
        }
        self.write(Change::Workflow(workflow.key.clone(), None))
    }

    fn forget_duplicate(&mut self, queue: &Arc<QueueRecord>, id: MessageId) -> Read<()> {
        let known = self.records.duplicate(queue.id, &id)?;
        if known.is_some_and(|known| known.until <= self.now) {
            self.write(Change::Duplicate(queue.id, id, None))?;
        }
        Ok(())
    }
}
