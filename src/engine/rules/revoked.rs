//! What is taken back from a holder because one before it is back in the line, and what he may still say of it.

use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::fail::is_expired;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::settlements::digest_of;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::token::LockToken;

impl Step<'_> {
    /// Whether a holder gives back what was taken from him because he gave back one before it, and what he has not been handed since.
    pub(crate) fn gives_back_revoked(
        &self,
        name: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
    ) -> Ruling<bool, SettleRefusal> {
        let DeliveryRef { token, sequence, delivery_count } = held;
        if *settlement != Settlement::Release {
            return Ok(false);
        }
        let queue = self.queue_to_settle(name)?;
        let lock = self.locks.held_in(queue.id, token, self.now);
        if !lock.is_some_and(|lock| lock.revoked.contains(sequence)) {
            return Ok(false);
        }
        let message = self.message(queue.id, sequence)?;
        Ok(message.is_some_and(|message| {
            matches!(message.status, Status::Ready | Status::ByConsumer { .. })
                && message.delivery_count == delivery_count
        }))
    }

    /// Takes the count of its hand-out back: it was not started, as the one before it.
    pub(crate) fn give_back_revoked(
        &mut self,
        name: &QueueName,
        held: DeliveryRef,
    ) -> Ruling<SettleResult, SettleRefusal> {
        let mut workflow = self.held_workflow(name, held.token)?;
        let before = self.message_listed(workflow.key.queue, held.sequence)?;
        self.locks.forget_revoked(held.token, held.sequence);
        let mut message = MessageRecord::clone(&before);
        message.delivery_count -= 1;
        workflow.restate(self, held.sequence, Some(&before), &message)?;
        let (at, reply) = ((workflow.key.queue, self.now), SettleResult::default());
        workflow.close(self)?;
        let as_asked = (Settlement::Release.how(), digest_of(&Settlement::Release));
        self.settlements.note(at, held, as_asked, &reply);
        Ok(reply)
    }
}

impl OpenWorkflow {
    /// Takes back what a holder has ahead of a message that failed, or that he gave back: it is offered again after it.
    pub(crate) fn revoke_behind(
        &mut self,
        step: &mut Step<'_>,
        token: LockToken,
        rank: u64,
        is_given_back: bool,
    ) -> Read<()> {
        let out = step.locks.get(token).map(|lock| lock.out.clone()).unwrap_or_default();
        for sequence in out.iter() {
            let before = step.message_listed(self.key.queue, sequence)?;
            let in_line = !self.is_aside(&before);
            if !in_line || before.rank.is_none_or(|behind| behind < rank) {
                continue;
            }
            step.locks.take_back(token, sequence);
            if is_expired(&before, step.clocks()) {
                self.expire(step, sequence, &before)?;
                continue;
            }
            if is_given_back {
                step.locks.note_revoked(token, sequence);
            }
            let Status::Locked { fetched } = before.status else {
                unreachable!("what a holder has out is handed out")
            };
            let mut message = MessageRecord::clone(&before);
            message.status = Status::of_unstarted(fetched);
            self.restate(step, sequence, Some(&before), &message)?;
        }
        Ok(())
    }
}
