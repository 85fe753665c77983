//! After-order: each message names its predecessor, and the chain is followed link by link.
//!
//! A message gets its rank when the chain has reached it. Until then it is early and waits by its message ID.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::limits;

impl OpenWorkflow {
    /// Lets a message that was just stored wait for the chain to reach it.
    pub(crate) fn wait_for_chain(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        let link = ChainLink {
            sequence: Some(sequence),
            message_id: message.message_id.clone(),
            rank: None,
            settled: None,
        };
        step.write(Change::Link(self.key.clone(), message.rare.after.clone(), Some(link)))?;
        self.record.line += 1;
        self.wait_by_id(step, sequence, message, &chained_id(message))
    }

    /// Lists a message by its own ID, and as a root if its predecessor is not listed so.
    pub(crate) fn wait_by_id(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
        id: &MessageId,
    ) -> Read<()> {
        step.write(Change::Waiting(self.key.clone(), id.clone(), Some(sequence)))?;
        if let Some(follower) = self.waiting_follower(step, id)? {
            step.write(Change::Root(self.key.clone(), follower, false))?;
        }
        let predecessor_waits = match &message.rare.after {
            Some(predecessor) => step.records.waiting(&self.key, predecessor)?.is_some(),
            None => false,
        };
        if !predecessor_waits {
            step.write(Change::Root(self.key.clone(), sequence, true))?;
        }
        Ok(())
    }

    /// Takes a message that the chain has not reached out of the waiting ones.
    pub(crate) fn unlink_waiting(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        let id = chained_id(message);
        self.record.line -= 1;
        step.write(Change::Waiting(self.key.clone(), id.clone(), None))?;
        step.write(Change::Root(self.key.clone(), sequence, false))?;
        self.part_from_follower(step, &id)
    }

    /// Notes that the predecessor of whoever waits for the message with this ID is not there any more.
    pub(crate) fn part_from_follower(&self, step: &mut Step<'_>, id: &MessageId) -> Read<()> {
        match self.waiting_follower(step, id)? {
            Some(follower) => step.write(Change::Root(self.key.clone(), follower, true)),
            None => Ok(()),
        }
    }

    /// Takes the follower of the chain's tail into the run, if it is known.
    pub(crate) fn extend_chain(&mut self, step: &mut Step<'_>, next: u64) -> Read<bool> {
        let tail = self.record.rare.tail.clone();
        let Some(mut link) = step.records.link(&self.key, tail.as_ref())? else {
            return Ok(false);
        };
        let (Some(sequence), None) = (link.sequence, link.rank) else {
            return Ok(false);
        };
        link.rank = Some(next);
        self.record.rare.tail = link.message_id.clone();
        step.write(Change::Link(self.key.clone(), tail.clone(), Some(link.clone())))?;
        step.write(Change::Trail(self.key.clone(), next, Some(TrailEntry { after: tail.clone() })))?;
        match link.settled {
            Some(how) => {
                self.note_unreached(step, sequence, tail, None)?;
                self.mark(step, next, next, how)?;
            }
            None => self.take_into_line(step, sequence, next)?,
        }
        self.record.through = next;
        Ok(true)
    }

    fn take_into_line(&mut self, step: &mut Step<'_>, sequence: SequenceNumber, rank: u64) -> Read<()> {
        let mut message = step.message_listed(self.key.queue, sequence)?;
        self.count_as_reached(step, &message)?;
        step.write(Change::Waiting(self.key.clone(), chained_id(&message), None))?;
        step.write(Change::Root(self.key.clone(), sequence, false))?;
        Arc::make_mut(&mut message).rank = Some(rank);
        step.write_message(self.message_key(sequence), Some(message))?;
        step.write_line(&self.key, rank, Some(sequence))
    }

    /// Notes how the message that named a predecessor was settled.
    pub(crate) fn settle_link(
        &mut self,
        step: &mut Step<'_>,
        message: &MessageRecord,
        how: SettlementKind,
    ) -> Read<()> {
        self.restate_link(step, message, Some(how))
    }

    /// Notes that the message that named a predecessor is back.
    pub(crate) fn unsettle_link(&mut self, step: &mut Step<'_>, message: &MessageRecord) -> Read<()> {
        self.restate_link(step, message, None)
    }

    fn restate_link(
        &mut self,
        step: &mut Step<'_>,
        message: &MessageRecord,
        settled: Option<SettlementKind>,
    ) -> Read<()> {
        let Some(mut link) = step.records.link(&self.key, message.rare.after.as_ref())? else {
            return Ok(());
        };
        if link.message_id == message.message_id {
            if let (Some(sequence), None) = (link.sequence, link.rank) {
                self.note_unreached(step, sequence, message.rare.after.clone(), settled)?;
            }
            link.settled = settled;
            step.write(Change::Link(self.key.clone(), message.rare.after.clone(), Some(link)))?;
        }
        Ok(())
    }

    /// Notes a message that was settled before the chain has reached it, or that it is back: with a mark and a trail
    /// beyond all ranks, so that its link is found when the workflow is forgotten.
    pub(crate) fn note_unreached(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        after: Option<MessageId>,
        settled: Option<SettlementKind>,
    ) -> Read<()> {
        let place = limits::NUMBER_END + sequence.get();
        let mark = settled.map(|how| MarkRecord { from: place, to: place, how });
        let trail = settled.map(|_| TrailEntry { after });
        step.write(Change::Mark(self.key.clone(), place, mark))?;
        step.write(Change::Trail(self.key.clone(), place, trail))
    }

    /// Dead-letters the first message whose predecessor is unknown. It never becomes the head: should its predecessor come
    /// after all, the chain goes past it.
    pub(crate) fn give_up_stray(&mut self, step: &mut Step<'_>) -> Read<()> {
        let Some((sequence, _)) = self.first_stray(step)? else { return Ok(()) };
        let description = "the message that it names as its predecessor has not come in time";
        self.dead_letter_quietly(step, sequence, UNKNOWN_PREDECESSOR, description)
    }

    /// The early message that has waited longest for a predecessor of which nothing is known, or for one that was itself
    /// given up. Messages that name each other in a circle have none; then any of them.
    pub(crate) fn first_stray(&self, step: &Step<'_>) -> Read<Option<(SequenceNumber, Arc<MessageRecord>)>> {
        let mut from = SequenceNumber::new(0);
        for _ in 0..limits::SWEEP_MAX {
            let Some(root) = step.records.root_from(&self.key, from)? else { break };
            let message = step.message_listed(self.key.queue, root)?;
            // One that is scheduled waits for its instant first, and what follows it waits for that.
            if matches!(message.status, Status::Ready) {
                return Ok(Some((root, message)));
            }
            from = root.next();
        }
        if from.get() > 0 {
            return Ok(None);
        }
        let Some(waiting) = step.records.waiting_first(&self.key)? else { return Ok(None) };
        Ok(Some((waiting, step.message_listed(self.key.queue, waiting)?)))
    }

    /// The early message whose own predecessor is unknown and that came first, or any if they name each other in a circle.
    pub(crate) fn next_waiting(&self, step: &Step<'_>) -> Read<Option<SequenceNumber>> {
        match step.records.root_from(&self.key, SequenceNumber::new(0))? {
            Some(root) => Ok(Some(root)),
            None => step.records.waiting_first(&self.key),
        }
    }

    /// Drops links that the cursor has left far behind, and counts them; a limited number at once, but more than a command
    /// adds. That of the first message stays, so that no other can claim its place.
    pub(crate) fn trim_links(&mut self, step: &mut Step<'_>) -> Read<()> {
        if !self.is_chained() {
            return Ok(());
        }
        let kept_from = self.record.cursor.saturating_sub(limits::LINKS_KEPT);
        let mut cut = 0;
        for _ in 0..limits::LINKS_TRIMMED {
            match step.records.trail_from(&self.key, self.first_rank() + 1)? {
                Some((rank, entry)) if rank < kept_from => self.drop_link(step, rank, entry)?,
                _ => break,
            }
            cut += 1;
        }
        step.count_cut_links(self.key.queue, cut)
    }

    /// Drops a link; false once there is none any more. That of the first message goes last: as long as anything is known of the
    /// workflow, no other message can take its place.
    pub(crate) fn forget_link(&mut self, step: &mut Step<'_>) -> Read<bool> {
        if !self.is_chained() {
            return Ok(false);
        }
        if let Some((rank, entry)) = step.records.trail_from(&self.key, self.first_rank() + 1)? {
            self.drop_link(step, rank, entry)?;
            return Ok(true);
        }
        if let Some((rank, entry)) = step.records.trail_from(&self.key, 0)? {
            self.drop_link(step, rank, entry)?;
        }
        Ok(false)
    }

    fn drop_link(&mut self, step: &mut Step<'_>, rank: u64, entry: TrailEntry) -> Read<()> {
        step.write(Change::Link(self.key.clone(), entry.after, None))?;
        step.write(Change::Trail(self.key.clone(), rank, None))
    }

    /// The rank of the message with this ID, if the chain has reached it and it is not long ago.
    pub(crate) fn rank_of_id(&self, step: &Step<'_>, id: &MessageId) -> Read<Option<u64>> {
        if self.record.rare.tail.as_ref() == Some(id) {
            return Ok(Some(self.record.through));
        }
        self.rank_before_follower(step, id)
    }

    /// The rank before that of the message that follows the one with this ID.
    pub(crate) fn rank_before_follower(&self, step: &Step<'_>, id: &MessageId) -> Read<Option<u64>> {
        let follower = step.records.link(&self.key, Some(id))?;
        Ok(follower.and_then(|follower| follower.rank).map(|rank| rank - 1))
    }

    /// The link that leads to a rank.
    pub(crate) fn link_at(&self, step: &Step<'_>, rank: u64) -> Read<Option<ChainLink>> {
        match step.records.trail_from(&self.key, rank)?.filter(|(at, _)| *at == rank) {
            Some((_, trail)) => step.records.link(&self.key, trail.after.as_ref()),
            None => Ok(None),
        }
    }

    /// The message that waits for the one with this ID, as long as the chain has reached neither.
    fn waiting_follower(&self, step: &Step<'_>, id: &MessageId) -> Read<Option<SequenceNumber>> {
        let link = step.records.link(&self.key, Some(id))?;
        Ok(link.filter(|link| link.rank.is_none() && link.settled.is_none()).and_then(|link| link.sequence))
    }
}

/// Reason of a dead letter that named a predecessor of which nothing is known.
pub(crate) const UNKNOWN_PREDECESSOR: &str = "unknown_predecessor";

/// The message ID, which every message of an after-ordered workflow has.
pub(crate) fn chained_id(message: &MessageRecord) -> MessageId {
    message.message_id.clone().expect("a send without message ID is refused in after-order")
}
