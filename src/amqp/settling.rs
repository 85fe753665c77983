//! How deliveries of a session are settled.

use std::collections::BTreeMap;

use crate::amqp::attach::Role;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkId;
use crate::amqp::hub::Breach;
use crate::amqp::hub::Hub;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::serial::ahead;
use crate::amqp::session::Session;
use crate::amqp::transfer::Disposition;
use crate::limits::AMQP_RANGE_WITH_MORE_MAX;

/// The rest of a disposition: each of its deliveries gets a copy of the state, which may be long, so they are told
/// one by one as the application asks for events.
#[derive(Debug)]
pub(crate) struct Endings {
    pub(crate) channel: u16,
    pub(crate) disposition: Disposition,
    pub(crate) numbers: std::vec::IntoIter<u32>,
}

impl Session {
    /// Settles a delivery of either direction, once.
    pub(crate) fn settle(
        &mut self,
        hub: &mut Hub,
        id: LinkId,
        number: DeliveryNumber,
        outcome: DeliveryOutcome,
    ) {
        let DeliveryNumber(number) = number;
        let Some(link) = self.link(id) else {
            return;
        };
        let (ours, has_queued) = (link.peer.opposite(), link.queued > 0);
        let deliveries = match ours {
            Role::Receiver => &mut self.incoming,
            Role::Sender if self.described.contains_key(&number) => &mut self.described,
            Role::Sender => &mut self.outgoing,
        };
        if deliveries.get(&number) != Some(&id.handle) {
            return;
        }
        deliveries.remove(&number);
        self.count_settled(hub, ours, id.handle);
        let is_reported_later = has_queued && self.settle_queued(number);
        if !is_reported_later {
            hub.outbox.settle(self.channel, ours, number, outcome);
        }
    }

    /// Counts a delivery less over a link whose end here this is.
    fn count_settled(&mut self, hub: &mut Hub, ours: Role, handle: u32) {
        match ours {
            Role::Receiver => hub.unsettled_in -= 1,
            Role::Sender => hub.unsettled_out -= 1,
        }
        if let Some(link) = self.links.get_mut(&handle) {
            link.unsettled -= 1;
        }
    }

    /// Finds the deliveries that a peer's disposition is about. Only those that are unsettled are looked at, however
    /// long the range.
    pub(crate) fn disposition(&self, hub: &mut Hub, disposition: Disposition) -> Result<Endings, Breach> {
        let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
        if ahead(last, first).is_none() {
            return Err(Breach::session(
                condition::INVALID_FIELD,
                "a range of deliveries ends before it begins",
            ));
        }
        let mut numbers = Vec::new();
        match disposition.role {
            Role::Receiver if disposition.transaction.is_some() => {
                within(&self.outgoing, first, last, &mut numbers)
            }
            Role::Receiver if disposition.settled => {
                within(&self.outgoing, first, last, &mut numbers);
                within(&self.described, first, last, &mut numbers);
            }
            Role::Receiver if disposition.state.is_some() => {
                within(&self.outgoing, first, last, &mut numbers)
            }
            Role::Sender if disposition.settled => within(&self.incoming, first, last, &mut numbers),
            _ => {}
        }
        let carries_more = disposition.state.as_ref().is_some_and(DeliveryOutcome::carries_more);
        if carries_more && numbers.len() > AMQP_RANGE_WITH_MORE_MAX {
            let what = "an outcome with annotations or an error is for fewer deliveries at once";
            return Err(Breach::session(condition::RESOURCE_LIMIT_EXCEEDED, what));
        }
        // Between the ends of a range there may be numbers of what was settled when it was sent.
        let is_known = |number| self.outgoing.contains_key(number) || self.described.contains_key(number);
        if ![first, last].iter().all(is_known) {
            hub.miss_part(disposition.settled_transaction());
        }
        Ok(Endings { channel: self.channel, disposition, numbers: numbers.into_iter() })
    }

    /// Ends one delivery of a disposition, and tells of it unless that was done when the peer said how it is to end.
    pub(crate) fn end_one(&mut self, hub: &mut Hub, number: u32, disposition: &Disposition) {
        let deliveries = match disposition.role {
            Role::Receiver => &mut self.outgoing,
            Role::Sender => &mut self.incoming,
        };
        let Some(handle) = deliveries.remove(&number) else {
            if disposition.role.is_receiver() && disposition.settled {
                self.end_reported(hub, number);
            }
            return;
        };
        if disposition.settled {
            self.count_settled(hub, disposition.role.opposite(), handle);
        } else {
            self.described.insert(number, handle);
        }
        self.report_ended(hub, handle, number, disposition);
    }

    fn end_reported(&mut self, hub: &mut Hub, number: u32) {
        if let Some(handle) = self.described.remove(&number) {
            self.count_settled(hub, Role::Sender, handle);
        }
    }

    fn report_ended(&self, hub: &mut Hub, handle: u32, number: u32, disposition: &Disposition) {
        if let Some(link) = self.links.get(&handle) {
            hub.events.push_back(AmqpEvent::Settled {
                link: link.id,
                delivery: DeliveryNumber(number),
                outcome: disposition.state.clone(),
                settled: disposition.settled,
                transaction: disposition.transaction.clone(),
            });
        }
    }
}

/// Adds the deliveries of a range, which may go round the end of the numbers.
fn within(deliveries: &BTreeMap<u32, u32>, first: u32, last: u32, numbers: &mut Vec<u32>) {
    if first <= last {
        numbers.extend(deliveries.range(first..=last).map(|(number, _)| *number));
    } else {
        numbers.extend(deliveries.range(first..).map(|(number, _)| *number));
        numbers.extend(deliveries.range(..=last).map(|(number, _)| *number));
    }
}
