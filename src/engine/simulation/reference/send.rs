//! What becomes of a message that is sent.

use crate::clock::Timestamp;
use crate::engine::rules::command::Receipt;
use crate::engine::rules::record::Stream;
use crate::engine::simulation::reference::naive::Message;
use crate::engine::simulation::reference::naive::Naive;
use crate::engine::simulation::reference::naive::State;
use crate::error::SendRefusal;
use crate::id::SequenceNumber;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::Late;
use crate::queue::Order;

/// Why a send is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    NoQueue,
    Mismatch,
    PlaceTaken(u64),
    AlreadySettled,
    WorkflowFull,
    QueueFull,
    KeyReused,
    Other,
}

impl Unsent {
    /// What a refusal says, without its words.
    pub(crate) fn of(refusal: &SendRefusal) -> Unsent {
        match refusal {
            SendRefusal::QueueNotFound(_) => Unsent::NoQueue,
            SendRefusal::PlaceMismatch { .. } => Unsent::Mismatch,
            SendRefusal::PlaceTaken { by, .. } => Unsent::PlaceTaken(by.get()),
            SendRefusal::AlreadySettled { .. } => Unsent::AlreadySettled,
            SendRefusal::WorkflowFull { .. } => Unsent::WorkflowFull,
            SendRefusal::QueueFull { .. } => Unsent::QueueFull,
            SendRefusal::KeyReused(_) => Unsent::KeyReused,
            _ => Unsent::Other,
        }
    }
}

fn is_stored(receipt: &Receipt) -> bool {
    matches!(receipt, Receipt::Accepted(_) | Receipt::DeadLettered(_))
}

impl Naive {
    /// What is answered to messages of one command, which ends `ended` messages of this queue. The next number is
    /// `next`. Nothing is changed.
    pub(crate) fn judge(
        &self,
        messages: &[NewMessage],
        mut next: u64,
        ended: usize,
    ) -> Result<Vec<Receipt>, Unsent> {
        let receipts = match messages {
            [message] => vec![self.judge_one(message, next)?],
            _ => {
                let mut tried = self.clone();
                let mut receipts = Vec::new();
                for message in messages {
                    let receipt = tried.judge_one(message, next)?;
                    tried.accept(message, receipt);
                    next += u64::from(is_stored(&receipt));
                    receipts.push(receipt);
                }
                receipts
            }
        };
        let (stored, new) =
            (self.messages.len(), receipts.iter().filter(|receipt| is_stored(receipt)).count());
        let is_full = (stored + new).saturating_sub(ended) as u64 > self.options.messages_max;
        if new > ended && is_full { Err(Unsent::QueueFull) } else { Ok(receipts) }
    }

    fn judge_one(&self, message: &NewMessage, next: u64) -> Result<Receipt, Unsent> {
        let number = SequenceNumber::new(next);
        if !self.fits(message) {
            return Err(Unsent::Mismatch);
        }
        let id = message.message_id.as_ref().filter(|_| self.options.duplicate_window.is_some());
        let known = id.and_then(|id| self.ids.get(id)).filter(|(_, until)| self.now < *until);
        if let Some((first, _)) = known {
            return Ok(Receipt::Duplicate(SequenceNumber::new(*first)));
        }
        let (Some(id), Place::Position(position)) = (&message.workflow_id, &message.place) else {
            return Ok(Receipt::Accepted(number));
        };
        let (key, position) = (Stream::Named(id.clone()), position.get());
        if let Some(pending) = self.live_at(&key, position) {
            let is_same = match (&message.message_id, &pending.id) {
                (Some(new), Some(old)) => new == old,
                (None, None) => message.body == pending.body,
                _ => false,
            };
            let by = SequenceNumber::new(pending.seq);
            return if is_same { Ok(Receipt::Duplicate(by)) } else { Err(Unsent::PlaceTaken(pending.seq)) };
        }
        let flow = self.flows.get(&key).cloned().unwrap_or_default();
        if flow.given_up.contains(&position) {
            return Ok(Receipt::DeadLettered(number));
        }
        if flow.completed.contains(&position) {
            return match self.options.late {
                Late::Ignore => Ok(Receipt::AlreadySettled),
                Late::Refuse => Err(Unsent::AlreadySettled),
                Late::DeadLetter => Ok(Receipt::DeadLettered(number)),
            };
        }
        self.judge_room(message, &key, number)
    }

    /// A message that would have to wait early needs room.
    fn judge_room(
        &self,
        message: &NewMessage,
        key: &Stream,
        number: SequenceNumber,
    ) -> Result<Receipt, Unsent> {
        if self.early(key) < self.options.early_max {
            return Ok(Receipt::Accepted(number));
        }
        let mut tried = self.clone();
        tried.accept(message, Receipt::Accepted(number));
        let is_early = tried.message(number.get()).is_some_and(|message| tried.is_early(message));
        let is_full = is_early && tried.early(key) > self.options.early_max;
        if is_full { Err(Unsent::WorkflowFull) } else { Ok(Receipt::Accepted(number)) }
    }

    fn fits(&self, message: &NewMessage) -> bool {
        match (self.options.order, &message.place, &message.workflow_id) {
            (Order::Position { .. }, Place::Arrival, None) => true,
            (Order::Position { first }, Place::Position(position), Some(_)) => *position >= first,
            (Order::Position { .. }, _, _) => false,
            (_, place, _) => *place == Place::Arrival,
        }
    }

    /// Stores a message that was answered so.
    pub(crate) fn accept(&mut self, message: &NewMessage, receipt: Receipt) {
        let (number, is_dead) = match receipt {
            Receipt::Accepted(number) => (number.get(), false),
            Receipt::DeadLettered(number) => (number.get(), true),
            _ => return,
        };
        if let (Some(id), Some(window)) = (&message.message_id, self.options.duplicate_window) {
            self.ids.insert(id.clone(), (number, self.now + window));
        }
        let key = match &message.workflow_id {
            Some(id) if self.options.order != Order::None => Stream::Named(id.clone()),
            _ => Stream::Single(SequenceNumber::new(number)),
        };
        let due = message.schedule_at.filter(|due| *due > self.now);
        let state = match (is_dead, due) {
            (true, _) => State::Dead,
            (false, Some(due)) => State::Scheduled(due),
            (false, None) => State::Ready,
        };
        let position = match message.place {
            Place::Position(position) if self.positional(&key) => Some(position.get()),
            _ => None,
        };
        let expires = self.expiry(message, due);
        let (id, body) = (message.message_id.clone(), message.body.clone());
        let workflow_id = message.workflow_id.clone();
        self.messages.push(Message {
            seq: number,
            key: key.clone(),
            workflow_id,
            position,
            id,
            body,
            state,
            count: 0,
            handed_at: self.now,
            expires,
        });
        self.close_unjudged(&key);
    }

    fn expiry(&self, message: &NewMessage, due: Option<Timestamp>) -> Option<Timestamp> {
        let lives = [message.time_to_live, self.options.time_to_live].into_iter().flatten().min();
        lives.map(|lives| due.unwrap_or(self.now) + lives)
    }
}
