//! Hand-out: a message leaves under a lock, counted before its handler can see it.

use std::sync::Arc;

use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::fail::is_expired;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::DeferralRecord;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::engine::rules::workflow::RankedMessage;
use crate::error::ReceiveRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::token::LockToken;

/// Messages whose workflows are locked for them, none of them twice. Finding, handing out and closing are loops of their own: the
/// code of each fits into a processor's cache, and that of all together does not.
#[derive(Default)]
#[must_use = "messages whose workflows are locked have to be handed out"]
#[expect(clippy::vec_box, reason = "workflows are handed on in their boxes")]
struct HandOutGroup {
    granted: Vec<GrantedMessage>,
    /// The workflows of those that are handed out, to be closed.
    open: Vec<Box<OpenWorkflow>>,
}

/// A message that its workflow is locked for.
struct GrantedMessage {
    workflow: Box<OpenWorkflow>,
    token: LockToken,
    sequence: SequenceNumber,
    message: Arc<MessageRecord>,
}

impl HandOutGroup {
    /// Hands out all, and closes their workflows.
    fn hand_out(&mut self, step: &mut Step<'_>, handed: &mut Vec<LockedMessage>) -> Read<()> {
        for GrantedMessage { mut workflow, token, sequence, message } in self.granted.drain(..) {
            handed.push(workflow.hand_out(step, token, sequence, message)?);
            self.open.push(workflow);
        }
        self.open.drain(..).try_for_each(|workflow| workflow.close(step))
    }
}

impl Step<'_> {
    /// Hands out the heads of up to `max` ready workflows, in the order in which they became ready.
    pub(crate) fn receive(
        &mut self,
        name: &QueueName,
        max: usize,
        token: LockToken,
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        // A rate counts each message when it is handed out, before the next is looked at.
        let at_once = if queue.options.rate.is_some() { 1 } else { limits::SIDE_BY_SIDE_MAX };
        let (mut handed, mut waiting) = (Vec::new(), HandOutGroup::default());
        let (mut granted, mut bytes, mut expired_max) = (0, 0, limits::EXPIRED_IN_A_ROW_MAX);
        while self.receives_more(granted, bytes, max) {
            if self.locks.len() >= limits::LOCKS_MAX {
                break;
            }
            let Some((mut workflow, (_, sequence, message))) = self.next_ready(&queue, &mut expired_max)?
            else {
                break;
            };
            if self.allowed(&queue, None) == 0 {
                break;
            }
            let token = token.nth(granted);
            workflow.lock(self, token, LockKind::Deliveries);
            workflow.withdraw_offer(self)?;
            granted += 1;
            bytes += message.bytes;
            waiting.granted.push(GrantedMessage { workflow, token, sequence, message });
            if waiting.granted.len() == at_once {
                waiting.hand_out(self, &mut handed)?;
            }
        }
        waiting.hand_out(self, &mut handed)?;
        Ok(handed)
    }

    /// Hands out a run of up to `max` consecutive messages of the next ready workflow, under one lock.
    pub(crate) fn receive_run(
        &mut self,
        name: &QueueName,
        max: usize,
        token: LockToken,
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        if self.locks.len() >= limits::LOCKS_MAX {
            return refuse(ReceiveRefusal::TooManyLocks(self.locks.len()));
        }
        let Some((mut workflow, _)) = self.next_ready(&queue, &mut { limits::EXPIRED_IN_A_ROW_MAX })? else {
            return Ok(Vec::new());
        };
        let allowed = self.allowed(&queue, None);
        if allowed == 0 {
            return Ok(Vec::new());
        }
        workflow.lock(self, token, LockKind::Run);
        let handed = workflow.hand_out_run(self, token, max.min(limits::RECEIVE_MAX).min(allowed))?;
        // A lock under which nothing was handed out is known to nobody.
        if handed.is_empty() {
            workflow.unlock(self, token)?;
        }
        workflow.close(self)?;
        Ok(handed)
    }

    /// Hands out messages that were set aside, all of them or none.
    pub(crate) fn receive_deferred(
        &mut self,
        name: &QueueName,
        sequences: &[SequenceNumber],
        token: LockToken,
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        let mut streams: Vec<WorkflowRef> = Vec::new();
        for sequence in sequences {
            let message = self.deferred(&queue, *sequence)?;
            let workflow = OpenWorkflow::open(self, &queue, message.stream.clone())?;
            if self.locks.of(&workflow.key).is_some() {
                return refuse(ReceiveRefusal::WorkflowLocked);
            }
            if workflow.is_held() {
                return refuse(ReceiveRefusal::WorkflowHeld);
            }
            if !streams.contains(&message.stream) {
                streams.push(message.stream.clone());
            }
        }
        if self.locks.len() + streams.len() > limits::LOCKS_MAX {
            return refuse(ReceiveRefusal::TooManyLocks(self.locks.len()));
        }
        let mut handed = Vec::new();
        for sequence in sequences {
            let message = self.message_listed(queue.id, *sequence)?;
            if matches!(message.status, Status::Locked { .. }) {
                continue;
            }
            let place = streams.iter().position(|stream| *stream == message.stream);
            let token = token.nth(place.expect("every stream was listed"));
            let mut workflow = OpenWorkflow::open(self, &queue, message.stream.clone())?;
            if self.locks.of(&workflow.key).is_none() {
                workflow.lock(self, token, LockKind::Deliveries);
            }
            handed.push(workflow.hand_out(self, token, *sequence, message)?);
            workflow.close(self)?;
        }
        Ok(handed)
    }

    /// A message that its consumer has set aside. What its sender hides before anybody had it is not: it stays in its turn.
    pub(crate) fn deferred(
        &self,
        queue: &QueueRecord,
        sequence: SequenceNumber,
    ) -> Ruling<Arc<MessageRecord>, ReceiveRefusal> {
        let message = self.message(queue.id, sequence)?;
        let is_set_aside = |message: &Arc<MessageRecord>| match message.status {
            Status::ByConsumer { aside, .. } => aside || message.delivery_count > 0,
            _ => false,
        };
        match message.filter(is_set_aside) {
            Some(message) if !is_expired(&message, self.clocks()) => Ok(message),
            _ => refuse(ReceiveRefusal::MessageNotFound(sequence)),
        }
    }

    pub(crate) fn queue_to_receive(&self, name: &QueueName) -> Ruling<Arc<QueueRecord>, ReceiveRefusal> {
        self.queue_or(name, ReceiveRefusal::QueueNotFound)
    }

    /// Whether a receive of at most `max` messages goes on behind so many, of so many bytes.
    pub(crate) fn receives_more(&self, handed: usize, bytes: u64, max: usize) -> bool {
        handed < max.min(limits::RECEIVE_MAX)
            && bytes < limits::RECEIVE_BYTES_MAX as u64
            && !self.records.is_full()
    }

    /// The workflow that has been ready for longest, and its head, once expired heads are out of the way. A command passes at most
    /// `expired_max` of these, which begins with [`limits::EXPIRED_IN_A_ROW_MAX`], and no more than the turn has room for; the queue is
    /// looked at again in the next turn.
    pub(crate) fn next_ready(
        &mut self,
        queue: &Arc<QueueRecord>,
        expired_max: &mut usize,
    ) -> Read<Option<(Box<OpenWorkflow>, RankedMessage)>> {
        while *expired_max > 0 && !self.records.is_full() {
            let Some((ticket, stream)) = self.records.ready_from(queue.id, 0)? else {
                return Ok(None);
            };
            let mut workflow = OpenWorkflow::open(self, queue, stream)?;
            assert_eq!(workflow.record.ticket, Some(ticket), "a ready workflow is listed under its ticket");
            let head = workflow.offer_from(self, 0)?;
            let (rank, sequence, message) = head.expect("a ready workflow has a message to hand out");
            if !is_expired(&message, self.clocks()) {
                return Ok(Some((workflow, (rank, sequence, message))));
            }
            workflow.expire(self, sequence, &message)?;
            workflow.close(self)?;
            *expired_max -= 1;
        }
        self.effects.push(Effect::MoreWork(queue.name.clone()));
        Ok(None)
    }
}

impl OpenWorkflow {
    /// Hands the workflow's holder up to `max` messages that follow each other. A suspect goes alone.
    pub(crate) fn hand_out_run(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        max: usize,
    ) -> Read<Vec<LockedMessage>> {
        let mut run = Vec::new();
        let mut bytes = 0;
        let mut from = 0;
        let mut expired = 0;
        while run.len() < max
            && bytes < limits::RECEIVE_BYTES_MAX as u64
            && !self.is_held()
            && !step.records.is_full()
        {
            let Some((rank, sequence, message)) = self.offer_from(step, from)? else {
                break;
            };
            from = rank + 1;
            if is_expired(&message, step.clocks()) {
                expired += 1;
                if expired > limits::EXPIRED_IN_A_ROW_MAX {
                    break;
                }
                self.expire(step, sequence, &message)?;
                continue;
            }
            // What is out may stand before one that has just expired, where this look did not pass it.
            if message.is_suspect() && self.offer_from(step, 0)?.is_none_or(|(first, ..)| first != rank) {
                break;
            }
            // Of a run it is known before; the holder of a whole workflow is served again when there is room.
            if self.queue.options.rate.is_some() && step.allowed(&self.queue.clone(), Some(token)) == 0 {
                break;
            }
            let handed = self.hand_out_of_many(step, token, sequence, message)?;
            bytes += handed.record.bytes;
            let is_alone = handed.record.is_suspect();
            run.push(handed);
            if is_alone {
                break;
            }
        }
        if !run.is_empty() {
            self.write_holding(step, token)?;
        }
        Ok(run)
    }

    /// Hands out one message: counted, noted as handed out, and locked.
    pub(crate) fn hand_out(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        sequence: SequenceNumber,
        message: Arc<MessageRecord>,
    ) -> Read<LockedMessage> {
        let handed = self.hand_out_of_many(step, token, sequence, message)?;
        self.write_holding(step, token)?;
        Ok(handed)
    }

    /// The same of one of many: what the holder has out is written down when it has all of them, as it is one row.
    pub(crate) fn hand_out_of_many(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        sequence: SequenceNumber,
        message: Arc<MessageRecord>,
    ) -> Read<LockedMessage> {
        let fetched = match message.status {
            Status::ByConsumer { due, aside } => Some(DeferralRecord { due, aside }),
            _ => None,
        };
        step.count_against_rate(&self.queue);
        let now = step.now;
        let record = self.change_message(step, sequence, message, |message| {
            message.count_hand_out();
            message.handed_out_at = now;
            message.status = Status::Locked { fetched };
        })?;
        let lock = step.locks.hand_out(token, sequence);
        let (locked_until, delivery_count) = (lock.until, record.delivery_count);
        // Only the holder of a whole workflow may be handed the same message again.
        if lock.kind == LockKind::Whole {
            step.settlements.forget(DeliveryRef { token, sequence, delivery_count });
        }
        let content = step.records.content_listed(self.message_key(sequence))?;
        Ok(LockedMessage {
            token,
            locked_until,
            sequence,
            record,
            content,
            has_state: self.record.rare.has_state,
        })
    }

    /// Writes down what the holder has out, so that a restart finds it. A workflow accepted whole is written down even
    /// with nothing out: it offers nothing as long as it has a holder, and only a restart knows that it has none.
    pub(crate) fn write_holding(&mut self, step: &mut Step<'_>, token: LockToken) -> Read<()> {
        let lock = step.locks.get(token).expect("only a holder has something out");
        let is_run = lock.kind == LockKind::Run;
        let holding = (!lock.is_done()).then(|| Holding { out: lock.out.clone(), is_run });
        step.write_holding(&self.key, holding)
    }
}
