//! Settling: a holder ends its deliveries. What it sends, the new state and the reminders are one transaction with it.

use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::command::Completion;
use crate::engine::rules::command::Held;
use crate::engine::rules::command::Receipt;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settled as SettledReply;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::fail::is_expired;
use crate::engine::rules::judge::Judge;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Settled;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Stream;
use crate::engine::rules::records::Read;
use crate::engine::rules::send::Judged;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::engine::rules::step::refuse;
use crate::engine::rules::workflow::Workflow;
use crate::error::SettleRefusal;
use crate::header::Properties;
use crate::header::properties_len;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::Order;
use crate::queue::Spent;
use crate::token::LockToken;

impl Step<'_> {
    /// Ends one delivery.
    pub(crate) fn settle(
        &mut self,
        name: &QueueName,
        token: LockToken,
        (sequence, delivery_count): (SequenceNumber, u32),
        settlement: Settlement,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let (mut workflow, out) = self.held_workflow(name, token)?;
        let Some(message) = self.message(workflow.queue.id, sequence)? else {
            return refuse(SettleRefusal::MessageNotFound(sequence));
        };
        // The holder may have it again, after it was taken back: only the last hand-out counts.
        if !out.contains(&sequence) || message.delivery_count != delivery_count {
            return refuse(SettleRefusal::LockLost);
        }
        self.check_properties(&workflow, sequence, &settlement)?;
        let (settlement, state, judged) = self.judge_settlement(&workflow, settlement, 1)?;
        workflow.apply_settlement(self, token, (sequence, message), settlement)?;
        workflow.set_state(self, state)?;
        let (_, receipts) = self.close_and_send(workflow, token, judged)?;
        Ok(SettledReply { receipts, ..SettledReply::default() })
    }

    /// Completes one delivery, and nothing else.
    pub(crate) fn complete(&mut self, name: &QueueName, held: Held) -> Ruling<(), SettleRefusal> {
        let settlement = Settlement::Complete(Completion::default());
        self.settle(name, held.token, (held.sequence, held.delivery_count), settlement)?;
        Ok(())
    }

    /// Completes the first messages of a run, ends the next in its own way, and gives back or keeps the rest.
    pub(crate) fn settle_run(
        &mut self,
        name: &QueueName,
        token: LockToken,
        settlement: RunSettlement,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let (mut workflow, out) = self.held_workflow(name, token)?;
        let RunSettlement { completed, completion, next, keep_rest } = settlement;
        let needed = completed.saturating_add(usize::from(next.is_some()));
        if needed > out.len() {
            let last = out.last().copied().unwrap_or(SequenceNumber::new(0));
            return refuse(SettleRefusal::MessageNotFound(last));
        }
        if let Some(next) = &next {
            self.check_properties(&workflow, out[completed], next)?;
        }
        let (_, state, judged) =
            self.judge_settlement(&workflow, Settlement::Complete(completion), completed)?;
        for sequence in &out[..completed] {
            let message = self.message_listed(workflow.queue.id, *sequence)?;
            let completed = Settlement::Complete(Completion::default());
            workflow.apply_settlement(self, token, (*sequence, message), completed)?;
        }
        if !keep_rest {
            for sequence in &out[needed..] {
                self.locks.take_back(token, *sequence);
                workflow.give_back(self, *sequence)?;
            }
        }
        if let Some(next) = next {
            let message = self.message_listed(workflow.queue.id, out[completed])?;
            workflow.apply_settlement(self, token, (out[completed], message), next)?;
        }
        workflow.set_state(self, state)?;
        let (locked_until, receipts) = self.close_and_send(workflow, token, judged)?;
        Ok(SettledReply { locked_until, receipts, ..SettledReply::default() })
    }

    /// Judges what a settlement sends and sets, before anything is changed. A completion ends `count` messages.
    fn judge_settlement(
        &self,
        workflow: &Workflow,
        settlement: Settlement,
        count: usize,
    ) -> Ruling<(Settlement, StateChange, Vec<Judged>), SettleRefusal> {
        let Settlement::Complete(completion) = settlement else {
            return Ok((settlement, StateChange::Keep, Vec::new()));
        };
        let stateless = matches!(workflow.key.stream, Stream::Single(_));
        if stateless && completion.state != StateChange::Keep {
            return refuse(SettleRefusal::NoWorkflow);
        }
        let mut judge = Judge::making_room(workflow.queue.id, count);
        let mut judged = Vec::with_capacity(completion.sends.len());
        for (queue, messages) in completion.sends {
            judged.push(self.judge(&mut judge, &queue, messages).map_err(|stop| match stop {
                Stop::Refused(refusal) => Stop::Refused(SettleRefusal::Send(refusal)),
                Stop::Fault(fault) => Stop::Fault(fault),
            })?);
        }
        Ok((Settlement::Complete(Completion::default()), completion.state, judged))
    }

    /// Properties are added with each attempt; together they stay within the limit of a send.
    fn check_properties(
        &self,
        workflow: &Workflow,
        sequence: SequenceNumber,
        settlement: &Settlement,
    ) -> Ruling<(), SettleRefusal> {
        let (Settlement::Abandon { properties, .. }
        | Settlement::Defer { properties, .. }
        | Settlement::DeadLetter { properties, .. }) = settlement
        else {
            return Ok(());
        };
        if properties.is_empty() {
            return Ok(());
        }
        let content = self.records.content(workflow.message_key(sequence))?;
        let content = content.expect("every stored message has its content");
        let mut together = content.headers.properties.clone();
        together.extend(properties.clone());
        match properties_len(&together) {
            bytes if bytes > limits::PROPERTIES_BYTES_MAX => {
                refuse(SettleRefusal::PropertiesTooLarge { bytes })
            }
            _ => Ok(()),
        }
    }

    fn accept_all(&mut self, judged: Vec<Judged>) -> Read<Vec<Receipt>> {
        let mut receipts = Vec::new();
        for judged in judged {
            receipts.extend(self.accept_judged(judged)?);
        }
        Ok(receipts)
    }

    /// Ends the lock when nothing is left of it, closes the workflow, and sends. A gap is judged only after the sends,
    /// because one of them may fill it.
    fn close_and_send(
        &mut self,
        mut workflow: Workflow,
        token: LockToken,
        judged: Vec<Judged>,
    ) -> Read<(Option<Timestamp>, Vec<Receipt>)> {
        let locked_until = workflow.settle_lock(self, token)?;
        if judged.is_empty() {
            workflow.close(self)?;
            return Ok((locked_until, Vec::new()));
        }
        let (queue, stream) = (workflow.queue.clone(), workflow.key.stream.clone());
        workflow.close_unjudged(self)?;
        let receipts = self.accept_all(judged)?;
        Workflow::open(self, &queue, stream)?.close(self)?;
        Ok((locked_until, receipts))
    }

    /// The workflow that a token holds, and what its holder has out.
    pub(crate) fn held_workflow(
        &self,
        name: &QueueName,
        token: LockToken,
    ) -> Ruling<(Workflow, Vec<SequenceNumber>), SettleRefusal> {
        let Some(queue) = self.queue_named(name)? else {
            return refuse(SettleRefusal::QueueNotFound);
        };
        let Some(lock) = self.locks.held(token, self.now).filter(|lock| lock.workflow.queue == queue.id)
        else {
            return refuse(SettleRefusal::LockLost);
        };
        let (stream, out) = (lock.workflow.stream.clone(), lock.out.clone());
        Ok((Workflow::open(self, &queue, stream)?, out))
    }

    /// Prolongs a lock by the queue's lock time from now.
    pub(crate) fn renew(
        &mut self,
        name: &QueueName,
        token: LockToken,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let Some(queue) = self.queue_named(name)? else {
            return refuse(SettleRefusal::QueueNotFound);
        };
        if self.locks.held(token, self.now).is_none_or(|lock| lock.workflow.queue != queue.id) {
            return refuse(SettleRefusal::LockLost);
        }
        let until = self.now + queue.options.lock;
        self.locks.renew(token, until);
        let lasts = Some(queue.options.lock);
        Ok(SettledReply { locked_until: Some(until), lasts, ..SettledReply::default() })
    }

    /// Sets or clears the state of a workflow that its holder has taken.
    pub(crate) fn set_taken_state(
        &mut self,
        name: &QueueName,
        token: LockToken,
        state: Option<Bytes>,
    ) -> Ruling<(), SettleRefusal> {
        let (mut workflow, _) = self.held_workflow(name, token)?;
        if matches!(workflow.key.stream, Stream::Single(_)) {
            return refuse(SettleRefusal::NoWorkflow);
        }
        workflow.set_state(self, state.map_or(StateChange::Clear, StateChange::Set))?;
        workflow.close(self)?;
        Ok(())
    }
}

impl Workflow {
    fn apply_settlement(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        (sequence, message): (SequenceNumber, Arc<MessageRecord>),
        settlement: Settlement,
    ) -> Read<()> {
        step.locks.take_back(token, sequence);
        let held_before = self.record.hold.is_some();
        let place = message.rank.unwrap_or(0);
        match settlement {
            Settlement::Complete(_) => return self.end(step, sequence, &message, Settled::Completed),
            Settlement::Abandon { retry, reason, properties } => {
                self.change_properties(step, sequence, properties)?;
                self.fail(step, sequence, retry, &reason)?;
            }
            Settlement::Defer { until, properties } => {
                self.change_properties(step, sequence, properties)?;
                self.set_aside(step, sequence, until)?;
            }
            Settlement::DeadLetter { reason, description, properties } => {
                self.change_properties(step, sequence, properties)?;
                self.dead_letter(step, sequence, &reason, &description)?;
            }
            Settlement::Release => self.give_back(step, sequence)?,
        }
        if let Some(rank) = self.blocking_rank(step, sequence)?.filter(|_| !self.settles_alone()) {
            self.revoke_behind(step, token, rank)?;
        }
        if !held_before && self.record.hold.is_some() {
            self.revoke_behind(step, token, place)?;
        }
        Ok(())
    }

    /// Whether a message that fails leaves its holder what he has ahead of it. Where failed messages are skipped in the
    /// end, arrival is the order of hand-out and no more, as in a session of Service Bus.
    fn settles_alone(&self) -> bool {
        let options = &self.queue.options;
        options.order == Order::Arrival && options.spent_policy() == Spent::Skip && !options.hold_on_defer
    }

    /// Where a settled message still stands in the line, so that nothing behind it may be handled.
    fn blocking_rank(&self, step: &Step<'_>, sequence: SequenceNumber) -> Read<Option<u64>> {
        let Some(message) = step.message(self.key.queue, sequence)? else { return Ok(None) };
        Ok(match message.status {
            Status::Ready | Status::Failed { .. } | Status::Asked { aside: false, .. } => message.rank,
            _ => None,
        })
    }

    /// Takes back what a holder has ahead of a message that failed: it is offered again after it.
    fn revoke_behind(&mut self, step: &mut Step<'_>, token: LockToken, rank: u64) -> Read<()> {
        let out = step.locks.get(token).map(|lock| lock.out.clone()).unwrap_or_default();
        for sequence in out {
            let before = step.message_listed(self.key.queue, sequence)?;
            let in_line = !self.is_aside(&before);
            if !in_line || before.rank.is_none_or(|behind| behind < rank) {
                continue;
            }
            step.locks.take_back(token, sequence);
            if is_expired(&before, step.now) {
                self.expire(step, sequence, &before)?;
                continue;
            }
            let mut message = MessageRecord::clone(&before);
            message.status = Status::Ready;
            self.restate(step, sequence, Some(&before), &message)?;
        }
        Ok(())
    }

    /// Ends the lock when nothing is left of it, else writes down what is left; says until when it is still held.
    fn settle_lock(&mut self, step: &mut Step<'_>, token: LockToken) -> Read<Option<Timestamp>> {
        let lock = step.locks.get(token).expect("the lock was held when the settle began");
        if lock.kind == LockKind::Deliveries && lock.out.is_empty() {
            self.unlock(step, token)?;
            return Ok(None);
        }
        let until = lock.until;
        self.write_holding(step, token)?;
        Ok(Some(until))
    }

    /// Takes the workflow from its holder.
    pub(crate) fn unlock(&mut self, step: &mut Step<'_>, token: LockToken) -> Read<()> {
        if step.locks.len() >= limits::LOCKS_MAX {
            step.effects.push(Effect::LocksFreed);
        }
        if step.locks.get(token).is_some_and(|lock| lock.kind == LockKind::Whole) {
            step.effects.push(Effect::TakenWork(token));
        }
        step.locks.end(token);
        step.write(Change::Holding(self.key.clone(), None))
    }

    pub(crate) fn set_state(&mut self, step: &mut Step<'_>, state: StateChange) -> Read<()> {
        let state = match state {
            StateChange::Keep => return Ok(()),
            StateChange::Clear => None,
            StateChange::Set(bytes) => Some(bytes),
        };
        self.record.has_state = state.is_some();
        step.write(Change::State(self.key.clone(), state))
    }

    fn change_properties(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        properties: Properties,
    ) -> Read<()> {
        if properties.is_empty() {
            return Ok(());
        }
        let key = self.message_key(sequence);
        let mut content = step.records.content(key)?.expect("every stored message has its content");
        Arc::make_mut(&mut content).headers.properties.extend(properties);
        step.write(Change::Content(key, Some(content)))
    }
}
