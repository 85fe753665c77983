//! Hiding: a message is handed out without a lock. It is not offered until an instant, and whoever holds the last claim
//! on it ends it or hides it anew, even after that instant, as long as nobody else was handed it.
//!
//! All of it is in the message's record, so that a restart changes nothing: the claim is the count and the instant of
//! the last hand-out, and a hidden message is one that comes back by itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::due::Due;
use crate::engine::rules::fail::is_expired;
use crate::engine::rules::line::LinePlace;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;

impl Step<'_> {
    /// Hands out the heads of up to `max` ready workflows, and hides each for a while.
    pub(crate) fn receive_hidden(
        &mut self,
        name: &QueueName,
        max: usize,
        lasts: Duration,
    ) -> Ruling<Vec<UnlockedMessage>, ReceiveRefusal> {
        let queue = self.queue_to_receive(name)?;
        let mut shown = Vec::new();
        let (mut bytes, mut expired_max) = (0, limits::EXPIRED_IN_A_ROW_MAX);
        while self.receives_more(shown.len(), bytes, max) {
            let ready = self.next_ready(&queue, &mut expired_max)?;
            let Some((mut workflow, (_, sequence, before))) = ready else {
                break;
            };
            if self.allowed(&queue, None) == 0 {
                break;
            }
            self.count_against_rate(&queue);
            let content = self.records.content_listed(workflow.message_key(sequence))?;
            let mut record = claimed_anew(&before, self.now);
            record.count_hand_out();
            // At least a moment, or the loop would meet it again.
            let lasts = lasts.max(limits::HIDDEN_MIN);
            let message = workflow.hide(self, sequence, &before, record, lasts)?;
            bytes += before.bytes;
            shown.push(UnlockedMessage { sequence, record: message, content });
            workflow.close(self)?;
        }
        Ok(shown)
    }

    /// Hides a claimed message anew, from now on, with a new claim and perhaps another body. No time at all offers it.
    pub(crate) fn hide_again(
        &mut self,
        name: &QueueName,
        claim: Claim,
        lasts: Duration,
        body: Option<Bytes>,
    ) -> Ruling<UnlockedMessage, SettleRefusal> {
        let (mut workflow, before) = self.claimed(name, claim)?;
        let sequence = claim.sequence_number;
        let bytes_max = workflow.queue.options.body_bytes_max;
        if let Some(bytes) = body.as_ref().map(Bytes::len).filter(|bytes| *bytes > bytes_max) {
            return refuse(SettleRefusal::Send(SendRefusal::BodyTooLarge { index: 0, bytes, bytes_max }));
        }
        let mut content = self.records.content_listed(workflow.message_key(sequence))?;
        let mut record = claimed_anew(&before, self.now);
        if let Some(body) = body {
            record.bytes = record.bytes - content.body.len() as u64 + body.len() as u64;
            content.body = body;
            self.write_content(workflow.message_key(sequence), Some(content.clone()))?;
        }
        let record = workflow.hide(self, sequence, &before, record, lasts)?;
        workflow.close(self)?;
        Ok(UnlockedMessage { sequence, record, content })
    }

    /// Ends a claimed message.
    pub(crate) fn end_hidden(&mut self, name: &QueueName, claim: Claim) -> Ruling<(), SettleRefusal> {
        let (mut workflow, message) = self.claimed(name, claim)?;
        // What nobody has seen was not done.
        let how =
            if message.delivery_count == 0 { SettlementKind::Cancelled } else { SettlementKind::Completed };
        workflow.end(self, claim.sequence_number, &message, how)?;
        workflow.close(self)?;
        Ok(())
    }

    /// The message of a claim, if that is still the last.
    fn claimed(
        &self,
        name: &QueueName,
        claim: Claim,
    ) -> Ruling<(Box<OpenWorkflow>, Arc<MessageRecord>), SettleRefusal> {
        let queue = self.queue_to_settle(name)?;
        let message = self.message(queue.id, claim.sequence_number)?;
        let there = |message: &Arc<MessageRecord>| {
            !matches!(message.status, Status::DeadLettered(_)) && !is_expired(message, self.clocks())
        };
        let Some(message) = message.filter(there) else {
            return refuse(SettleRefusal::MessageNotFound(claim.sequence_number));
        };
        let is_free = matches!(
            message.status,
            Status::Ready | Status::Scheduled { .. } | Status::ByConsumer { due: Some(_), .. }
        );
        if !is_free || message.delivery_count != claim.delivery_count || message.handed_out_at != claim.at {
            return refuse(SettleRefusal::LockLost);
        }
        Ok((OpenWorkflow::open(self, &queue, message.stream.clone())?, message))
    }
}

impl OpenWorkflow {
    /// Keeps a message back for a while, at its place in the line.
    fn hide(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: &MessageRecord,
        mut record: MessageRecord,
        lasts: Duration,
    ) -> Read<Arc<MessageRecord>> {
        if let (true, Some(rank)) = (self.is_aside(before), before.rank) {
            self.leave(step, sequence, before)?;
            self.join(step, sequence, LinePlace::Line(rank))?;
        }
        record.status = match lasts.is_zero() {
            true => Status::Ready,
            false => {
                let due = Due::engine(step.now + lasts.min(limits::DURATION_MAX));
                Status::ByConsumer { due: Some(due), aside: false }
            }
        };
        let record = Arc::new(record);
        self.restate_as(step, sequence, Some(before), record.clone())?;
        Ok(record)
    }
}

/// The message with a claim that none before it was equal to.
fn claimed_anew(before: &MessageRecord, now: Timestamp) -> MessageRecord {
    let mut record = MessageRecord::clone(before);
    record.handed_out_at = now.max(before.handed_out_at + Duration::from_millis(1));
    record
}
