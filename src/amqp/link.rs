//! One link of a session.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::attach::Role;
use crate::amqp::event::LinkId;
use crate::amqp::serial::ahead;
use crate::amqp::text::Text;
use crate::amqp::transfer::Flow;

/// Where a link is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// The peer has asked for it, and waits for an answer.
    Attaching,
    /// Both have attached it.
    Attached,
    /// We have detached it; the peer may not know yet, so what it sends is ignored.
    Detaching,
    /// The peer has left it, and waits for our answer.
    Left {
        /// Whether it has closed the link, and not only detached it.
        closed: bool,
    },
}

impl LinkState {
    /// Whether it is as good as over: we, or the peer, have ended it.
    pub(crate) fn is_ending(self) -> bool {
        matches!(self, LinkState::Detaching | LinkState::Left { .. })
    }
}

/// A link, and what is known of its credit.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) name: Text,
    /// Which end the peer is.
    pub(crate) peer: Role,
    pub(crate) state: LinkState,
    /// How many deliveries began, counted from where the sender says.
    pub(crate) delivery_count: u32,
    /// How many more may begin.
    pub(crate) credit: u32,
    /// Whether a receiving peer waits for its credit to be used up.
    pub(crate) drain: bool,
    /// How many deliveries had begun, or were given up, when credit was used up for a receiving peer that drained.
    pub(crate) drained_at: Option<u32>,
    /// Whether a receiving peer's credit has not been told, because the link is not answered.
    pub(crate) is_credit_unsent: bool,
    /// The largest message of the link in bytes.
    pub(crate) message_bytes_max: u64,
    /// A message of a sending peer that has not come to its end.
    pub(crate) partial: Option<Partial>,
    /// How many of its deliveries are unsettled.
    pub(crate) unsettled: usize,
    /// How much of it waits for the peer's window: deliveries, and that its credit was used up.
    pub(crate) queued: usize,
    /// Whether the last of that says that its credit was used up.
    pub(crate) is_drain_last: bool,
    /// Deliveries to a peer that has left, of which not everything was written.
    pub(crate) unsent: Vec<u32>,
}

/// A message that has begun to come.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) delivery: u32,
    pub(crate) tag: Bytes,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    pub(crate) bytes: BytesMut,
    /// Whether it is larger than the link takes; then none of its bytes are kept.
    pub(crate) is_too_large: bool,
    /// The transaction to which it belongs.
    pub(crate) transaction: Option<Bytes>,
}

impl Partial {
    /// The transaction to which it belongs, if its sender waits for no answer.
    pub(crate) fn settled_transaction(&self) -> Option<&Bytes> {
        self.transaction.as_ref().filter(|_| self.settled)
    }
}

impl Link {
    /// Takes what a receiving peer says of its credit. Says whether anything has changed.
    pub(crate) fn take_credit(&mut self, flow: &Flow) -> bool {
        let before = (self.credit, self.drain);
        if let Some(credit) = flow.link_credit {
            // A peer that has not heard our attach counts from where we begin.
            let received = flow.delivery_count.unwrap_or(0);
            let under_way = ahead(self.delivery_count, received).unwrap_or(0);
            self.credit = credit.saturating_sub(under_way);
        }
        self.drain = flow.drain;
        flow.drain || before != (self.credit, self.drain)
    }

    /// Whether a receiving peer gives credit without having heard that what it gave before is used up: it drained, and did not
    /// wait for the answer. Its credit is none by now. It has to say it again, or it would wait for ever.
    pub(crate) fn has_missed_drained(&self, flow: &Flow) -> bool {
        let has_missed =
            |at: u32| ahead(at, flow.delivery_count.unwrap_or(0)).is_some_and(|missed| missed > 0);
        let gives = !flow.drain && flow.link_credit.is_some_and(|credit| credit > 0);
        gives && self.credit == 0 && self.queued == 0 && self.drained_at.is_some_and(has_missed)
    }

    /// Takes what a sending peer says: it may give up credit by counting deliveries that it does not send. Says whether
    /// it does; it gets the credit again, because an application gives more only for messages it has seen.
    pub(crate) fn take_count(&mut self, flow: &Flow) -> bool {
        let count = flow.delivery_count.unwrap_or(self.delivery_count);
        let has_skipped = ahead(count, self.delivery_count).is_some_and(|skipped| skipped > 0);
        let is_between = self.partial.is_none() && self.state == LinkState::Attached;
        if has_skipped && is_between {
            self.delivery_count = count;
        }
        has_skipped && is_between
    }

    /// Gives up the credit that is left, as a receiving peer that drains wants it.
    pub(crate) fn use_up_credit(&mut self) {
        self.delivery_count = self.delivery_count.wrapping_add(self.credit);
        self.credit = 0;
        self.drain = false;
        self.drained_at = Some(self.delivery_count);
    }

    /// Counts one delivery that begins.
    pub(crate) fn count_delivery(&mut self) {
        self.delivery_count = self.delivery_count.wrapping_add(1);
        self.credit -= 1;
    }
}
