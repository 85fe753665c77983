//! How a workflow is opened, and closed with everything that follows from what a command has changed of it.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::open_workflow::KnownHolder;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::token::LockToken;

/// A message with its rank and its number.
pub(crate) type RankedMessage = (u64, SequenceNumber, Arc<MessageRecord>);

/// Who has the workflow, for what, and how many messages of it.
type Holder = (LockToken, LockKind, usize);

impl OpenWorkflow {
    pub(crate) fn open(
        step: &Step<'_>,
        queue: &Arc<QueueRecord>,
        stream: WorkflowRef,
    ) -> Read<Box<OpenWorkflow>> {
        let mut workflow = step.rooms.take(queue, WorkflowKey { queue: queue.id, stream });
        let OpenWorkflow { key, record, stored, is_known, .. } = &mut *workflow;
        *is_known = step.records.open_workflow(key, record)?;
        stored.clone_from(record);
        if !workflow.is_known && workflow.has_places() {
            workflow.record.cursor = workflow.first_rank();
            workflow.record.through = workflow.first_rank() - 1;
            workflow.recall(step)?;
        }
        Ok(workflow)
    }

    /// Whether it is known: it has a record.
    pub(crate) fn exists(&self) -> bool {
        self.is_known
    }

    /// Whether its messages have places that can be missing.
    pub(crate) fn has_places(&self) -> bool {
        self.queue.options.order.has_places() && matches!(self.key.stream, WorkflowRef::Named(_))
    }

    pub(crate) fn is_chained(&self) -> bool {
        self.queue.options.order == Order::After && self.has_places()
    }

    pub(crate) fn first_rank(&self) -> u64 {
        match self.queue.options.order {
            Order::Position { first } => first.get(),
            _ => 1,
        }
    }

    /// Whether it is in order of arrival and has something to hand out, so that one message more changes nothing else.
    pub(crate) fn is_offering(&self) -> bool {
        !self.has_places() && self.record.ticket.is_some()
    }

    /// Whether a message that comes to a place changes nothing of what it offers: what is offered is in the run, which nothing
    /// comes into, and beyond a gap nothing is offered.
    pub(crate) fn offers_the_same_with(&self, rank: u64) -> bool {
        let is_behind = self.record.ticket.is_some() && rank > self.record.through;
        self.has_places() && (is_behind || self.is_beyond_gap(rank))
    }

    /// Whether what comes to a place stays out of the run, and the run as it is: a position before it is missing. Where the end of
    /// the run is still being looked for, that goes on by itself.
    pub(crate) fn is_beyond_gap(&self, rank: u64) -> bool {
        !self.is_chained() && rank > self.record.through + 1
    }

    /// Whether a message is deferred because a predecessor is missing.
    pub(crate) fn is_early(&self, message: &MessageRecord) -> bool {
        let beyond = message.rank.is_none_or(|rank| self.record.is_beyond(rank));
        matches!(message.status, Status::Ready) && self.has_places() && beyond
    }

    /// Whether a message is counted as early: while the run is being shortened, not yet all that are.
    pub(crate) fn is_counted_early(&self, message: &MessageRecord) -> bool {
        let beyond = message.rank.is_none_or(|rank| rank > self.record.through);
        matches!(message.status, Status::Ready) && self.has_places() && beyond
    }

    /// Whether the end of its run is still being looked for.
    pub(crate) fn is_extending(&self) -> bool {
        self.record.rare.extending || self.record.rare.shortening.is_some()
    }

    /// The first message of the line, whatever its status.
    pub(crate) fn head(&self, step: &Step<'_>) -> Read<Option<RankedMessage>> {
        self.line_from(step, 0)
    }

    pub(crate) fn line_from(&self, step: &Step<'_>, rank: u64) -> Read<Option<RankedMessage>> {
        if self.record.line == 0 {
            return Ok(None);
        }
        let Some((rank, sequence)) = step.records.line_from(&self.key, rank)? else {
            return Ok(None);
        };
        Ok(Some((rank, sequence, step.message_listed(self.key.queue, sequence)?)))
    }

    /// The first message from `rank` on that its order allows to hand out next, if it is ready. Beside a suspect nothing is
    /// handed out, and a suspect beside nothing.
    pub(crate) fn offer_from(&self, step: &Step<'_>, rank: u64) -> Read<Option<RankedMessage>> {
        let (mut from, mut is_behind) = (rank, false);
        while let Some((rank, sequence, message)) = self.line_from(step, from)? {
            match message.status {
                Status::Ready if is_behind && message.is_suspect() => return Ok(None),
                Status::Ready if !self.is_early(&message) => return Ok(Some((rank, sequence, message))),
                Status::Locked { .. } if message.is_suspect() => return Ok(None),
                Status::Locked { .. } => (from, is_behind) = (rank + 1, true),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    pub(crate) fn emit(
        &self,
        step: &mut Step<'_>,
        sequence: Option<SequenceNumber>,
        kind: EventKind,
    ) -> Read<()> {
        let workflow_id = match self.key.stream {
            WorkflowRef::Named(ref id) => Some(id.clone()),
            // In a queue without order the sender may have named a workflow nevertheless.
            WorkflowRef::Single(of) => {
                step.records.content(self.message_key(of))?.and_then(|content| content.workflow_id.clone())
            }
        };
        step.emit(&self.queue.name, workflow_id.as_ref(), sequence, kind);
        Ok(())
    }

    /// Decides anew what the workflow offers, sets its reminders, and writes it down.
    pub(crate) fn close(mut self: Box<Self>, step: &mut Step<'_>) -> Read<()> {
        self.judge_overdue_gap(step)?;
        self.close_unjudged(step)
    }

    /// Closes it, but leaves a gap that has lasted long enough to the close that follows.
    pub(crate) fn close_unjudged(self: Box<Self>, step: &mut Step<'_>) -> Read<()> {
        self.close_with(step, None)
    }

    /// The same of one whose head is known, if it is.
    pub(crate) fn close_with(
        mut self: Box<Self>,
        step: &mut Step<'_>,
        known: Option<RankedMessage>,
    ) -> Read<()> {
        self.plan_gap(step)?;
        let holder = self.holder(step);
        let head = match (holder, known) {
            (None, None) => self.head(step)?,
            (None, known) => known,
            (Some(_), _) => None,
        };
        self.hold_at_exhausted_head(step, head.as_ref())?;
        self.plan_sweep(step, holder)?;
        self.plan_offer(step, holder, head)?;
        self.plan_forgetting(step)?;
        self.assert_invariants(holder.is_some());
        self.write_down(step)
    }

    /// Closes it after a message has joined the end of its line: what it offers and waits for is what it was.
    pub(crate) fn close_behind(self: Box<Self>, step: &mut Step<'_>) -> Read<()> {
        assert!(
            self.record.ticket.is_some(),
            "who joins a line changes nothing only where its head is offered"
        );
        // Whoever is granted what is offered asserts that nobody has it.
        self.assert_invariants(false);
        self.write_down(step)
    }

    /// Closes it after a message has come with which it offers the same: what it waits for may be another.
    pub(crate) fn close_offering_the_same(mut self: Box<Self>, step: &mut Step<'_>) -> Read<()> {
        self.plan_gap(step)?;
        let holder = match self.record.ticket {
            Some(_) => None,
            None => self.holder(step),
        };
        self.plan_sweep(step, holder)?;
        self.plan_forgetting(step)?;
        self.assert_invariants(holder.is_some());
        self.write_down(step)
    }

    /// Forgets it, instead of closing it: of one that is empty nothing is offered, and no reminder is left.
    pub(crate) fn forget_record(self: Box<Self>, step: &mut Step<'_>) -> Read<()> {
        step.write_workflow(&self.key, None)
    }

    /// The same workflow, held by the owner of a token.
    pub(crate) fn held_by(mut self: Box<Self>, token: LockToken) -> Box<OpenWorkflow> {
        self.holder = KnownHolder::Owner(token);
        self
    }

    /// Takes it out of its queue's ready list, if it is there: nobody else finds it there while it is open.
    pub(crate) fn withdraw_offer(&mut self, step: &mut Step<'_>) -> Read<()> {
        match self.record.ticket.take() {
            Some(ticket) => step.write_ready(&self.key, ticket, false),
            None => Ok(()),
        }
    }

    /// Gives a holder the workflow.
    pub(crate) fn lock(&mut self, step: &mut Step<'_>, token: LockToken, kind: LockKind) {
        let until = step.now + self.queue.options.lock;
        step.locks.grant(token, self.key.clone(), kind, until);
        self.holder = KnownHolder::Owner(token);
    }

    fn holder(&self, step: &Step<'_>) -> Option<Holder> {
        let (token, lock) = match self.holder {
            KnownHolder::Owner(token) => (token, step.locks.get(token)?),
            KnownHolder::Unknown => step.locks.of(&self.key)?,
            KnownHolder::Nobody => return None,
        };
        Some((token, lock.kind, lock.out.len()))
    }

    fn write_down(mut self: Box<Self>, step: &mut Step<'_>) -> Read<()> {
        if !self.is_blank() {
            self.take_cursor(step)?;
        }
        self.record.rare.trim();
        let is_kept = !self.is_blank();
        if is_kept != self.is_known || is_kept && self.record != self.stored {
            let record = is_kept.then(|| std::mem::take(&mut self.record));
            step.write_workflow(&self.key, record)?;
        }
        step.rooms.give_back(self);
        Ok(())
    }

    fn plan_offer(
        &mut self,
        step: &mut Step<'_>,
        holder: Option<Holder>,
        head: Option<RankedMessage>,
    ) -> Read<()> {
        // Instants are in milliseconds: what was given back in that of its acceptance is known only by `has_come_back`.
        let returned = self.has_come_back || head.as_ref().is_some_and(|(_, _, head)| was_out(head));
        let offered = match holder {
            _ if self.is_held() => false,
            Some((_, LockKind::Deliveries | LockKind::Run | LockKind::DeadLetter, _)) => false,
            Some((_, LockKind::Whole, _)) => self.offer_from(step, 0)?.is_some(),
            None => {
                head.is_some_and(|(_, _, head)| matches!(head.status, Status::Ready) && !self.is_early(&head))
            }
        };
        if let (true, Some((token, LockKind::Whole, _))) = (offered, holder) {
            step.effects.push(Effect::AcceptedWork(token));
        }
        match (offered && holder.is_none(), self.record.ticket) {
            (true, None) => {
                let ticket = match &self.key.stream {
                    WorkflowRef::Single(sequence) if returned => Step::former_ticket(*sequence),
                    _ => step.next_ticket()?,
                };
                self.record.ticket = Some(ticket);
                step.write_ready(&self.key, ticket, true)?;
                step.note_work(&self.queue);
            }
            (true, Some(_)) => {}
            (false, _) => self.withdraw_offer(step)?,
        }
        Ok(())
    }

    fn plan_sweep(&mut self, step: &mut Step<'_>, holder: Option<Holder>) -> Read<()> {
        if self.record.rare.if_set().is_none() {
            return Ok(());
        }
        let out = holder.map_or(0, |(_, _, out)| out as u64);
        let holds = &self.record.rare.holds;
        let quarantines = holds.has(HoldKind::Quarantine) && self.record.line > out;
        let wanted = quarantines || holds.has(HoldKind::Redriving) || self.is_extending();
        if wanted && self.record.rare.sweep.is_none() {
            self.record.rare.sweep = Some(step.now);
            step.set_reminder(step.now, self.key.queue, Remind::Sweep(self.key.stream.clone()))?;
        }
        Ok(())
    }

    /// Whether it has no message, dead letter, state or hold; its cursor may still be remembered.
    pub(crate) fn is_empty(&self) -> bool {
        let record = &self.record;
        record.line == 0
            && record.aside == 0
            && record.dead == 0
            && !record.rare.has_state
            && record.rare.holds.is_empty()
    }

    /// Whether there is nothing to remember of it.
    fn is_blank(&self) -> bool {
        self.is_empty()
            && self.record.rare.sweep.is_none()
            && (!self.has_places() || self.record.forget.is_none())
    }

    fn plan_forgetting(&mut self, step: &mut Step<'_>) -> Read<()> {
        if !self.has_places() {
            return Ok(());
        }
        if !self.is_empty() {
            self.record.idle_since = None;
            return Ok(());
        }
        let since = *self.record.idle_since.get_or_insert(step.now);
        if self.record.forget.is_none() {
            self.remind_to_forget(step, since + self.queue.options.forget_after)?;
        }
        Ok(())
    }

    pub(crate) fn remind_to_forget(&mut self, step: &mut Step<'_>, due: Timestamp) -> Read<()> {
        self.record.forget = Some(due);
        step.set_reminder(due, self.key.queue, Remind::Forget(self.key.stream.clone()))
    }

    fn assert_invariants(&self, locked: bool) {
        let record = &self.record;
        if self.has_places() {
            assert!(record.cursor <= record.through + 1, "the run begins at the cursor: {record:?}");
            assert!(record.early <= record.line, "early messages are in the line: {record:?}");
        } else {
            assert!(
                record.early == 0 && record.rare.gap.is_none(),
                "without places nothing is early: {record:?}"
            );
        }
        let offers = record.ticket.is_some();
        assert!(!(offers && locked), "a workflow with a holder offers nothing: {record:?}");
        assert!(!(offers && self.is_held()), "a held workflow offers nothing: {record:?}");
        let held_for_gap = record.rare.holds.has(HoldKind::Gap);
        assert!(!held_for_gap || record.rare.gap.is_some(), "a hold for a gap ends with the gap: {record:?}");
        assert!(!(offers && record.line == 0), "an empty workflow offers nothing: {record:?}");
    }
}

/// Whether a message was handed out before, even if that was taken back.
fn was_out(message: &MessageRecord) -> bool {
    message.delivery_count > 0 || message.handed_out_at != message.accepted_at
}
