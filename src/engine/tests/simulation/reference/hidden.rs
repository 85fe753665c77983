//! What was hidden and claimed without a lock, compared with what could be.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::due::Due;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::reference::answer::same;
use crate::engine::tests::simulation::reference::holder::Refused;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;

impl Reference {
    pub(crate) fn record_hidden(&mut self, command: &Command, reply: &Reply) -> Finding {
        match (command, reply) {
            (
                Command::ReceiveHidden(verbs::ReceiveHidden { queue, max, lasts }),
                Reply::ReceiveHidden(answer),
            ) => {
                let is_there = self.queues.contains_key(queue) || self.chained.contains_key(queue);
                same(&answer.is_ok(), &is_there)?;
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                naive.record_hidden(*max, *lasts, answer.as_deref().unwrap_or_default())
            }
            (
                Command::HideAgain(verbs::HideAgain { queue, claim, lasts, body }),
                Reply::HideAgain(answer),
            ) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                naive.record_hidden_again(*claim, *lasts, body.as_ref(), answer.as_deref())
            }
            (Command::EndHidden(verbs::EndHidden { queue, claim }), Reply::Settle(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                naive.record_hidden_end(*claim, answer)
            }
            _ => Ok(()),
        }
    }
}

impl Reference {
    /// A dead letter is handed out: what was claimed of it before is void, whatever becomes of it.
    pub(crate) fn note_dead_letter(&mut self, sequence: SequenceNumber) {
        let now = self.now;
        let messages = self.queues.values_mut().flat_map(|naive| naive.messages.iter_mut());
        messages.filter(|message| message.seq == sequence.get()).for_each(|message| message.handed_at = now);
    }

    /// A dead letter is completed.
    pub(crate) fn complete_dead_letter(&mut self, queue: &QueueName, sequence: SequenceNumber) {
        let Some(naive) = self.queues.get_mut(queue) else { return };
        if naive.at(sequence.get()).is_some() {
            let message = naive.remove(sequence.get());
            naive.close(&message.key);
        }
    }
}

impl Naive {
    fn record_hidden(&mut self, max: usize, lasts: Duration, all: &[UnlockedMessage]) -> Finding {
        for shown in all {
            let seq = shown.sequence.get();
            let offering = self.offering();
            let key = offering.iter().find(|key| self.run(key).first() == Some(&seq)).cloned();
            let Some(key) = key else {
                return Err(format!("R {seq} was hidden, {offering:?} offer something"));
            };
            let index = self.at(seq).expect("it is offered");
            self.messages[index].count_delivery();
            self.put_off(index, lasts.max(limits::HIDDEN_MIN));
            self.check_shown(index, shown)?;
            self.close(&key);
        }
        let left = self.offering();
        expect(all.len() == max || left.is_empty(), || {
            format!("R {left:?} offer something, nothing was hidden")
        })
    }

    fn record_hidden_again(
        &mut self,
        claim: Claim,
        lasts: Duration,
        body: Option<&Bytes>,
        answer: Result<&UnlockedMessage, &SettleRefusal>,
    ) -> Finding {
        let index = self.claimed(claim);
        same(&answer.map(drop).map_err(Refused::of), &index.map(drop))?;
        let (Ok(index), Ok(shown)) = (index, answer) else { return Ok(()) };
        if let Some(body) = body {
            self.messages[index].body = body.clone();
        }
        self.put_off(index, lasts);
        self.check_shown(index, shown)?;
        let key = self.messages[index].key.clone();
        self.close(&key);
        Ok(())
    }

    fn record_hidden_end(&mut self, claim: Claim, answer: &Result<SettleResult, SettleRefusal>) -> Finding {
        let index = self.claimed(claim);
        same(&answer.as_ref().map(drop).map_err(Refused::of), &index.map(drop))?;
        let Ok(index) = index else { return Ok(()) };
        let message = self.messages[index].clone();
        if message.count == 0 {
            self.remove(message.seq);
            self.forget_id(&message);
            self.give_up(&message);
        } else {
            self.complete(message.seq);
        }
        self.close(&message.key);
        Ok(())
    }

    /// The message of a claim, if nobody was handed it since.
    fn claimed(&self, claim: Claim) -> Result<usize, Refused> {
        let index = self.at(claim.sequence_number.get()).ok_or(Refused::NotFound)?;
        let message = &self.messages[index];
        if message.state == State::Dead || self.is_expired(message.seq) {
            return Err(Refused::NotFound);
        }
        let is_free = matches!(
            message.state,
            State::Ready | State::Scheduled(_) | State::ByConsumer { due: Some(_), .. }
        );
        let is_last = message.count == claim.delivery_count && message.handed_at == claim.at;
        if is_free && is_last { Ok(index) } else { Err(Refused::LockLost) }
    }

    fn put_off(&mut self, index: usize, lasts: Duration) {
        let now = self.now;
        let message = &mut self.messages[index];
        // No two claims are equal, even at one instant.
        message.handed_at = now.max(message.handed_at + Duration::from_millis(1));
        message.state = match lasts.is_zero() {
            true => State::Ready,
            false => State::ByConsumer { due: Some(Due::engine(now + lasts)), aside: false },
        };
    }

    fn check_shown(&self, index: usize, shown: &UnlockedMessage) -> Finding {
        let message = &self.messages[index];
        let found: (u32, Timestamp, &Bytes) =
            (shown.record.delivery_count, shown.record.handed_out_at, &shown.content.body);
        same(&found, &(message.count, message.handed_at, &message.body))
    }
}
