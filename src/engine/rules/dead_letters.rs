//! Dead letters, handed out: each under a lock of its own, beside its workflow, which goes on without it.
//!
//! A dead letter that somebody has remains one: an operator can put it back or remove it, and that ends its lock. How often it
//! was handed out, and whether it is set aside, is in its record, on disk before its receiver has it. It never expires, it is
//! never exhausted, and it waits for no retry: it is back at once, or set aside until it is asked for by its number.

use std::sync::Arc;

use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::SettleResult as SettledReply;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::fail::Why;
use crate::engine::rules::fail::note_attempt;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::LOCK_LOST;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::send::AdmittedMessages;
use crate::engine::rules::settlements::digest_of;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::ReceiveRefusal;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::token::LockToken;

/// What a dead letter is locked by: its own number, so that its workflow is free.
pub(crate) fn lock_key(queue: QueueId, sequence: SequenceNumber) -> WorkflowKey {
    WorkflowKey { queue, stream: WorkflowRef::Single(sequence) }
}

impl Step<'_> {
    /// Hands out up to `max` dead letters that nobody has and nobody has set aside, in order of reason and number.
    pub(crate) fn receive_dead_letters(
        &mut self,
        name: &QueueName,
        max: usize,
        token: LockToken,
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        let (mut handed, mut bytes, mut passed) = (Vec::new(), 0, 0);
        while self.receives_more(handed.len(), bytes, max) {
            if self.locks.len() >= limits::LOCKS_MAX {
                break;
            }
            if passed == limits::DEAD_LETTERS_PASSED_MAX {
                self.effects.push(Effect::MoreDeadLetters(queue.name.clone()));
                break;
            }
            let from = self.locks.dead_letters_from(queue.id);
            let Some(place) = self.records.dead_letters(queue.id, from, 1)?.pop() else {
                break;
            };
            let message = self.message_listed(queue.id, place.1)?;
            let is_locked = self.locks.of(&lock_key(queue.id, place.1)).is_some();
            match is_locked || dead_letter_of(&message).deferred {
                true => passed += 1,
                false => {
                    let token = token.nth(handed.len());
                    let delivery = self.hand_out_dead_letter(&queue, (place.1, message), token)?;
                    bytes += delivery.record.bytes;
                    handed.push(delivery);
                }
            }
            self.locks.pass_dead_letter(queue.id, place);
        }
        Ok(handed)
    }

    /// Hands out dead letters that were set aside, all of them or none.
    pub(crate) fn receive_deferred_dead_letters(
        &mut self,
        name: &QueueName,
        sequences: &[SequenceNumber],
        token: LockToken,
    ) -> Ruling<Vec<LockedMessage>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        let mut found: Vec<(SequenceNumber, Arc<MessageRecord>)> = Vec::new();
        for sequence in sequences {
            if found.iter().any(|(earlier, _)| earlier == sequence) {
                continue;
            }
            let message = self.message(queue.id, *sequence)?;
            let is_set_aside = |message: &Arc<MessageRecord>| match &message.status {
                Status::DeadLettered(dead_letter) => dead_letter.deferred,
                _ => false,
            };
            let is_free = self.locks.of(&lock_key(queue.id, *sequence)).is_none();
            match message.filter(|message| is_free && is_set_aside(message)) {
                Some(message) => found.push((*sequence, message)),
                None => return refuse(ReceiveRefusal::MessageNotFound(*sequence)),
            }
        }
        if self.locks.len() + found.len() > limits::LOCKS_MAX {
            return refuse(ReceiveRefusal::TooManyLocks(self.locks.len()));
        }
        let mut handed = Vec::with_capacity(found.len());
        for found in found {
            let token = token.nth(handed.len());
            handed.push(self.hand_out_dead_letter(&queue, found, token)?);
        }
        Ok(handed)
    }

    /// Hands out one dead letter: counted, and locked.
    fn hand_out_dead_letter(
        &mut self,
        queue: &QueueRecord,
        (sequence, before): (SequenceNumber, Arc<MessageRecord>),
        token: LockToken,
    ) -> Read<LockedMessage> {
        let locked_until = self.now + queue.options.lock;
        self.locks.grant(token, lock_key(queue.id, sequence), LockKind::DeadLetter, locked_until);
        self.locks.hand_out(token, sequence);
        let mut record = MessageRecord::clone(&before);
        change(&mut record).deliveries += 1;
        record.handed_out_at = self.now;
        let key = MessageKey { queue: queue.id, sequence };
        self.write_message(key, Some(Arc::new(record.clone())))?;
        record.delivery_count = delivery_count_of(&record);
        let content = self.records.content_listed(key)?;
        Ok(LockedMessage {
            token,
            locked_until,
            sequence,
            record: Arc::new(record),
            content,
            has_state: false,
        })
    }

    /// Whether a token is that of a dead letter.
    pub(crate) fn holds_dead_letter(&self, token: LockToken) -> bool {
        self.locks.get(token).is_some_and(|lock| lock.kind == LockKind::DeadLetter)
    }

    /// Ends the delivery of a dead letter: it is gone for good, or it is back.
    pub(crate) fn settle_dead_letter(
        &mut self,
        name: &QueueName,
        held: DeliveryRef,
        mut settlement: Settlement,
    ) -> Ruling<SettledReply, SettleRefusal> {
        let (queue, message) = self.held_dead_letter(name, held)?;
        if matches!(settlement, Settlement::DeadLetter { .. }) {
            return refuse(SettleRefusal::AlreadyDeadLettered(held.sequence));
        }
        let as_asked = (settlement.how(), digest_of(&settlement));
        let workflow = OpenWorkflow::open(self, &queue, message.stream.clone())?;
        self.check_properties(&workflow, held.sequence, &settlement)?;
        let (state, judged) = self.judge_settlement(&workflow, &mut settlement, &[])?;
        if state != StateChange::Keep {
            return refuse(SettleRefusal::NoWorkflow);
        }
        let receipts = match settlement {
            Settlement::Complete(_) => {
                self.complete_dead_letter(workflow, (held.sequence, &message), judged)?
            }
            back => {
                self.return_dead_letter(workflow, (held.sequence, &message), back)?;
                Vec::new()
            }
        };
        let reply = SettledReply { receipts, ..SettledReply::default() };
        self.settlements.note((queue.id, self.now), held, as_asked, &reply);
        Ok(reply)
    }

    /// The dead letter of a delivery, if it is held.
    fn held_dead_letter(
        &self,
        name: &QueueName,
        held: DeliveryRef,
    ) -> Ruling<(Arc<QueueRecord>, Arc<MessageRecord>), SettleRefusal> {
        let queue = self.queue_to_settle(name)?;
        let key = lock_key(queue.id, held.sequence);
        if self.locks.held(held.token, self.now).is_none_or(|lock| lock.workflow != key) {
            return refuse(SettleRefusal::LockLost);
        }
        let message = self.message_listed(queue.id, held.sequence)?;
        match delivery_count_of(&message) == held.delivery_count {
            true => Ok((queue, message)),
            false => refuse(SettleRefusal::LockLost),
        }
    }

    fn complete_dead_letter(
        &mut self,
        mut workflow: Box<OpenWorkflow>,
        (sequence, message): (SequenceNumber, &MessageRecord),
        judged: Vec<AdmittedMessages>,
    ) -> Read<Vec<Receipt>> {
        workflow.list_dead_letter(self, sequence, message, false)?;
        workflow.erase(self, sequence, message, HistoryEnding::Completed)?;
        workflow.close(self)?;
        self.accept_all(judged)
    }

    /// Gives a dead letter back, as failed, as not looked at, or set aside.
    fn return_dead_letter(
        &mut self,
        mut workflow: Box<OpenWorkflow>,
        (sequence, before): (SequenceNumber, &MessageRecord),
        settlement: Settlement,
    ) -> Read<()> {
        let mut message = MessageRecord::clone(before);
        match settlement {
            Settlement::Abandon { reason, properties, output, .. } => {
                workflow.change_properties(self, sequence, properties)?;
                self.note_failure(&mut message, Why { reason: &reason, output: &output });
            }
            Settlement::Suspect { reason, output, .. } => {
                self.note_failure(&mut message, Why { reason: &reason, output: &output });
            }
            Settlement::Defer { properties, .. } => {
                workflow.change_properties(self, sequence, properties)?;
                change(&mut message).deferred = true;
            }
            Settlement::Release | Settlement::Postpone { .. } => change(&mut message).deliveries -= 1,
            Settlement::Complete(_) | Settlement::DeadLetter { .. } => {
                unreachable!("a dead letter does not go back like this")
            }
        }
        self.offer_again(workflow.message_key(sequence), message)
    }

    /// A lock has run out under which somebody had a dead letter.
    pub(crate) fn lose_dead_letter(&mut self, key: &WorkflowKey) -> Read<()> {
        let WorkflowRef::Single(sequence) = key.stream else {
            unreachable!("a dead letter is locked by its number")
        };
        let mut message = MessageRecord::clone(&*self.message_listed(key.queue, sequence)?);
        self.note_failure(&mut message, Why::of(LOCK_LOST));
        self.offer_again(MessageKey { queue: key.queue, sequence }, message)
    }

    fn note_failure(&self, message: &mut MessageRecord, why: Why<'_>) {
        let delivery_count = delivery_count_of(message);
        note_attempt(message, delivery_count, self.clocks(), why);
    }

    /// Writes down a dead letter that is back, ends its lock, and offers it unless it is set aside.
    fn offer_again(&mut self, key: MessageKey, message: MessageRecord) -> Read<()> {
        self.end_lock_of_dead_letter(key);
        let dead_letter = dead_letter_of(&message);
        if !dead_letter.deferred {
            self.offer_dead_letter(key, dead_letter.reason.clone())?;
        }
        self.write_message(key, Some(Arc::new(message)))
    }

    /// Notes that a dead letter can be handed out.
    pub(crate) fn offer_dead_letter(&mut self, key: MessageKey, reason: String) -> Read<()> {
        self.locks.offer_dead_letter(key.queue, (reason, key.sequence));
        let name = self.queue(key.queue)?.name.clone();
        self.effects.push(Effect::DeadLetters(name));
        Ok(())
    }

    /// Ends the lock of a dead letter, if somebody has it.
    pub(crate) fn end_lock_of_dead_letter(&mut self, key: MessageKey) {
        let held = self.locks.of(&lock_key(key.queue, key.sequence));
        let Some((token, _)) = held.filter(|(_, lock)| lock.kind == LockKind::DeadLetter) else { return };
        self.note_locks_freed();
        self.locks.end(token);
    }
}

/// How often a message was handed out, before and since it became a dead letter.
pub(crate) fn delivery_count_of(message: &MessageRecord) -> u32 {
    match &message.status {
        Status::DeadLettered(dead_letter) => message.delivery_count.saturating_add(dead_letter.deliveries),
        _ => message.delivery_count,
    }
}

fn dead_letter_of(message: &MessageRecord) -> &DeadLetter {
    let Status::DeadLettered(dead_letter) = &message.status else {
        unreachable!("only dead letters are listed")
    };
    dead_letter
}

fn change(message: &mut MessageRecord) -> &mut DeadLetter {
    let Status::DeadLettered(dead_letter) = &mut message.status else {
        unreachable!("only dead letters are handed out as such")
    };
    dead_letter
}
