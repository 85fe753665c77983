//! Purge: messages are removed for good, a limited number in one command. What is handed out stays.

use std::ops::Bound;
use std::sync::Arc;

use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::PurgeStep;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::line::is_dead;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::error::OperateRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;

impl Step<'_> {
    /// Removes some of what the scope names, and says where to go on. What it looks at is limited, removed or not.
    pub(crate) fn purge(
        &mut self,
        name: &QueueName,
        scope: PurgeScope,
        from: PurgeFrom,
    ) -> Ruling<PurgeStep, OperateRefusal> {
        let queue = self.queue_to_operate(name)?;
        Ok(match scope {
            PurgeScope::Everything => self.purge_everything(&queue, &from)?,
            PurgeScope::DeadLetters => self.purge_dead_letters(&queue, &from)?,
            PurgeScope::Workflow(id) => self.purge_workflow(&queue, id, &from)?,
            PurgeScope::DeadLetter(sequence) => self.purge_dead_letter(&queue, sequence)?,
        })
    }

    fn purge_everything(&mut self, queue: &Arc<QueueRecord>, from: &PurgeFrom) -> Read<PurgeStep> {
        let mut count = 0;
        let mut next = match from {
            PurgeFrom::Message(next) => *next,
            _ => SequenceNumber::new(0),
        };
        for _ in 0..limits::SWEEP_MAX {
            let Some((sequence, message)) = self.records.message_from(queue.id, next)? else {
                return Ok(PurgeStep::new(count, None));
            };
            next = sequence.next();
            count += u64::from(self.purge_one(queue, sequence, &message)?);
        }
        Ok(PurgeStep::new(count, Some(PurgeFrom::Message(next))))
    }

    fn purge_dead_letters(&mut self, queue: &Arc<QueueRecord>, from: &PurgeFrom) -> Read<PurgeStep> {
        let from = match from {
            PurgeFrom::Reason(reason, sequence) => Bound::Excluded((reason.as_str(), *sequence)),
            _ => Bound::Unbounded,
        };
        let dead_letters = self.records.dead_letters(queue.id, from, limits::SWEEP_MAX)?;
        for (_, sequence) in &dead_letters {
            let message = self.message_listed(queue.id, *sequence)?;
            self.purge_one(queue, *sequence, &message)?;
        }
        let (count, is_full) = (dead_letters.len() as u64, dead_letters.len() == limits::SWEEP_MAX);
        let last = dead_letters.into_iter().next_back().filter(|_| is_full);
        Ok(PurgeStep::new(count, last.map(|(reason, sequence)| PurgeFrom::Reason(reason, sequence))))
    }

    fn purge_dead_letter(&mut self, queue: &Arc<QueueRecord>, sequence: SequenceNumber) -> Read<PurgeStep> {
        let Some(message) = self.message(queue.id, sequence)?.filter(|message| is_dead(message)) else {
            return Ok(PurgeStep::new(0, None));
        };
        Ok(PurgeStep::new(u64::from(self.purge_one(queue, sequence, &message)?), None))
    }

    fn purge_workflow(
        &mut self,
        queue: &Arc<QueueRecord>,
        id: WorkflowId,
        from: &PurgeFrom,
    ) -> Read<PurgeStep> {
        let mut workflow = OpenWorkflow::open(self, queue, WorkflowRef::Named(id))?;
        let (mut count, mut place) = (0, from.clone());
        let mut next = None;
        for looked in 0..=limits::SWEEP_MAX {
            if looked == limits::SWEEP_MAX {
                next = Some(place);
                break;
            }
            let Some((sequence, behind)) = workflow.next_to_purge(self, &place)? else { break };
            place = behind;
            let message = self.message_listed(queue.id, sequence)?;
            count += u64::from(workflow.purge_one(self, sequence, &message)?);
        }
        if count > 0 {
            workflow.close(self)?;
        }
        Ok(PurgeStep::new(count, next))
    }

    /// Removes one message, unless it is handed out.
    fn purge_one(
        &mut self,
        queue: &Arc<QueueRecord>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<bool> {
        let mut workflow = OpenWorkflow::open(self, queue, message.stream.clone())?;
        let is_purged = workflow.purge_one(self, sequence, message)?;
        if is_purged {
            workflow.close(self)?;
        }
        Ok(is_purged)
    }
}

impl OpenWorkflow {
    /// Removes one message, unless it is handed out.
    fn purge_one(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<bool> {
        if matches!(message.status, Status::Locked { .. }) {
            return Ok(false);
        }
        if is_dead(message) {
            self.list_dead_letter(step, sequence, message, false)?;
            self.erase(step, sequence, message, HistoryEnding::Purged)?;
        } else {
            self.lift_hold_of(step, sequence)?;
            self.end(step, sequence, message, SettlementKind::Purged)?;
        }
        Ok(true)
    }

    /// The next message of a purge, and the place behind it: what has a rank, in line or aside, then what waits for the
    /// chain, which may bring others into the line, and then the dead letters.
    fn next_to_purge(&self, step: &Step<'_>, place: &PurgeFrom) -> Read<Option<(SequenceNumber, PurgeFrom)>> {
        let dead_letters_from = match place {
            PurgeFrom::DeadLetter(rank, sequence) => (*rank, *sequence),
            _ => {
                let from = if let PurgeFrom::Line(rank) = place { *rank } else { 0 };
                let in_line = step.records.line_from(&self.key, from)?;
                let aside = step.records.aside_from(&self.key, from)?;
                if let Some((rank, sequence)) = in_line.into_iter().chain(aside).min() {
                    return Ok(Some((sequence, PurgeFrom::Line(rank + 1))));
                }
                if let (true, Some(sequence)) = (self.is_chained(), self.next_waiting(step)?) {
                    return Ok(Some((sequence, PurgeFrom::Line(from))));
                }
                (0, SequenceNumber::new(0))
            }
        };
        let dead_letter = step.records.dead_letter_of(&self.key, dead_letters_from)?;
        Ok(dead_letter.map(|(rank, sequence)| (sequence, PurgeFrom::DeadLetter(rank, sequence.next()))))
    }

    /// The first message of the line, from a rank on, that nobody has out; early ones last.
    fn first_not_handed_out(&self, step: &Step<'_>, mut from: u64) -> Read<Option<(SequenceNumber, u64)>> {
        while let Some((rank, sequence, message)) = self.line_from(step, from)? {
            from = rank + 1;
            if !matches!(message.status, Status::Locked { .. }) {
                return Ok(Some((sequence, from)));
            }
        }
        let waiting = if self.is_chained() { self.next_waiting(step)? } else { None };
        Ok(waiting.map(|sequence| (sequence, from)))
    }

    /// Moves messages of a quarantined workflow to the dead letters, in order, a limited number at once.
    pub(crate) fn quarantine_some(&mut self, step: &mut Step<'_>) -> Read<()> {
        let mut from = 0;
        for moved in 0..limits::SWEEP_MAX {
            if moved > 0 && step.records.is_full() {
                break;
            }
            let Some((sequence, behind)) = self.first_not_handed_out(step, from)? else {
                return Ok(());
            };
            from = behind;
            self.dead_letter_quietly(
                step,
                sequence,
                QUARANTINED,
                "an earlier message of its workflow was exhausted",
            )?;
        }
        Ok(())
    }
}

/// Reason of a dead letter whose workflow was quarantined.
pub(crate) const QUARANTINED: &str = "Quarantined";
