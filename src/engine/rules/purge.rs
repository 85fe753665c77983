//! Purge: messages are removed for good, a limited number in one command. What is handed out stays.

use std::ops::Bound;
use std::sync::Arc;

use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Purged;
use crate::engine::rules::line::is_dead;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Settled;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Stream;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::engine::rules::workflow::Workflow;
use crate::error::OperateRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;

impl Step<'_> {
    /// Removes some of what the scope names, and says where to go on.
    pub(crate) fn purge(
        &mut self,
        name: &QueueName,
        scope: PurgeScope,
        from: SequenceNumber,
    ) -> Ruling<Purged, OperateRefusal> {
        let Some(queue) = self.queue_named(name)? else {
            return refuse(OperateRefusal::QueueNotFound(name.clone()));
        };
        Ok(match scope {
            PurgeScope::Everything => self.purge_everything(&queue, from)?,
            PurgeScope::DeadLetters => self.purge_dead_letters(&queue)?,
            PurgeScope::Workflow(id) => self.purge_workflow(&queue, id)?,
            PurgeScope::DeadLetter(sequence) => self.purge_dead_letter(&queue, sequence)?,
        })
    }

    fn purge_everything(&mut self, queue: &Arc<QueueRecord>, from: SequenceNumber) -> Read<Purged> {
        let mut count = 0;
        let mut next = from;
        for _ in 0..limits::SWEEP_MAX {
            let Some((sequence, message)) = self.records.message_from(queue.id, next)? else {
                return Ok(Purged::new(count, None));
            };
            next = SequenceNumber::new(sequence.get() + 1);
            count += u64::from(self.purge_one(queue, sequence, &message)?);
        }
        Ok(Purged::new(count, Some(next)))
    }

    fn purge_dead_letters(&mut self, queue: &Arc<QueueRecord>) -> Read<Purged> {
        let letters = self.records.dead_letters(queue.id, Bound::Unbounded, limits::SWEEP_MAX)?;
        let more = letters.len() == limits::SWEEP_MAX;
        for (_, sequence) in &letters {
            let message = self.message_listed(queue.id, *sequence)?;
            self.purge_one(queue, *sequence, &message)?;
        }
        Ok(Purged::new(letters.len() as u64, more.then_some(SequenceNumber::new(0))))
    }

    fn purge_dead_letter(&mut self, queue: &Arc<QueueRecord>, sequence: SequenceNumber) -> Read<Purged> {
        let Some(message) = self.message(queue.id, sequence)?.filter(|message| is_dead(message)) else {
            return Ok(Purged::new(0, None));
        };
        self.purge_one(queue, sequence, &message)?;
        Ok(Purged::new(1, None))
    }

    fn purge_workflow(&mut self, queue: &Arc<QueueRecord>, id: WorkflowId) -> Read<Purged> {
        let stream = Stream::Named(id);
        for count in 0..limits::SWEEP_MAX {
            let workflow = Workflow::open(self, queue, stream.clone())?;
            let Some(sequence) = workflow.first_to_purge(self)? else {
                return Ok(Purged::new(count as u64, None));
            };
            let message = self.message_listed(queue.id, sequence)?;
            self.purge_one(queue, sequence, &message)?;
        }
        Ok(Purged::new(limits::SWEEP_MAX as u64, Some(SequenceNumber::new(0))))
    }

    /// Removes one message, unless it is handed out.
    fn purge_one(
        &mut self,
        queue: &Arc<QueueRecord>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<bool> {
        if matches!(message.status, Status::Locked { .. }) {
            return Ok(false);
        }
        let mut workflow = Workflow::open(self, queue, message.stream.clone())?;
        if is_dead(message) {
            workflow.list_dead_letter(self, sequence, message, false)?;
            workflow.erase(self, sequence, message)?;
            self.tally(queue.id)?.counts.purged += 1;
        } else {
            workflow.lift_hold_of(self, sequence)?;
            workflow.end(self, sequence, message, Settled::Purged)?;
        }
        workflow.close(self)?;
        Ok(true)
    }
}

impl Workflow {
    fn first_to_purge(&self, step: &Step<'_>) -> Read<Option<SequenceNumber>> {
        if let Some(sequence) = self.first_not_handed_out(step)? {
            return Ok(Some(sequence));
        }
        let mut from = 0;
        while let Some((rank, sequence)) = step.records.aside_from(&self.key, from)? {
            if !matches!(step.message_listed(self.key.queue, sequence)?.status, Status::Locked { .. }) {
                return Ok(Some(sequence));
            }
            from = rank + 1;
        }
        let letter = step.records.dead_letter_of(&self.key, (0, SequenceNumber::new(0)))?;
        Ok(letter.map(|(_, sequence)| sequence))
    }

    /// The first message of the line that nobody has out; early ones last.
    fn first_not_handed_out(&self, step: &Step<'_>) -> Read<Option<SequenceNumber>> {
        let mut from = 0;
        while let Some((rank, sequence, message)) = self.line_from(step, from)? {
            if !matches!(message.status, Status::Locked { .. }) {
                return Ok(Some(sequence));
            }
            from = rank + 1;
        }
        if self.is_chained() { self.next_waiting(step) } else { Ok(None) }
    }

    /// Moves messages of a quarantined workflow to the dead letters, in order, a limited number at once.
    pub(crate) fn quarantine_some(&mut self, step: &mut Step<'_>) -> Read<()> {
        for _ in 0..limits::SWEEP_MAX {
            let Some(sequence) = self.first_not_handed_out(step)? else {
                return Ok(());
            };
            self.dead_letter_quietly(
                step,
                sequence,
                QUARANTINED,
                "an earlier message of its workflow was spent",
            )?;
        }
        Ok(())
    }
}

/// Reason of a dead letter whose workflow was quarantined.
pub(crate) const QUARANTINED: &str = "Quarantined";
