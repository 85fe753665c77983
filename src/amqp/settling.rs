//! How deliveries of a session are settled.

use std::collections::BTreeMap;

use crate::amqp::attach::Role;
use crate::amqp::error::condition;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::Event;
use crate::amqp::event::LinkId;
use crate::amqp::hub::Breach;
use crate::amqp::hub::Hub;
use crate::amqp::outcome::Outcome;
use crate::amqp::serial::ahead;
use crate::amqp::session::Session;
use crate::amqp::transfer::Disposition;

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
    pub(crate) fn settle(&mut self, hub: &mut Hub, id: LinkId, number: DeliveryNumber, outcome: Outcome) {
        let DeliveryNumber(number) = number;
        let Some(link) = self.link(id) else {
            return;
        };
        let (ours, has_queued) = (link.peer.opposite(), link.queued > 0);
        let handle = match ours {
            Role::Receiver => self.incoming.get(&number).copied(),
            Role::Sender => self.outgoing.get(&number).map(|delivery| delivery.handle),
        };
        if handle != Some(id.handle) {
            return;
        }
        match ours {
            Role::Receiver => drop(self.incoming.remove(&number)),
            Role::Sender => drop(self.outgoing.remove(&number)),
        }
        self.count_settled(hub, id.handle);
        let is_told_later = has_queued && self.settle_queued(number);
        if !is_told_later {
            hub.outbox.settle(self.channel, ours, number, outcome);
        }
    }

    fn count_settled(&mut self, hub: &mut Hub, handle: u32) {
        hub.unsettled -= 1;
        if let Some(link) = self.links.get_mut(&handle) {
            link.unsettled -= 1;
        }
    }

    /// Finds the deliveries that a peer's disposition is about. Only those that are unsettled are looked at, however
    /// long the range.
    pub(crate) fn disposition(&self, disposition: Disposition) -> Result<Endings, Breach> {
        let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
        if ahead(last, first).is_none() {
            return Err(Breach::session(
                condition::INVALID_FIELD,
                "a range of deliveries ends before it begins",
            ));
        }
        let numbers = match disposition.role {
            Role::Receiver => within(&self.outgoing, first, last),
            Role::Sender if disposition.settled => within(&self.incoming, first, last),
            Role::Sender => Vec::new(),
        };
        Ok(Endings { channel: self.channel, disposition, numbers: numbers.into_iter() })
    }

    /// Ends one delivery of a disposition.
    pub(crate) fn end_one(&mut self, hub: &mut Hub, number: u32, disposition: &Disposition) {
        match disposition.role {
            Role::Receiver => self.outgoing_ended(hub, number, disposition),
            Role::Sender => {
                let handle = self.incoming.remove(&number);
                self.ended(hub, handle, number, disposition);
            }
        }
    }

    /// The peer says how one of our deliveries has ended, or how it would have it end.
    fn outgoing_ended(&mut self, hub: &mut Hub, number: u32, disposition: &Disposition) {
        let Some(delivery) = self.outgoing.get_mut(&number) else {
            return;
        };
        let (handle, was_told) = (delivery.handle, delivery.is_told);
        if disposition.settled {
            self.outgoing.remove(&number);
            if was_told {
                return self.count_settled(hub, handle);
            }
            return self.ended(hub, Some(handle), number, disposition);
        }
        if disposition.state.is_some() && !was_told {
            delivery.is_told = true;
            self.tell_ended(hub, handle, number, disposition);
        }
    }

    fn ended(&mut self, hub: &mut Hub, handle: Option<u32>, number: u32, disposition: &Disposition) {
        if let Some(handle) = handle {
            self.count_settled(hub, handle);
            self.tell_ended(hub, handle, number, disposition);
        }
    }

    fn tell_ended(&self, hub: &mut Hub, handle: u32, number: u32, disposition: &Disposition) {
        if let Some(link) = self.links.get(&handle) {
            hub.events.push_back(Event::Settled {
                link: link.id,
                delivery: DeliveryNumber(number),
                outcome: disposition.state.clone(),
                settled: disposition.settled,
            });
        }
    }
}

/// The unsettled deliveries of a range, which may go round the end of the numbers.
fn within<T>(deliveries: &BTreeMap<u32, T>, first: u32, last: u32) -> Vec<u32> {
    if first == last {
        return vec![first];
    }
    if first < last {
        return deliveries.range(first..=last).map(|(number, _)| *number).collect();
    }
    let before_the_end = deliveries.range(first..);
    let after_it = deliveries.range(..=last);
    before_the_end.chain(after_it).map(|(number, _)| *number).collect()
}
