//! A place that is given back: its message was cancelled, so it is missing, and what stands behind it is early.

use std::sync::Arc;

use crate::engine::rules::chain::chained_id;
use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::line::is_dead;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow_record::Shortening;
use crate::id::SequenceNumber;
use crate::limits;

impl OpenWorkflow {
    /// Ends a scheduled message as cancelled and gives its place back, to whatever is sent for it.
    pub(crate) fn give_place_back(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        self.leave(step, sequence, message)?;
        self.erase(step, sequence, message, HistoryEnding::Cancelled)?;
        if self.is_chained() {
            step.write(Change::Link(self.key.clone(), message.rare.after.clone(), None))?;
        }
        let Some(rank) = message.rank.filter(|rank| *rank <= self.record.through) else { return Ok(()) };
        if self.is_chained() {
            step.write(Change::Trail(self.key.clone(), rank, None))?;
            // One that the run has not reached had no need to be a root while this one was there.
            self.part_from_follower(step, &chained_id(message))?;
        }
        // Of several places that are given back the first counts: the run is extended anew up to the next.
        if self.record.rare.shortening.as_ref().is_none_or(|missing| rank < missing.rank) {
            self.record.rare.shortening = Some(Shortening { rank, after: message.rare.after.clone() });
        }
        self.extend(step)
    }

    /// Shortens the run to a place in it that was given back, a limited number of places in one command; true when done.
    /// Nobody was ever handed out what stands behind, because it stood behind a scheduled message.
    pub(crate) fn shorten(&mut self, step: &mut Step<'_>) -> Read<bool> {
        let Some(missing) = self.record.rare.shortening.clone() else { return Ok(true) };
        let end = (missing.rank - 1).max(self.record.cursor - 1);
        for looked in 0..limits::SHORTEN_MAX {
            if self.record.through <= end {
                self.record.rare.shortening = None;
                if self.is_chained() {
                    self.record.rare.tail = missing.after;
                }
                return Ok(true);
            }
            if looked > 0 && step.records.is_full() {
                break;
            }
            self.shorten_by_one(step, end)?;
        }
        Ok(false)
    }

    /// Takes the last place out of the run, or a settled range.
    fn shorten_by_one(&mut self, step: &mut Step<'_>, end: u64) -> Read<()> {
        let last = self.record.through;
        if self.is_chained() {
            self.unlink_last(step, last)?;
        } else if let Some(mark) = self.mark_at(step, last)? {
            self.record.through = end.max(mark.from - 1);
            return Ok(());
        } else if let Some((_, sequence)) = self.sequence_at(step, last)? {
            let message = step.message_listed(self.key.queue, sequence)?;
            self.count_as_missed(step, &message)?;
        }
        self.record.through = last - 1;
        Ok(())
    }

    fn sequence_at(&self, step: &Step<'_>, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        Ok(step.records.line_from(&self.key, rank)?.filter(|(at, _)| *at == rank))
    }

    /// The chain has not reached its last message any more: it waits by its message ID again.
    fn unlink_last(&mut self, step: &mut Step<'_>, rank: u64) -> Read<()> {
        let trail = step.records.trail_from(&self.key, rank)?.filter(|(at, _)| *at == rank);
        let Some((_, trail)) = trail else { return Ok(()) };
        let after = trail.after;
        let mut link = step.records.link(&self.key, after.as_ref())?.expect("a trail leads to a link");
        let sequence = link.sequence.expect("a message has this place in the chain");
        link.rank = None;
        let settled = link.settled;
        step.write(Change::Link(self.key.clone(), after.clone(), Some(link)))?;
        step.write(Change::Trail(self.key.clone(), rank, None))?;
        if settled.is_some() {
            self.unmark(step, rank)?;
            self.unrank_dead_letter(step, sequence)?;
            return self.note_unreached(step, sequence, after, settled);
        }
        let mut message = step.message_listed(self.key.queue, sequence)?;
        self.count_as_missed(step, &message)?;
        step.write_line(&self.key, rank, None)?;
        Arc::make_mut(&mut message).rank = None;
        step.write_message(self.message_key(sequence), Some(message.clone()))?;
        self.wait_by_id(step, sequence, &message, &chained_id(&message))
    }

    /// A dead letter whose place the chain has not reached any more is listed without one.
    fn unrank_dead_letter(&mut self, step: &mut Step<'_>, sequence: SequenceNumber) -> Read<()> {
        let dead_letter = step.message(self.key.queue, sequence)?.filter(|message| is_dead(message));
        let Some(mut dead_letter) = dead_letter else { return Ok(()) };
        let Status::DeadLettered(why) = &dead_letter.status else { unreachable!("it is a dead letter") };
        let (workflow, reason) = (self.key.clone(), why.reason.clone());
        let listed = DeadLetterKey { workflow, rank: dead_letter.rank.unwrap_or(0), sequence, reason };
        step.write(Change::DeadLetter(Box::new(listed.clone()), false))?;
        step.write(Change::DeadLetter(Box::new(DeadLetterKey { rank: 0, ..listed }), true))?;
        Arc::make_mut(&mut dead_letter).rank = None;
        step.write_message(self.message_key(sequence), Some(dead_letter))
    }

    /// Takes a message out of the run: a predecessor of it is missing.
    fn count_as_missed(&mut self, step: &mut Step<'_>, message: &MessageRecord) -> Read<()> {
        if matches!(message.status, Status::Ready) {
            self.record.early += 1;
            self.record.early_bytes += message.bytes;
            let counts = &mut step.counters(self.key.queue)?.counts;
            counts.early += 1;
            counts.ready -= 1;
        }
        Ok(())
    }
}
