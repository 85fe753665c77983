//! After-order as the contract says it: who follows whom is a list, and the chain is walked from its beginning each time
//! somebody asks.

use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::reference::naive::Message;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::send::Unsent;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::LatePolicy;
use crate::queue::Order;

/// A message that named its predecessor, or that it is the first. It is known for longer than it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) after: Option<MessageId>,
    pub(crate) id: MessageId,
    pub(crate) seq: u64,
    pub(crate) ended: Option<Ended>,
}

/// How a place came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    GivenUp,
}

impl Naive {
    pub(crate) fn chained(&self, key: &WorkflowRef) -> bool {
        self.options.order == Order::After && matches!(key, WorkflowRef::Named(_))
    }

    fn links(&self, key: &WorkflowRef) -> &[Link] {
        self.flows.get(key).map_or(&[], |flow| &flow.links)
    }

    /// Who has followed a message.
    fn follower(&self, key: &WorkflowRef, of: Option<&MessageId>) -> Option<&Link> {
        self.links(key).iter().find(|link| link.after.as_ref() == of)
    }

    /// The chain: who names nobody, who names that one, and so on, wherever it ends; nobody is in it twice.
    pub(crate) fn chain(&self, key: &WorkflowRef) -> Vec<&Link> {
        let mut chain: Vec<&Link> = Vec::new();
        while let Some(next) = self.follower(key, chain.last().map(|last| &last.id)) {
            if chain.iter().any(|link| link.seq == next.seq) {
                break;
            }
            chain.push(next);
        }
        chain
    }

    /// Gives every message the place that the chain gives it. A dead letter may lose one, and wins none.
    pub(crate) fn number_chain(&mut self, key: &WorkflowRef) {
        if !self.chained(key) {
            return;
        }
        let chain: Vec<u64> = self.chain(key).into_iter().map(|link| link.seq).collect();
        for message in self.messages.iter_mut().filter(|message| message.key == *key) {
            let place = (1..).zip(&chain).find(|(_, seq)| **seq == message.seq).map(|(place, _)| place);
            if message.state != State::Dead || place.is_none() {
                message.position = place;
            }
        }
    }

    /// Messages that the chain has not reached, in the order in which they came.
    pub(crate) fn unreached(&self, key: &WorkflowRef) -> Vec<&Message> {
        let waits = |m: &&Message| m.key == *key && m.position.is_none() && m.state != State::Dead;
        let mut waiting: Vec<&Message> = self.messages.iter().filter(waits).collect();
        waiting.sort_by_key(|message| message.seq);
        waiting
    }

    /// Unreached messages that name none that waits as well.
    pub(crate) fn roots(&self, key: &WorkflowRef) -> Vec<&Message> {
        let waiting = self.unreached(key);
        let is_waiting = |id: &Option<MessageId>| id.is_some() && waiting.iter().any(|m| m.id == *id);
        waiting.iter().filter(|message| !is_waiting(&message.after)).copied().collect()
    }

    /// The first message whose predecessor is unknown, or was given up itself; what is scheduled waits for its instant first,
    /// and what follows it for that. If all name each other in circles, one of them.
    pub(crate) fn first_stray(&self, key: &WorkflowRef) -> Option<u64> {
        let roots = self.roots(key);
        if roots.is_empty() {
            return self.unreached(key).into_iter().min_by_key(|m| m.id.clone()).map(|m| m.seq);
        }
        roots.into_iter().find(|root| root.state == State::Ready).map(|root| root.seq)
    }

    /// The stray that is waited for: the first, once everything before it in the chain is settled.
    pub(crate) fn awaited_stray(&self, key: &WorkflowRef) -> Option<u64> {
        let is_calm = self.head(key).is_none() && self.early(key) > 0;
        if is_calm { self.first_stray(key) } else { None }
    }

    /// The place of a message is settled.
    pub(crate) fn end_link(&mut self, message: &Message, ended: Ended) {
        let links = &mut self.flow(&message.key).links;
        if let Some(link) = links.iter_mut().find(|link| link.seq == message.seq) {
            link.ended = Some(ended);
        }
    }

    /// The place of a message is free again.
    pub(crate) fn cut_link(&mut self, message: &Message) {
        self.flow(&message.key).links.retain(|link| link.seq != message.seq);
        self.number_chain(&message.key);
    }

    /// A message that was accepted, or put back, stands in its place.
    pub(crate) fn link(&mut self, seq: u64) {
        let message = self.message(seq).expect("it is stored").clone();
        let Message { key, after, id: Some(id), .. } = message else { return };
        if !self.chained(&key) {
            return;
        }
        let links = &mut self.flow(&key).links;
        links.retain(|link| link.seq != seq);
        links.push(Link { after, id, seq, ended: None });
        self.number_chain(&key);
    }

    /// What is answered to a message that names its predecessor, if it is not simply stored.
    pub(crate) fn judge_link(
        &self,
        message: &NewMessage,
        key: &WorkflowRef,
        number: SequenceNumber,
        before: &Naive,
    ) -> Option<Result<Receipt, Unsent>> {
        let (Place::After(after), Some(id)) = (&message.place, &message.message_id) else { return None };
        if let Some(link) = self.follower(key, after.as_ref()) {
            let by = SequenceNumber::new(link.seq);
            return Some(match link.ended {
                _ if link.id != *id => Err(Unsent::PlaceTaken(link.seq)),
                None => Ok(Receipt::Duplicate(by)),
                Some(Ended::GivenUp) => Ok(Receipt::DeadLettered(number)),
                Some(Ended::Completed) => match self.options.late {
                    LatePolicy::Ignore => Ok(Receipt::AlreadySettled),
                    LatePolicy::Refuse => Err(Unsent::AlreadySettled),
                    LatePolicy::DeadLetter => Ok(Receipt::DeadLettered(number)),
                },
            });
        }
        // Nobody has followed its predecessor, but it may be known as the follower of another one.
        let is_same = |m: &&Message| m.key == *key && m.id.as_ref() == Some(id) && m.state != State::Dead;
        if let Some(other) = self.messages.iter().find(is_same) {
            return Some(Err(Unsent::PlaceTaken(other.seq)));
        }
        // What the command itself brings into the chain is no news to who sends it.
        let is_passed = before.chain(key).iter().any(|link| link.id == *id);
        is_passed.then_some(Ok(Receipt::DeadLettered(number)))
    }

    /// Whether a dead letter can return to its place in the chain: while its workflow is held; one that was given up as a
    /// stray, as soon as something is known of its predecessor.
    pub(crate) fn is_link_ahead(&self, message: &Message) -> bool {
        let key = &message.key;
        let Some(flow) = self.flows.get(key) else { return false };
        if !flow.links.iter().any(|link| link.seq == message.seq) {
            return false;
        }
        let has_id = |id: &Option<MessageId>| self.unreached(key).iter().any(|waiting| waiting.id == *id);
        let chain = self.chain(key);
        let place = (1..).zip(&chain).find(|(_, link)| link.seq == message.seq).map(|(place, _)| place);
        let is_known = place.is_some() || message.after.is_none() || has_id(&message.after);
        if flow.held.is_empty() && !(message.is_stray && is_known) {
            return false;
        }
        match place {
            Some(place) => place > flow.done && !self.has_later_out(key, place),
            None => {
                let is_chained = chain.iter().any(|link| Some(&link.id) == message.id.as_ref());
                !is_chained && !has_id(&message.id)
            }
        }
    }
}
