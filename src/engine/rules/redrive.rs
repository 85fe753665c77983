//! Redrive: a dead letter goes back to its own place while that is still ahead, or becomes a new message.

use std::sync::Arc;

use crate::engine::rules::chain::UNKNOWN_PREDECESSOR;
use crate::engine::rules::chain::chained_id;
use crate::engine::rules::due::Due;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::judge::Judge;
use crate::engine::rules::judge::Verdict;
use crate::engine::rules::line::is_dead;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::OperateRefusal;
use crate::error::SendRefusal;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::HoldKind;

/// Dead letters one step of a redrive looks at, most of which may have lost their place.
const REDRIVE_LOOKED_AT_MAX: usize = 16 * limits::SWEEP_MAX;

impl Step<'_> {
    /// Puts one dead letter back.
    pub(crate) fn redrive(
        &mut self,
        name: &QueueName,
        sequence: SequenceNumber,
        position: Option<Position>,
    ) -> Ruling<Redriven, OperateRefusal> {
        let queue = self.queue_to_operate(name)?;
        let Some(message) = self.message(queue.id, sequence)?.filter(|message| is_dead(message)) else {
            return refuse(OperateRefusal::NotDeadLettered(sequence));
        };
        if self.is_original(MessageKey { queue: queue.id, sequence }, &message)? {
            return refuse(OperateRefusal::Original(sequence));
        }
        let mut workflow = OpenWorkflow::open(self, &queue, message.stream.clone())?;
        if workflow.is_quarantined() {
            return refuse(OperateRefusal::Quarantined(sequence));
        }
        if position.is_none() && workflow.place_is_ahead(self, sequence, &message)? {
            if !self.has_drain_room(&queue)? {
                let stored = self.counts(queue.id)?.limited();
                return refuse(OperateRefusal::Send(SendRefusal::QueueFull { stored }));
            }
            workflow.put_back(self, sequence, &message)?;
            workflow.close(self)?;
            return Ok(Redriven::InPlace);
        }
        if workflow.has_places() && position.is_none() {
            return refuse(match workflow.unknown_predecessor(self, sequence, &message)? {
                Some(predecessor) => OperateRefusal::PredecessorUnknown(sequence, predecessor),
                None => OperateRefusal::PlacePassed(sequence),
            });
        }
        self.redrive_as_new(&queue, sequence, &message, position)
    }

    fn redrive_as_new(
        &mut self,
        queue: &Arc<QueueRecord>,
        sequence: SequenceNumber,
        message: &MessageRecord,
        position: Option<Position>,
    ) -> Ruling<Redriven, OperateRefusal> {
        let content = self.records.content_listed(MessageKey { queue: queue.id, sequence })?;
        let new = NewMessage {
            workflow_id: content.workflow_id,
            place: position.map_or(Place::Arrival, Place::Position),
            message_id: message.message_id.clone(),
            time_to_live: message.rare.time_to_live,
            kept_back: None,
            headers: content.headers,
            body: content.body,
        };
        self.judge_redrive(queue, &new)?;
        let workflow_id = new.workflow_id.clone();
        let mut workflow = OpenWorkflow::open(self, queue, message.stream.clone())?;
        let ending = HistoryEnding::Redriven(SequenceNumber::new(self.peek_sequence()?));
        workflow.list_dead_letter(self, sequence, message, false)?;
        workflow.erase(self, sequence, message, ending)?;
        workflow.close(self)?;
        let new_sequence = self.accept(queue, new)?;
        let redriven = EventKind::Redriven { in_place: false };
        self.emit(&queue.name, workflow_id.as_ref(), Some(new_sequence), redriven);
        Ok(Redriven::AsNew(new_sequence))
    }

    /// A redriven message is never taken for a duplicate of itself, so it is judged without its ID.
    fn judge_redrive(&self, queue: &Arc<QueueRecord>, new: &NewMessage) -> Ruling<(), OperateRefusal> {
        let anonymous = NewMessage { message_id: None, ..new.clone() };
        let judged = Judge::draining().judge(self, queue, std::slice::from_ref(&anonymous));
        match judged.map_err(|stop| stop.map(OperateRefusal::Send))?[0] {
            Verdict::Accept => Ok(()),
            _ => refuse(OperateRefusal::Send(SendRefusal::AlreadySettled { index: 0 })),
        }
    }
}

impl OpenWorkflow {
    /// Whether whatever comes back would go to the dead letters again.
    fn is_quarantined(&self) -> bool {
        self.record.rare.holds.has(HoldKind::Quarantine)
    }

    /// Whether a dead letter can return to its own place: it is free, nothing behind it was handed out, and
    /// nothing will be before someone resumes the workflow.
    fn place_is_ahead(
        &self,
        step: &Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<bool> {
        if matches!(self.key.stream, WorkflowRef::Single(_)) {
            return Ok(true);
        }
        if self.is_chained() {
            return self.link_is_ahead(step, sequence, message);
        }
        if !self.is_held() {
            return Ok(false);
        }
        let rank = message.rank.expect("only in after-order has a message no rank");
        let taken = |entry: Option<(u64, SequenceNumber)>| entry.is_some_and(|(at, _)| at == rank);
        let taken = taken(step.records.line_from(&self.key, rank)?)
            || taken(step.records.aside_from(&self.key, rank)?);
        Ok(rank > self.record.done && !taken && !self.has_later_out(step, rank)?)
    }

    /// Whether a message with this ID waits for the chain, or is in it.
    fn has_id(&self, step: &Step<'_>, id: &MessageId) -> Read<bool> {
        Ok(step.records.waiting(&self.key, id)?.is_some() || self.rank_of_id(step, id)?.is_some())
    }

    /// The same in after-order. A stray was given up because its predecessor was unknown: as soon as that is known it
    /// returns to its place also where nothing holds the workflow, as long as nothing behind it was completed or is out.
    fn link_is_ahead(
        &self,
        step: &Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<bool> {
        let Some(link) = self.own_link(step, sequence, message)? else { return Ok(false) };
        let may_return =
            self.is_held() || (is_stray(message) && self.knows_predecessor(step, message, &link)?);
        if !may_return {
            return Ok(false);
        }
        match link.rank {
            Some(rank) => Ok(rank > self.record.done && !self.has_later_out(step, rank)?),
            // Only one message can be found by its ID.
            None => Ok(!self.has_id(step, &chained_id(message))?),
        }
    }

    /// The link by which a message follows its predecessor, unless another message has taken that place.
    fn own_link(
        &self,
        step: &Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<Option<ChainLink>> {
        let link = step.records.link(&self.key, message.rare.after.as_ref())?;
        Ok(link.filter(|link| link.sequence == Some(sequence)))
    }

    /// Whether the chain has reached the predecessor of a message, or it is stored and waits for the chain.
    fn knows_predecessor(&self, step: &Step<'_>, message: &MessageRecord, link: &ChainLink) -> Read<bool> {
        Ok(link.rank.is_some()
            || match &message.rare.after {
                Some(predecessor) => step.records.waiting(&self.key, predecessor)?.is_some(),
                None => true,
            })
    }

    /// The predecessor of a stray, if still nothing is known of it.
    fn unknown_predecessor(
        &self,
        step: &Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<Option<MessageId>> {
        if !self.is_chained() || !is_stray(message) {
            return Ok(None);
        }
        let Some(link) = self.own_link(step, sequence, message)? else { return Ok(None) };
        let is_known = self.knows_predecessor(step, message, &link)?;
        Ok(message.rare.after.clone().filter(|_| !is_known))
    }

    /// Whether a holder has a message out that stands behind a rank.
    fn has_later_out(&self, step: &Step<'_>, rank: u64) -> Read<bool> {
        let out = step.locks.of(&self.key).map(|(_, lock)| lock.out.clone()).unwrap_or_default();
        for sequence in out.iter() {
            let message = step.message_listed(self.key.queue, sequence)?;
            if !self.is_aside(&message) && message.rank.is_some_and(|later| later > rank) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts a dead letter back to its own place.
    fn put_back(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: &MessageRecord,
    ) -> Read<()> {
        self.list_dead_letter(step, sequence, before, false)?;
        let mut message = MessageRecord::clone(before);
        message.status = Status::Ready;
        message.rare.has_extra = false;
        let lives = [message.rare.time_to_live, self.queue.options.time_to_live].into_iter().flatten().min();
        message.rare.expires_at = lives.map(|lives| Due::engine(step.now + lives));
        if self.is_chained() {
            let link = step.records.link(&self.key, message.rare.after.as_ref())?;
            message.rank = message.rank.or(link.and_then(|link| link.rank));
            self.unsettle_link(step, &message)?;
        }
        if let (true, Some(rank)) = (self.has_places(), message.rank) {
            self.unmark(step, rank)?;
        }
        self.restate(step, sequence, Some(before), &message)?;
        self.enter(step, sequence, &message)?;
        self.emit(step, Some(sequence), EventKind::Redriven { in_place: true })?;
        Ok(())
    }

    /// Puts back dead letters of a held workflow whose places are ahead, a limited number at once, from where the step before
    /// has ended, if there was one; true when done.
    pub(crate) fn put_back_some(
        &mut self,
        step: &mut Step<'_>,
        from: Option<(u64, SequenceNumber)>,
    ) -> Read<bool> {
        let first = if self.is_chained() { 0 } else { self.record.done };
        let mut from = from.unwrap_or((first, SequenceNumber::new(0)));
        let mut put_back = 0;
        for _ in 0..REDRIVE_LOOKED_AT_MAX {
            if put_back == limits::SWEEP_MAX || (put_back > 0 && step.records.is_full()) {
                break;
            }
            // What there is no room for stays where it is.
            if !step.has_drain_room(&self.queue)? {
                return Ok(true);
            }
            let Some((rank, sequence)) = step.records.dead_letter_of(&self.key, from)? else {
                return Ok(true);
            };
            if 0 < rank && rank < self.record.done {
                // In after-order, behind those without a rank: none of what is settled comes back.
                from = (self.record.done, SequenceNumber::new(0));
                continue;
            }
            from = (rank, sequence.next());
            let message = step.message_listed(self.key.queue, sequence)?;
            if self.place_is_ahead(step, sequence, &message)? {
                self.put_back(step, sequence, &message)?;
                put_back += 1;
            }
        }
        step.locks.note_redrive_from(self.key.clone(), from);
        Ok(false)
    }
}

/// Whether a dead letter was given up because nothing was known of its predecessor.
fn is_stray(message: &MessageRecord) -> bool {
    matches!(&message.status, Status::DeadLettered(dead_letter) if dead_letter.reason == UNKNOWN_PREDECESSOR)
}
