//! Settling: a holder ends its deliveries. What it sends, the new state and the reminders are one transaction with it.

use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult as SettledReply;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::fail::DEFERRED_AGAIN;
use crate::engine::rules::fail::Why;
use crate::engine::rules::holds::Hold;
use crate::engine::rules::judge::Judge;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::open_workflow::KnownHolder;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::send::AdmittedMessages;
use crate::engine::rules::settlements::digest_of;
use crate::engine::rules::settlements::digest_of_run;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::engine::rules::step::refuse;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::queue::ExhaustedPolicy;
use crate::queue::Order;
use crate::token::LockToken;

impl Step<'_> {
    /// Ends one delivery.
    pub(crate) fn settle(
        &mut self,
        name: &QueueName,
        held: DeliveryRef,
        mut settlement: Settlement,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let DeliveryRef { token, sequence, .. } = held;
        let (mut workflow, message) = match self.held_message(name, held) {
            Err(Stop::Refused(_)) if self.holds_dead_letter(token) => {
                return self.settle_dead_letter(name, held, settlement);
            }
            Err(Stop::Refused(_)) if self.gives_back_revoked(name, held, &settlement)? => {
                return self.give_back_revoked(name, held);
            }
            Err(Stop::Refused(refusal)) => return self.answer_again(name, held, &settlement, refusal),
            held => held?,
        };
        let as_asked = (settlement.how(), digest_of(&settlement));
        self.check_properties(&workflow, sequence, &settlement)?;
        let (state, judged) = self.judge_settlement(&workflow, &mut settlement, &[sequence])?;
        workflow.apply_settlement(self, token, (sequence, message), settlement)?;
        workflow.set_state(self, state)?;
        let queue = workflow.queue.id;
        let (_, receipts) = self.close_and_send(workflow, token, judged)?;
        let reply = SettledReply { receipts, ..SettledReply::default() };
        self.settlements.note((queue, self.now), held, as_asked, &reply);
        Ok(reply)
    }

    /// The message of a delivery, and its workflow, if it is held.
    pub(crate) fn held_message(
        &self,
        name: &QueueName,
        held: DeliveryRef,
    ) -> Ruling<(Box<OpenWorkflow>, Arc<MessageRecord>), SettleRefusal> {
        self.held_message_of(&self.queue_to_settle(name)?, held)
    }

    /// The queue in which something is settled.
    pub(crate) fn queue_to_settle(&self, name: &QueueName) -> Ruling<Arc<QueueRecord>, SettleRefusal> {
        self.queue_or(name, |_| SettleRefusal::QueueNotFound)
    }

    /// The same of a queue that is known.
    pub(crate) fn held_message_of(
        &self,
        queue: &Arc<QueueRecord>,
        held: DeliveryRef,
    ) -> Ruling<(Box<OpenWorkflow>, Arc<MessageRecord>), SettleRefusal> {
        let workflow = self.held_workflow_of(queue, held.token)?;
        let Some(message) = self.message(queue.id, held.sequence)? else {
            return refuse(SettleRefusal::MessageNotFound(held.sequence));
        };
        // The holder may have it again, after it was taken back: only the last hand-out counts.
        let is_out = self.locks.get(held.token).is_some_and(|lock| lock.out.contains(held.sequence));
        if !is_out || message.delivery_count != held.delivery_count {
            return refuse(SettleRefusal::LockLost);
        }
        Ok((workflow, message))
    }

    /// Answers a settlement of what is not held: as it was answered, if it was settled lately.
    fn answer_again(
        &mut self,
        name: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
        refusal: SettleRefusal,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let queue = self.queue_named(name)?;
        let known = queue.and_then(|queue| self.settlements.answer((queue.id, self.now), held, settlement));
        known.unwrap_or(Err(refusal)).or_else(refuse)
    }

    /// Completes the first messages of a run, ends the next in its own way, and gives back or keeps the rest.
    pub(crate) fn settle_run(
        &mut self,
        name: &QueueName,
        token: LockToken,
        settlement: RunSettlement,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let (mut workflow, out) = match self.held_run(name, token, settlement.first) {
            Err(Stop::Refused(refusal)) => return self.answer_run_again(name, token, &settlement, refusal),
            held => held?,
        };
        let as_asked = (settlement.how(), digest_of_run(&settlement));
        let needed = settlement.completed.saturating_add(usize::from(settlement.next.is_some()));
        if needed > out.len() {
            let last = out.last().copied().unwrap_or(SequenceNumber::new(0));
            return refuse(SettleRefusal::MessageNotFound(last));
        }
        if let Some(next) = &settlement.next {
            self.check_properties(&workflow, out[settlement.completed], next)?;
        }
        // Before anything is changed: how often each was handed out is looked up.
        let endings = self.endings(&workflow, token, &out, &settlement)?;
        let RunSettlement { completed, completion, next, keep_rest, first: _ } = settlement;
        let (state, judged) = self.judge_completion(&workflow, completion, &out[..completed])?;
        for sequence in &out[..completed] {
            let message = self.message_listed(workflow.queue.id, *sequence)?;
            self.locks.take_back(token, *sequence);
            workflow.end(self, *sequence, &message, SettlementKind::Completed)?;
        }
        workflow.end_rest(self, token, &out[completed..], next, keep_rest)?;
        workflow.set_state(self, state)?;
        let at = (workflow.queue.id, self.now);
        let (locked_until, receipts) = self.close_and_send(workflow, token, judged)?;
        let reply = SettledReply { locked_until, receipts, ..SettledReply::default() };
        endings.into_iter().for_each(|(held, how)| self.settlements.note_of_run(at, held, how));
        if let Some(first) = out.first() {
            self.settlements.note_run(at, (token, *first), as_asked, &reply);
        }
        Ok(reply)
    }

    /// The workflow of a run and what is left of it, if it is held, and begins where its holder says.
    fn held_run(
        &self,
        name: &QueueName,
        token: LockToken,
        first: Option<SequenceNumber>,
    ) -> Ruling<(Box<OpenWorkflow>, Vec<SequenceNumber>), SettleRefusal> {
        let workflow = self.held_workflow(name, token)?;
        let out: Vec<SequenceNumber> =
            self.locks.get(token).map(|lock| lock.out.iter().collect()).unwrap_or_default();
        match first.filter(|first| out.first() != Some(first)) {
            Some(first) => refuse(SettleRefusal::MessageNotFound(first)),
            None => Ok((workflow, out)),
        }
    }

    fn answer_run_again(
        &mut self,
        name: &QueueName,
        token: LockToken,
        settlement: &RunSettlement,
        refusal: SettleRefusal,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let queue = self.queue_named(name)?;
        let known =
            queue.and_then(|queue| self.settlements.answer_run((queue.id, self.now), token, settlement));
        known.unwrap_or(Err(refusal)).or_else(refuse)
    }

    /// How each message of a run ends.
    fn endings(
        &self,
        workflow: &OpenWorkflow,
        token: LockToken,
        out: &[SequenceNumber],
        settlement: &RunSettlement,
    ) -> Read<Vec<(DeliveryRef, SettledHow)>> {
        let mut endings = Vec::with_capacity(out.len());
        for (at, sequence) in out.iter().enumerate() {
            let how = match &settlement.next {
                _ if at < settlement.completed => SettledHow::Completed,
                Some(Settlement::Suspect { .. }) => SettledHow::Abandoned,
                Some(next) if at == settlement.completed => next.how(),
                _ if settlement.keep_rest => break,
                _ => SettledHow::Released,
            };
            let delivery_count = self.message_listed(workflow.queue.id, *sequence)?.delivery_count;
            endings.push((DeliveryRef { token, sequence: *sequence, delivery_count }, how));
        }
        Ok(endings)
    }

    /// Judges what a settlement sends and sets, and takes it out of there.
    pub(crate) fn judge_settlement(
        &self,
        workflow: &OpenWorkflow,
        settlement: &mut Settlement,
        completed: &[SequenceNumber],
    ) -> Ruling<(StateChange, Vec<AdmittedMessages>), SettleRefusal> {
        match settlement {
            Settlement::Complete(completion) => {
                self.judge_completion(workflow, std::mem::take(completion), completed)
            }
            _ => Ok((StateChange::Keep, Vec::new())),
        }
    }

    /// Judges what a completion sends and sets, before anything is changed: what it sends as if the messages that it
    /// completes were completed already.
    fn judge_completion(
        &self,
        workflow: &OpenWorkflow,
        completion: CompletionCommand,
        completed: &[SequenceNumber],
    ) -> Ruling<(StateChange, Vec<AdmittedMessages>), SettleRefusal> {
        let stateless = matches!(workflow.key.stream, WorkflowRef::Single(_));
        if stateless && completion.state != StateChange::Keep {
            return refuse(SettleRefusal::NoWorkflow);
        }
        if completion.sends.is_empty() {
            return Ok((completion.state, Vec::new()));
        }
        let mut judge = Judge::after_completing(workflow.queue.id, completed);
        let mut judged = Vec::with_capacity(completion.sends.len());
        let mut before = 0;
        for (queue, messages) in completion.sends {
            let count = messages.len();
            let admitted = self.judge(&mut judge, &queue, messages);
            let refused = |refusal: SendRefusal| SettleRefusal::Send(refusal.behind(before));
            judged.push(admitted.map_err(|stop| stop.map(refused))?);
            before += count;
        }
        Ok((completion.state, judged))
    }

    pub(crate) fn accept_all(&mut self, judged: Vec<AdmittedMessages>) -> Read<Vec<Receipt>> {
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
        mut workflow: Box<OpenWorkflow>,
        token: LockToken,
        judged: Vec<AdmittedMessages>,
    ) -> Read<(Option<Timestamp>, Vec<Receipt>)> {
        let locked_until = workflow.settle_lock(self, token)?;
        if judged.is_empty() {
            workflow.close(self)?;
            return Ok((locked_until, Vec::new()));
        }
        let (queue, stream) = (workflow.queue.clone(), workflow.key.stream.clone());
        workflow.close_unjudged(self)?;
        let receipts = self.accept_all(judged)?;
        OpenWorkflow::open(self, &queue, stream)?.close(self)?;
        Ok((locked_until, receipts))
    }

    /// The workflow that a token holds.
    pub(crate) fn held_workflow(
        &self,
        name: &QueueName,
        token: LockToken,
    ) -> Ruling<Box<OpenWorkflow>, SettleRefusal> {
        self.held_workflow_of(&self.queue_to_settle(name)?, token)
    }

    fn held_workflow_of(
        &self,
        queue: &Arc<QueueRecord>,
        token: LockToken,
    ) -> Ruling<Box<OpenWorkflow>, SettleRefusal> {
        let Some(lock) = self.locks.held_in(queue.id, token, self.now) else {
            return refuse(SettleRefusal::LockLost);
        };
        Ok(OpenWorkflow::open(self, queue, lock.workflow.stream.clone())?.held_by(token))
    }

    /// Prolongs a lock by the queue's lock time from now.
    pub(crate) fn renew(
        &mut self,
        name: &QueueName,
        token: LockToken,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let queue = self.queue_to_settle(name)?;
        if self.locks.held(token, self.now).is_none_or(|lock| lock.workflow.queue != queue.id) {
            return refuse(SettleRefusal::LockLost);
        }
        let until = self.now + queue.options.lock;
        self.locks.renew(token, until);
        let lasts = Some(queue.options.lock);
        Ok(SettledReply { locked_until: Some(until), lasts, ..SettledReply::default() })
    }

    /// Sets or clears the state of a workflow that its holder has accepted.
    pub(crate) fn set_workflow_state(
        &mut self,
        name: &QueueName,
        token: LockToken,
        state: Option<Bytes>,
    ) -> Ruling<(), SettleRefusal> {
        let mut workflow = self.held_workflow(name, token)?;
        if matches!(workflow.key.stream, WorkflowRef::Single(_)) {
            return refuse(SettleRefusal::NoWorkflow);
        }
        workflow.set_state(self, state.map_or(StateChange::Clear, StateChange::Set))?;
        workflow.close(self)?;
        Ok(())
    }
}

impl OpenWorkflow {
    /// Ends what a run has left: the next in its own way, the rest given back or kept. When nobody knows where the run
    /// failed, all of it has failed together.
    fn end_rest(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        rest: &[SequenceNumber],
        next: Option<Settlement>,
        keep_rest: bool,
    ) -> Read<()> {
        if let Some(Settlement::Suspect { retry, reason, output }) = next {
            for sequence in rest {
                step.locks.take_back(token, *sequence);
            }
            return self.fail_together(step, rest, retry, Why { reason: &reason, output: &output });
        }
        if !keep_rest {
            for sequence in rest.iter().skip(usize::from(next.is_some())) {
                step.locks.take_back(token, *sequence);
                self.give_back(step, *sequence)?;
            }
        }
        if let Some(next) = next {
            let message = step.message_listed(self.key.queue, rest[0])?;
            self.apply_settlement(step, token, (rest[0], message), next)?;
        }
        Ok(())
    }

    fn apply_settlement(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        (sequence, message): (SequenceNumber, Arc<MessageRecord>),
        settlement: Settlement,
    ) -> Read<()> {
        step.locks.take_back(token, sequence);
        let (holds_before, is_given_back) =
            (self.record.rare.holds.clone(), settlement == Settlement::Release);
        match settlement {
            // Nothing stops what is behind it.
            Settlement::Complete(_) => return self.end(step, sequence, &message, SettlementKind::Completed),
            Settlement::Abandon { retry, reason, properties, output } => {
                self.change_properties(step, sequence, properties)?;
                self.fail(step, sequence, retry, Why { reason: &reason, output: &output })?;
            }
            Settlement::Defer { until, properties } => {
                self.change_properties(step, sequence, properties)?;
                match self.has_used_extra(&message) {
                    true => self.fail(step, sequence, Retry::Now, Why::of(DEFERRED_AGAIN))?,
                    false => self.set_aside(step, sequence, until)?,
                }
            }
            Settlement::DeadLetter { reason, description, properties } => {
                self.change_properties(step, sequence, properties)?;
                self.dead_letter(step, sequence, &reason, &description)?;
            }
            Settlement::Release => self.give_back(step, sequence)?,
            Settlement::Suspect { retry, reason, output } => {
                self.fail_shared(step, sequence, retry, Why { reason: &reason, output: &output })?;
            }
            Settlement::Postpone { retry, reason } => self.postpone(step, sequence, retry, &reason)?,
        }
        // A workflow that is held is held for every holder; what only waits in the line stops those that keep the order.
        let is_new = |hold: &Hold| !holds_before.has(hold.cause.kind());
        let is_stopped = self.record.rare.holds.iter().any(is_new)
            || (!self.settles_apart(step, token) && self.is_in_line(step, sequence)?);
        match is_stopped {
            true => self.revoke_behind(step, token, message.rank.unwrap_or(0), is_given_back),
            false => Ok(()),
        }
    }

    /// Whether a message that fails leaves its holder what he has ahead of it: he asked for that, as the receiver of a
    /// session of Service Bus does, and the queue keeps no order through failures.
    fn settles_apart(&self, step: &Step<'_>, token: LockToken) -> bool {
        let options = &self.queue.options;
        step.locks.get(token).is_some_and(|lock| lock.is_apart)
            && options.order == Order::Arrival
            && options.exhausted_policy() == ExhaustedPolicy::Skip
            && !options.hold_on_defer
    }

    /// Whether a settled message still stands in the line, so that nothing behind it may be handled.
    fn is_in_line(&self, step: &Step<'_>, sequence: SequenceNumber) -> Read<bool> {
        let Some(message) = step.message(self.key.queue, sequence)? else { return Ok(false) };
        Ok(matches!(
            message.status,
            Status::Ready | Status::Failed { .. } | Status::ByConsumer { aside: false, .. }
        ))
    }

    /// Ends the lock when nothing is left of it, else writes down what is left; says until when it is still held.
    pub(crate) fn settle_lock(&mut self, step: &mut Step<'_>, token: LockToken) -> Read<Option<Timestamp>> {
        let lock = step.locks.get(token).expect("the lock was held when the settle began");
        if lock.is_done() {
            self.unlock(step, token)?;
            return Ok(None);
        }
        let until = lock.until;
        self.write_holding(step, token)?;
        Ok(Some(until))
    }

    /// Takes the workflow from its holder.
    pub(crate) fn unlock(&mut self, step: &mut Step<'_>, token: LockToken) -> Read<()> {
        step.note_locks_freed();
        self.holder = KnownHolder::Nobody;
        if step.locks.end(token) == LockKind::Whole {
            step.effects.push(Effect::AcceptedWork(token));
            self.offer_own_dead_letter(step)?;
        }
        step.write_holding(&self.key, None)
    }

    /// A message that is a workflow of its own may have become a dead letter while somebody had that workflow: receivers of
    /// dead letters passed it, as one that is locked.
    fn offer_own_dead_letter(&self, step: &mut Step<'_>) -> Read<()> {
        let WorkflowRef::Single(sequence) = self.key.stream else { return Ok(()) };
        let key = self.message_key(sequence);
        let Some(message) = step.message(key.queue, sequence)? else { return Ok(()) };
        match &message.status {
            Status::DeadLettered(dead_letter) if !dead_letter.deferred => {
                step.offer_dead_letter(key, dead_letter.reason.clone())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn set_state(&mut self, step: &mut Step<'_>, state: StateChange) -> Read<()> {
        let state = match state {
            StateChange::Keep => return Ok(()),
            StateChange::Clear => None,
            StateChange::Set(bytes) => Some(bytes),
        };
        self.record.rare.has_state = state.is_some();
        self.record.rare.state_set_at = state.as_ref().map(|_| step.wall);
        step.write(Change::State(self.key.clone(), state))
    }
}
