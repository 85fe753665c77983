//! What an operator can do to a workflow: hold, resume, retry now, skip, give up a gap, release a lock.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::rules::command::Operation;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::fail::Why;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::LOCK_LOST;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::remember::HistorySubject;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::OperateRefusal;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::token::LockToken;

/// Reason of a dead letter that an operator skipped.
const SKIPPED_BY_OPERATOR: &str = "SkippedByOperator";

impl Step<'_> {
    pub(crate) fn operate(
        &mut self,
        name: &QueueName,
        id: WorkflowId,
        operation: Operation,
    ) -> Ruling<(), OperateRefusal> {
        let mut workflow = self.workflow_to_operate(name, id)?;
        let unknown = !workflow.exists() && self.locks.of(&workflow.key).is_none();
        if unknown && !matches!(operation, Operation::Hold { .. }) {
            return refuse(OperateRefusal::WorkflowNotFound);
        }
        match operation {
            Operation::Hold { reason } => workflow.hold(self, HoldCause::Operator, &reason)?,
            Operation::Resume { redrive } => workflow.resume(self, redrive)?,
            Operation::ResumeFor { kind } => workflow.resume_from(self, kind)?,
            Operation::RetryNow => workflow.retry_now(self)?,
            Operation::SkipHead { reason } => workflow.skip_head(self, None, &reason)?,
            Operation::SkipMessage { sequence, reason } => {
                workflow.skip_head(self, Some(sequence), &reason)?;
            }
            Operation::VoidGap { range } => workflow.void_gap(self, range)?,
            Operation::ReleaseLock => workflow.release_lock(self)?,
        }
        workflow.close(self)?;
        Ok(())
    }

    /// Sets or clears the state of a workflow that nobody holds.
    pub(crate) fn set_state_of(
        &mut self,
        name: &QueueName,
        id: WorkflowId,
        state: Option<Bytes>,
    ) -> Ruling<(), OperateRefusal> {
        let mut workflow = self.workflow_to_operate(name, id)?;
        if self.locks.of(&workflow.key).is_some() {
            return refuse(OperateRefusal::WorkflowLocked);
        }
        workflow.set_state(self, state.map_or(StateChange::Clear, StateChange::Set))?;
        workflow.close(self)?;
        Ok(())
    }

    /// The queue in which an operator does something.
    pub(crate) fn queue_to_operate(&self, name: &QueueName) -> Ruling<Arc<QueueRecord>, OperateRefusal> {
        self.queue_or(name, OperateRefusal::QueueNotFound)
    }

    fn workflow_to_operate(
        &self,
        name: &QueueName,
        id: WorkflowId,
    ) -> Ruling<Box<OpenWorkflow>, OperateRefusal> {
        let queue = self.queue_to_operate(name)?;
        if queue.options.order == Order::None {
            return refuse(OperateRefusal::Unordered(name.clone()));
        }
        Ok(OpenWorkflow::open(self, &queue, WorkflowRef::Named(id))?)
    }

    /// Takes a lock that has run out from its holder: every message it has out has failed.
    pub(crate) fn expire_lock(&mut self, token: LockToken) -> Read<()> {
        let Some(lock) = self.locks.get(token).filter(|lock| lock.until <= self.now) else {
            return Ok(());
        };
        let (key, kind) = (lock.workflow.clone(), lock.kind);
        if kind == LockKind::DeadLetter {
            return self.lose_dead_letter(&key);
        }
        let queue = self.queue(key.queue)?;
        let mut workflow = OpenWorkflow::open(self, &queue, key.stream)?;
        workflow.take_from_holder(self, LOCK_LOST)?;
        workflow.close(self)?;
        Ok(())
    }

    /// Gives back what was handed out when the file was last closed or its process died, a limited number at once, each
    /// looked for behind the one before; whether there may be more.
    pub(crate) fn recover(&mut self) -> Read<bool> {
        assert_eq!(self.locks.len(), 0, "recovery comes before the first lock");
        let mut last = None;
        for _ in 0..limits::SWEEP_MAX {
            if self.records.is_full() {
                break;
            }
            let Some((key, holding)) = self.records.holding_after(last.as_ref())? else {
                return Ok(false);
            };
            let queue = self.queue(key.queue)?;
            let mut workflow = OpenWorkflow::open(self, &queue, key.stream.clone())?;
            workflow.fail_all(self, &holding, "the engine stopped while it was handed out")?;
            self.write_holding(&key, None)?;
            workflow.close(self)?;
            last = Some(key);
        }
        Ok(true)
    }
}

impl OpenWorkflow {
    fn resume(&mut self, step: &mut Step<'_>, redrive: bool) -> Ruling<(), OperateRefusal> {
        match (self.is_held(), redrive) {
            (false, _) => refuse(OperateRefusal::NotHeld),
            (true, true) => Ok(self.hold_for_redrive(step)?),
            (true, false) => Ok(self.resume_for_all(step)?),
        }
    }

    fn resume_from(&mut self, step: &mut Step<'_>, kind: HoldKind) -> Ruling<(), OperateRefusal> {
        if !self.record.rare.holds.has(kind) {
            return refuse(OperateRefusal::NotHeldFor(kind));
        }
        Ok(self.resume_for(step, kind)?)
    }

    /// The head, if it waits for a retry, with or without a reminder.
    fn waiting_head(
        &self,
        step: &Step<'_>,
    ) -> Ruling<Option<(SequenceNumber, Arc<MessageRecord>)>, OperateRefusal> {
        let head = self.head(step)?;
        let waits = |message: &Arc<MessageRecord>| matches!(message.status, Status::Failed { .. });
        Ok(head.filter(|(_, _, message)| waits(message)).map(|(_, sequence, message)| (sequence, message)))
    }

    fn retry_now(&mut self, step: &mut Step<'_>) -> Ruling<(), OperateRefusal> {
        let Some((sequence, head)) = self.waiting_head(step)? else {
            return refuse(OperateRefusal::NothingWaits);
        };
        self.make_ready(step, sequence, &head)?;
        self.lift_hold_of(step, sequence)?;
        Ok(())
    }

    /// Skips the head, if it is the message that is meant.
    fn skip_head(
        &mut self,
        step: &mut Step<'_>,
        meant: Option<SequenceNumber>,
        reason: &str,
    ) -> Ruling<(), OperateRefusal> {
        if step.locks.of(&self.key).is_some() {
            return refuse(OperateRefusal::WorkflowLocked);
        }
        let head = self.head(step)?;
        let beyond = |rank: u64| self.has_places() && self.record.is_beyond(rank);
        let Some((_, sequence, _)) = head.filter(|(rank, _, _)| !beyond(*rank)) else {
            return refuse(OperateRefusal::NoHead);
        };
        if let Some(meant) = meant.filter(|meant| *meant != sequence) {
            return refuse(OperateRefusal::NotAtHead(meant));
        }
        self.dead_letter_quietly(step, sequence, SKIPPED_BY_OPERATOR, reason)?;
        self.lift_hold_of(step, sequence)?;
        Ok(())
    }

    fn void_gap(
        &mut self,
        step: &mut Step<'_>,
        range: Option<(Position, Position)>,
    ) -> Ruling<(), OperateRefusal> {
        let Some((from, to)) = range else {
            return self.void_next_gap(step);
        };
        if !matches!(self.queue.options.order, Order::Position { .. }) {
            return refuse(OperateRefusal::NoPositions);
        }
        if let Some(there) = self.first_not_missing(step, from, to)? {
            return refuse(OperateRefusal::NotMissing(there));
        }
        self.give_up(step, from.get(), to.get(), SettlementKind::Voided)?;
        self.remember(step, HistorySubject::Places(from.get(), to.get()), HistoryEnding::Voided)?;
        self.emit(step, None, EventKind::GapSkipped { from: from.get(), to: to.get() })?;
        Ok(())
    }

    /// Gives up everything up to the lowest waiting message.
    fn void_next_gap(&mut self, step: &mut Step<'_>) -> Ruling<(), OperateRefusal> {
        let has_none = self.record.early == 0 || self.is_extending();
        if has_none || (self.is_chained() && self.first_stray(step)?.is_none()) {
            return refuse(OperateRefusal::NoHead);
        }
        self.skip_gap(step)?;
        Ok(())
    }

    fn first_not_missing(
        &self,
        step: &Step<'_>,
        from: Position,
        to: Position,
    ) -> Ruling<Option<Position>, OperateRefusal> {
        if from > to || from.get() < self.record.cursor {
            return Ok(Some(from));
        }
        let stored = step.records.line_from(&self.key, from.get())?.map(|(rank, _)| rank);
        let aside = step.records.aside_from(&self.key, from.get())?.map(|(rank, _)| rank);
        let settled = match self.mark_at(step, from.get())? {
            Some(_) => Some(from.get()),
            None => step.records.mark_from(&self.key, from.get())?.map(|mark| mark.from),
        };
        let first = [stored, aside, settled].into_iter().flatten().min().filter(|rank| *rank <= to.get());
        Ok(first.and_then(|rank| Position::new(rank).ok()))
    }

    fn release_lock(&mut self, step: &mut Step<'_>) -> Ruling<(), OperateRefusal> {
        if step.locks.of(&self.key).is_none() {
            return refuse(OperateRefusal::NotLocked);
        }
        Ok(self.take_from_holder(step, "an operator released the lock")?)
    }

    /// Takes the workflow from its holder; every message it has out has failed.
    fn take_from_holder(&mut self, step: &mut Step<'_>, reason: &str) -> Read<()> {
        let (token, lock) = step.locks.of(&self.key).expect("only a holder can lose the workflow");
        let holding = Holding { out: lock.out.clone(), is_run: lock.kind == LockKind::Run };
        self.unlock(step, token)?;
        self.fail_all(step, &holding, reason)
    }

    /// What a holder has out has failed, and he cannot say any more where.
    fn fail_all(&mut self, step: &mut Step<'_>, holding: &Holding, reason: &str) -> Read<()> {
        if holding.is_run {
            let out: Vec<SequenceNumber> = holding.out.iter().collect();
            return self.fail_together(step, &out, Retry::Now, Why::of(reason));
        }
        for sequence in holding.out.iter() {
            self.fail(step, sequence, Retry::Now, Why::of(reason))?;
        }
        Ok(())
    }
}
