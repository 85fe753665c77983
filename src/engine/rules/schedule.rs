//! What is done to a scheduled message before its instant: it is cancelled, or comes at another instant.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::SendRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// A scheduled message, with its queue and its instant.
struct ScheduledMessage {
    queue: Arc<QueueRecord>,
    message: Arc<MessageRecord>,
    due: Due,
}

impl Step<'_> {
    /// Stops a scheduled message. Its place is free again, or with `void` it is settled.
    pub(crate) fn cancel(
        &mut self,
        name: &QueueName,
        sequence: SequenceNumber,
        void: bool,
    ) -> Ruling<(), SendRefusal> {
        let ScheduledMessage { queue, message, .. } = self.scheduled(name, sequence)?;
        let mut workflow = OpenWorkflow::open(self, &queue, message.stream.clone())?;
        match void || !workflow.has_places() {
            true => workflow.end(self, sequence, &message, SettlementKind::Cancelled)?,
            false => workflow.give_place_back(self, sequence, &message)?,
        }
        workflow.close(self)?;
        Ok(())
    }

    /// Lets a scheduled message come at another instant; one that has passed makes it ready at once. It keeps everything
    /// else, and a time to live begins with the new instant.
    pub(crate) fn reschedule(
        &mut self,
        name: &QueueName,
        sequence: SequenceNumber,
        at: Timestamp,
    ) -> Ruling<(), SendRefusal> {
        let ScheduledMessage { queue, message: before, due: before_due } = self.scheduled(name, sequence)?;
        let mut message = MessageRecord::clone(&before);
        message.status = Status::Scheduled { due: Due::wall(at) };
        // What would have come long ago comes now, and lives from now on.
        let begins = at.max(self.wall);
        message.rare.expires_at =
            before.rare.expires_at.map(|expiry| match expiry.is_of_wall() == before_due.is_of_wall() {
                true => Due::wall(begins + expiry.at().since(before_due.at())),
                false => expiry,
            });
        let mut workflow = OpenWorkflow::open(self, &queue, before.stream.clone())?;
        workflow.restate(self, sequence, Some(&before), &message)?;
        if at > self.wall {
            workflow.close(self)?;
            return Ok(());
        }
        let message = Arc::new(message);
        Ok(workflow.bring_back(self, sequence, &message)?)
    }

    fn scheduled(&self, name: &QueueName, sequence: SequenceNumber) -> Ruling<ScheduledMessage, SendRefusal> {
        let queue = self.queue_or(name, SendRefusal::QueueNotFound)?;
        let message = self.message(queue.id, sequence)?;
        let due = message.as_ref().and_then(|message| match message.status {
            Status::Scheduled { due } => Some(due),
            _ => None,
        });
        match (message, due) {
            (Some(message), Some(due)) => Ok(ScheduledMessage { queue, message, due }),
            _ => refuse(SendRefusal::NotScheduled(sequence)),
        }
    }
}
