//! Deliveries that go.

use bytes::Buf;

use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkId;
use crate::amqp::event::OutgoingMessage;
use crate::amqp::event::Unsent;
use crate::amqp::hub::Hub;
use crate::amqp::link::Link;
use crate::amqp::link::LinkState;
use crate::amqp::pending_transfer::OutgoingDelivery;
use crate::amqp::pending_transfer::PendingTransfer;
use crate::amqp::pending_transfer::TRANSFER_BYTES_MAX;
use crate::amqp::session::Session;
use crate::amqp::transfer::Transfer;
use crate::limits::AMQP_TAG_BYTES_MAX;

impl Session {
    /// Writes a delivery, or as much of it as the peer's window allows; the rest waits.
    pub(crate) fn send(
        &mut self,
        hub: &mut Hub,
        id: LinkId,
        message: OutgoingMessage,
    ) -> Result<DeliveryNumber, Unsent> {
        let number = self.next_delivery;
        let is_number_free = !self.outgoing.contains_key(&number) && !self.described.contains_key(&number);
        let link = self.link_mut(id).ok_or(Unsent::NoLink)?;
        judge(link, &message)?;
        let may_unsettle = message.settled || hub.unsettled_out_left() > 0;
        if !may_unsettle || !is_number_free {
            return Err(Unsent::TooManyUnsettled);
        }
        if !hub.has_room() {
            return Err(Unsent::NoRoom);
        }
        link.count_delivery();
        if !message.settled {
            link.unsettled += 1;
            hub.unsettled_out += 1;
            self.outgoing.insert(number, id.handle);
        }
        self.next_delivery = number.wrapping_add(1);
        let OutgoingMessage { tag, payload, format, settled } = message;
        let mut delivery =
            OutgoingDelivery { handle: id.handle, number, tag, format, settled, has_begun: false, payload };
        if !self.queue.is_empty() || !self.write(hub, &mut delivery) {
            self.enqueue(hub, PendingTransfer::Delivery(delivery));
        }
        Ok(DeliveryNumber(number))
    }

    fn enqueue(&mut self, hub: &mut Hub, queued: PendingTransfer) {
        hub.queued_bytes += queued.cost();
        if let Some(link) = self.links.get_mut(&queued.handle()) {
            link.queued += 1;
            link.is_drain_last = matches!(queued, PendingTransfer::Drained { .. });
        }
        self.queue.push_back(queued);
    }

    /// Writes what waits, as far as the peer's window allows.
    pub(crate) fn pump(&mut self, hub: &mut Hub) {
        while let Some(mut queued) = self.queue.pop_front() {
            hub.queued_bytes -= queued.cost();
            let is_done = match &mut queued {
                PendingTransfer::Delivery(delivery) => self.write(hub, delivery),
                PendingTransfer::Drained { handle } => {
                    self.send_credit(hub, *handle, true);
                    true
                }
            };
            if !is_done {
                hub.queued_bytes += queued.cost();
                self.queue.push_front(queued);
                return;
            }
            if let Some(link) = self.links.get_mut(&queued.handle()) {
                link.queued -= 1;
            }
        }
    }

    /// Writes the frames of a delivery while the window is open. Says whether all are written.
    fn write(&mut self, hub: &mut Hub, delivery: &mut OutgoingDelivery) -> bool {
        loop {
            if self.outgoing_window == 0 {
                return false;
            }
            self.outgoing_window -= 1;
            self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
            let is_last = delivery.payload.len() + TRANSFER_BYTES_MAX <= hub.outbox.frame_bytes_max;
            let is_first = !delivery.has_begun;
            let transfer = Transfer {
                handle: delivery.handle,
                delivery_id: is_first.then_some(delivery.number),
                delivery_tag: is_first.then(|| delivery.tag.clone()),
                message_format: is_first.then_some(delivery.format),
                settled: Some(delivery.settled),
                more: !is_last,
                ..Transfer::default()
            };
            let write = |out: &mut _| transfer.write(out);
            let written = hub.outbox.transfer(self.channel, &delivery.payload, is_last, write);
            delivery.payload.advance(written);
            delivery.has_begun = true;
            if is_last {
                return true;
            }
        }
    }

    /// Tells a receiving peer that drains that its credit is used up.
    pub(crate) fn drained(&mut self, hub: &mut Hub, id: LinkId) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        if link.state != LinkState::Attached || !link.drain {
            return;
        }
        link.use_up_credit();
        if link.queued == 0 {
            self.send_credit(hub, id.handle, true);
        } else if !link.is_drain_last {
            // Once, however often it is asked: what is told is how it stands when it goes out.
            self.enqueue(hub, PendingTransfer::Drained { handle: id.handle });
        }
    }

    /// The deliveries of a link of which not everything was written, in their order.
    pub(crate) fn unsent(&self, id: LinkId) -> Vec<DeliveryNumber> {
        let Some(link) = self.link(id) else { return Vec::new() };
        let unsent = link.unsent.iter().copied().map(DeliveryNumber);
        if link.queued == 0 {
            return unsent.collect();
        }
        let of_link = self.queue.iter().filter(|queued| queued.handle() == id.handle);
        unsent.chain(of_link.filter_map(PendingTransfer::number).map(DeliveryNumber)).collect()
    }

    /// Keeps for the application which deliveries were not written whole: the session is about to be forgotten.
    pub(crate) fn keep_unsent(&mut self, hub: &mut Hub) {
        for queued in &self.queue {
            if let Some(link) = self.links.get_mut(&queued.handle()) {
                link.unsent.extend(queued.number());
            }
        }
        for link in self.links.values_mut().filter(|link| !link.unsent.is_empty()) {
            hub.unsent.insert(link.id, std::mem::take(&mut link.unsent));
        }
    }

    /// Settles a delivery that still waits: it will go out settled. Says whether it does.
    pub(crate) fn settle_queued(&mut self, number: u32) -> bool {
        let waiting = self.queue.iter_mut().find_map(|queued| match queued {
            PendingTransfer::Delivery(delivery) if delivery.number == number => Some(delivery),
            _ => None,
        });
        waiting.map(|delivery| delivery.settled = true).is_some()
    }
}

/// Whether the link takes the message.
fn judge(link: &Link, message: &OutgoingMessage) -> Result<(), Unsent> {
    if !link.peer.is_receiver() || link.state != LinkState::Attached {
        return Err(Unsent::NoLink);
    }
    if message.payload.len() as u64 > link.message_bytes_max || message.tag.len() > AMQP_TAG_BYTES_MAX {
        return Err(Unsent::TooLarge);
    }
    if link.credit == 0 { Err(Unsent::NoCredit) } else { Ok(()) }
}
