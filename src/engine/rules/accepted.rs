//! Workflows accepted whole: one holder, its messages in order, several ahead if it likes.

use std::sync::Arc;

use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::ReceiveRefusal;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::Order;
use crate::token::LockToken;

impl Step<'_> {
    /// Gives a consumer a workflow whole: the named one, stored or not, or the next that has work.
    pub(crate) fn accept_workflow(
        &mut self,
        name: &QueueName,
        workflow: Option<WorkflowId>,
        token: LockToken,
    ) -> Ruling<Option<WorkflowGrant>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        if self.locks.len() >= limits::LOCKS_MAX {
            return refuse(ReceiveRefusal::TooManyLocks(self.locks.len()));
        }
        let opened = match workflow {
            Some(id) => self.workflow_to_accept(&queue, id)?,
            None => match self.next_ready(&queue, &mut { limits::EXPIRED_IN_A_ROW_MAX })? {
                Some((workflow, _)) => workflow,
                None => return Ok(None),
            },
        };
        Ok(Some(self.take_opened(opened, token)?))
    }

    fn workflow_to_accept(
        &mut self,
        queue: &Arc<QueueRecord>,
        id: WorkflowId,
    ) -> Ruling<Box<OpenWorkflow>, ReceiveRefusal> {
        if queue.options.order == Order::None {
            return refuse(ReceiveRefusal::Unordered(queue.name.clone()));
        }
        let workflow = OpenWorkflow::open(self, queue, WorkflowRef::Named(id))?;
        if self.locks.of(&workflow.key).is_some() {
            return refuse(ReceiveRefusal::WorkflowLocked);
        }
        Ok(workflow)
    }

    fn take_opened(
        &mut self,
        mut workflow: Box<OpenWorkflow>,
        token: LockToken,
    ) -> Ruling<WorkflowGrant, ReceiveRefusal> {
        workflow.lock(self, token, LockKind::Whole);
        workflow.write_holding(self, token)?;
        let grant = WorkflowGrant {
            token,
            locked_until: self.now + workflow.queue.options.lock,
            stream: workflow.key.stream.clone(),
            state: self.records.state(&workflow.key)?,
        };
        workflow.close(self)?;
        Ok(grant)
    }

    /// Hands the holder of a workflow its next messages.
    pub(crate) fn receive_from_workflow(
        &mut self,
        name: &QueueName,
        token: LockToken,
        max: usize,
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let (mut workflow, out) = self.accepted(name, token)?;
        if workflow.is_held() {
            return Ok(Vec::new());
        }
        let room = limits::ACCEPTED_AHEAD_MAX.saturating_sub(out);
        if room == 0 {
            return refuse(ReceiveRefusal::TooManyLocks(out));
        }
        let before = self.changes();
        let handed = workflow.hand_out_run(self, token, max.min(room))?;
        // Perhaps only expired messages went out of the way.
        if self.changes() > before {
            workflow.close(self)?;
        }
        Ok(handed)
    }

    /// From now on a message that fails leaves the holder of a workflow what he has ahead of it, where the queue's options
    /// let failed messages be passed anyway.
    pub(crate) fn settle_apart(&mut self, name: &QueueName, token: LockToken) -> Ruling<(), SettleRefusal> {
        let workflow = self.held_workflow(name, token)?;
        self.locks.set_apart(token);
        workflow.close(self)?;
        Ok(())
    }

    /// Hands the holder of a workflow messages of it that were set aside, all of them or none.
    pub(crate) fn receive_deferred_from_workflow(
        &mut self,
        name: &QueueName,
        token: LockToken,
        sequences: &[SequenceNumber],
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let (workflow, out) = self.accepted(name, token)?;
        if workflow.is_held() {
            return refuse(ReceiveRefusal::WorkflowHeld);
        }
        if out + sequences.len() > limits::ACCEPTED_AHEAD_MAX {
            return refuse(ReceiveRefusal::TooManyLocks(out));
        }
        for sequence in sequences {
            if self.deferred(&workflow.queue, *sequence)?.stream != workflow.key.stream {
                return refuse(ReceiveRefusal::MessageNotFound(*sequence));
            }
        }
        let mut workflow = workflow;
        let mut handed = Vec::new();
        for sequence in sequences {
            let message = self.message_listed(workflow.queue.id, *sequence)?;
            if handed.iter().any(|earlier: &LockedMessage| earlier.sequence == *sequence) {
                continue;
            }
            handed.push(workflow.hand_out_of_many(self, token, *sequence, message)?);
        }
        workflow.write_holding(self, token)?;
        workflow.close(self)?;
        Ok(handed)
    }

    fn accepted(
        &self,
        name: &QueueName,
        token: LockToken,
    ) -> Ruling<(Box<OpenWorkflow>, usize), ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        let Some(lock) = self.locks.held_in(queue.id, token, self.now) else {
            return refuse(ReceiveRefusal::LockLost);
        };
        let (out, stream) = (lock.out.len(), lock.workflow.stream.clone());
        Ok((OpenWorkflow::open(self, &queue, stream)?.held_by(token), out))
    }

    /// Takes a workflow back from its holder in good order: what is unsettled is given back uncounted.
    pub(crate) fn close_workflow(&mut self, name: &QueueName, token: LockToken) -> Ruling<(), SettleRefusal> {
        let mut workflow = self.held_workflow(name, token)?;
        let out = self.locks.get(token).map(|lock| lock.out.clone()).unwrap_or_default();
        for sequence in out.iter() {
            workflow.give_back(self, sequence)?;
        }
        workflow.unlock(self, token)?;
        workflow.close(self)?;
        Ok(())
    }
}
