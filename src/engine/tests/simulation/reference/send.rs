//! What becomes of a message that is sent.

use crate::engine::rules::due::Due;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::naive::Message;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::naive::Suspect;
use crate::error::SendRefusal;
use crate::id::SequenceNumber;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::LatePolicy;
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
    NoTopic,
    TopicChanged,
    Other,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender<'a> {
    Anybody,
    /// Who drains a queue.
    Drain,
    /// Who completes these messages of the queue with it.
    Completing(&'a [u64]),
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
            SendRefusal::TopicNotFound(_) => Unsent::NoTopic,
            SendRefusal::TopicChanged(_) => Unsent::TopicChanged,
            _ => Unsent::Other,
        }
    }
}

fn is_stored(receipt: &Receipt) -> bool {
    matches!(receipt, Receipt::Accepted(_) | Receipt::DeadLettered(_))
}

impl Naive {
    /// What is answered to messages of one command. The next number is `next`. Nothing is changed.
    pub(crate) fn judge(
        &self,
        messages: &[NewMessage],
        next: u64,
        sender: Sender<'_>,
    ) -> Result<Vec<Receipt>, Unsent> {
        if let Sender::Completing(completed) = sender {
            // As if it were done already.
            let mut after = self.clone();
            completed.iter().for_each(|seq| after.complete(*seq));
            return after.judge_for(messages, next, true, completed.len() as u64);
        }
        self.judge_for(messages, next, sender == Sender::Drain, 0)
    }

    fn judge_for(
        &self,
        messages: &[NewMessage],
        mut next: u64,
        is_drain: bool,
        completed: u64,
    ) -> Result<Vec<Receipt>, Unsent> {
        let receipts = match messages {
            [message] => vec![self.judge_one(message, next, self)?],
            _ => {
                let mut tried = self.clone();
                let mut receipts = Vec::new();
                for message in messages {
                    let receipt = tried.judge_one(message, next, self)?;
                    tried.accept(message, receipt);
                    next += u64::from(is_stored(&receipt));
                    receipts.push(receipt);
                }
                receipts
            }
        };
        let (mut new, mut new_dead) = (0, 0);
        for (message, receipt) in messages.iter().zip(&receipts) {
            match receipt {
                Receipt::Accepted(_) => new += 1,
                Receipt::DeadLettered(_) => new_dead += 1,
                _ => continue,
            }
            let is_dead = matches!(receipt, Receipt::DeadLettered(_));
            let has_room = match is_dead {
                true => self.dead() + new_dead <= self.options.dead_letters_max,
                false => new <= completed || self.has_room(new, is_drain || self.is_waited_for(message)),
            };
            if !has_room {
                return Err(Unsent::QueueFull);
            }
        }
        Ok(receipts)
    }

    fn dead(&self) -> u64 {
        self.messages.iter().filter(|message| message.state == State::Dead).count() as u64
    }

    /// Whether the queue has as many dead letters as it may.
    pub(crate) fn has_all_dead(&self) -> bool {
        self.dead() >= self.options.dead_letters_max
    }

    /// Whether so many messages more may be stored; what drains the queue has an eighth more.
    pub(crate) fn has_room(&self, new: u64, is_drain: bool) -> bool {
        let max = self.options.messages_max;
        let more = if is_drain { max.div_ceil(8) } else { 0 };
        self.messages.len() as u64 - self.dead() + new <= max + more
    }

    /// Whether a stored message waits for the place of this one.
    fn is_waited_for(&self, message: &NewMessage) -> bool {
        let Some(key) = message.workflow_id.clone().map(WorkflowRef::Named) else { return false };
        match &message.place {
            Place::Position(position) => {
                self.line(&key).iter().any(|waiting| waiting.place() > position.get())
            }
            Place::After(_) => self.unreached(&key).iter().any(|waiting| waiting.after == message.message_id),
            Place::Arrival => false,
        }
    }

    /// What is answered to a message after others of its command; `before` is what was there before the first of them.
    fn judge_one(&self, message: &NewMessage, next: u64, before: &Naive) -> Result<Receipt, Unsent> {
        let number = SequenceNumber::new(next);
        if !self.fits(message) {
            return Err(Unsent::Mismatch);
        }
        let id = message.message_id.as_ref().filter(|_| self.options.duplicate_window.is_some());
        let known = id.and_then(|id| self.ids.get(id)).filter(|(_, until)| self.now < *until);
        if let Some((first, _)) = known {
            return Ok(Receipt::Duplicate(SequenceNumber::new(*first)));
        }
        if let (Some(id), Place::After(_)) = (&message.workflow_id, &message.place) {
            let key = WorkflowRef::Named(id.clone());
            let judged = self.judge_link(message, &key, number, before);
            return judged.unwrap_or_else(|| self.judge_room(message, &key, number));
        }
        let (Some(id), Place::Position(position)) = (&message.workflow_id, &message.place) else {
            return Ok(Receipt::Accepted(number));
        };
        let (key, position) = (WorkflowRef::Named(id.clone()), position.get());
        if let Some(pending) = self.live_at(&key, position) {
            let is_same = match (&message.message_id, &pending.id) {
                (Some(new), Some(old)) => new == old,
                (None, None) => message.body == pending.body,
                _ => false,
            };
            let by = SequenceNumber::new(pending.seq);
            return if is_same { Ok(Receipt::Duplicate(by)) } else { Err(Unsent::PlaceTaken(pending.seq)) };
        }
        let flow = self.flows.get(&key);
        if flow.is_some_and(|flow| flow.given_up.contains(&position)) {
            return Ok(Receipt::DeadLettered(number));
        }
        if flow.is_some_and(|flow| flow.completed.contains(&position)) {
            return match self.options.late {
                LatePolicy::Ignore => Ok(Receipt::AlreadySettled),
                LatePolicy::Refuse => Err(Unsent::AlreadySettled),
                LatePolicy::DeadLetter => Ok(Receipt::DeadLettered(number)),
            };
        }
        self.judge_room(message, &key, number)
    }

    /// A message that would have to wait early needs room.
    fn judge_room(
        &self,
        message: &NewMessage,
        key: &WorkflowRef,
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
            (Order::After, Place::Arrival, None) => true,
            (Order::After, Place::After(after), Some(_)) => {
                message.message_id.is_some() && *after != message.message_id
            }
            (Order::Position { .. } | Order::After, _, _) => false,
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
            Some(id) if self.options.order != Order::None => WorkflowRef::Named(id.clone()),
            _ => WorkflowRef::Single(SequenceNumber::new(number)),
        };
        let due = match message.kept_back {
            Some(KeptBack::Until(at)) if at > self.wall => Some(Due::wall(at)),
            Some(KeptBack::For(span)) if !span.is_zero() => Some(Due::engine(self.now + span)),
            _ => None,
        };
        let state = match (is_dead, due) {
            (true, _) => State::Dead,
            (false, Some(due)) => State::Scheduled(due),
            (false, None) => State::Ready,
        };
        let (position, after) = match &message.place {
            Place::Position(position) if self.positional(&key) => (Some(position.get()), None),
            Place::After(after) => (None, after.clone()),
            _ => (None, None),
        };
        let handed_at = if self.chained(&key) { self.now } else { self.wall };
        let expires = self.expiry(message, due);
        let (id, body) = (message.message_id.clone(), message.body.clone());
        let workflow_id = message.workflow_id.clone();
        self.messages.push(Message {
            seq: number,
            key: key.clone(),
            workflow_id,
            position,
            is_linked: self.chained(&key),
            after,
            id,
            body,
            state,
            count: 0,
            handed_at,
            expires,
            lives: message.time_to_live,
            suspect: Suspect::No,
            has_extra: false,
            is_stray: false,
        });
        if !is_dead {
            self.link(number);
        }
        self.close_unjudged(&key);
    }

    /// It was cancelled or purged, so its ID is free.
    pub(crate) fn forget_id(&mut self, message: &Message) {
        let id =
            message.id.as_ref().filter(|id| self.ids.get(*id).is_some_and(|(seq, _)| *seq == message.seq));
        if let Some(id) = id {
            self.ids.remove(id);
        }
    }

    fn expiry(&self, message: &NewMessage, due: Option<Due>) -> Option<Due> {
        let lives = [message.time_to_live, self.options.time_to_live].into_iter().flatten().min();
        lives.map(|lives| match due {
            Some(due) if due.is_of_wall() => Due::wall(due.at() + lives),
            Some(due) => Due::engine(due.at() + lives),
            None => Due::engine(self.now + lives),
        })
    }
}
