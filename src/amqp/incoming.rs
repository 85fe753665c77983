//! Deliveries that come.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkId;
use crate::amqp::hub::Breach;
use crate::amqp::hub::Hub;
use crate::amqp::link::Link;
use crate::amqp::link::LinkState;
use crate::amqp::link::Partial;
use crate::amqp::session::Session;
use crate::amqp::session::unattached;
use crate::amqp::transfer::Transfer;
use crate::limits::AMQP_TAG_BYTES_MAX;

/// The longest ID of a transaction in bytes; the standard has at most 32.
const TRANSACTION_BYTES_MAX: usize = 64;

impl Session {
    /// Takes one frame of a transfer. It counts against the window even if nobody wants it.
    pub(crate) fn transfer(
        &mut self,
        hub: &mut Hub,
        transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Breach> {
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        let Some(left) = self.incoming_window.checked_sub(1) else {
            return Err(Breach::session(condition::WINDOW_VIOLATION, "the window is closed"));
        };
        self.incoming_window = left;
        self.reopen_window(hub);
        let link = self.links.get_mut(&transfer.handle).ok_or_else(unattached)?;
        if link.peer.is_receiver() {
            return Err(Breach::session(condition::ERRANT_LINK, "a receiver has sent a transfer"));
        }
        match link.state {
            LinkState::Detaching => {
                hub.miss_part(transfer.settled_transaction());
                Ok(())
            }
            LinkState::Left { .. } => Err(unattached()),
            LinkState::Attaching => Err(no_credit(transfer.handle)),
            LinkState::Attached => self.take_part(hub, transfer, payload),
        }
    }

    /// Adds a part to its message, which it may complete.
    fn take_part(&mut self, hub: &mut Hub, transfer: Transfer, mut payload: Bytes) -> Result<(), Breach> {
        let handle = transfer.handle;
        let Some(link) = self.links.get_mut(&handle) else {
            return Ok(());
        };
        if let Some(begun) = &link.partial {
            check_next(begun, &transfer)?;
        }
        let mut partial = match link.partial.take() {
            None => first_part(link, &transfer)?,
            Some(partial) => {
                hub.partial_bytes -= partial.bytes.len();
                partial
            }
        };
        if transfer.aborted {
            // The application sees nothing of it, and so would never give its credit again.
            link.credit += 1;
            self.send_credit(hub, handle, false);
            return Ok(());
        }
        if transfer.transaction.as_ref().is_some_and(|id| id.len() > TRANSACTION_BYTES_MAX) {
            return Err(Breach::link(
                handle,
                condition::INVALID_FIELD,
                "the ID of a transaction is too long",
            ));
        }
        partial.settled |= transfer.settled == Some(true);
        partial.transaction = transfer.transaction.or(partial.transaction);
        partial.is_too_large |= (partial.bytes.len() + payload.len()) as u64 > link.message_bytes_max;
        if partial.is_too_large {
            // The sender is told about this message, which its clients understand better than a link that is gone.
            (partial.bytes, payload) = (BytesMut::new(), Bytes::new());
        }
        if transfer.more {
            keep_part(hub, link, partial, &payload)
        } else {
            self.deliver(hub, handle, partial, payload)
        }
    }

    /// Tells of a message of which the last part has come.
    fn deliver(&mut self, hub: &mut Hub, handle: u32, message: Partial, last: Bytes) -> Result<(), Breach> {
        let Some(link) = self.links.get_mut(&handle) else {
            return Ok(());
        };
        if !message.settled {
            if self.incoming.contains_key(&message.delivery) {
                return Err(not_allowed(handle, "the number of a delivery is in use"));
            }
            if !hub.may_unsettle_in() {
                return Err(no_more(handle, "too many deliveries are unsettled"));
            }
            self.incoming.insert(message.delivery, handle);
            link.unsettled += 1;
            hub.unsettled_in += 1;
        }
        let Partial { delivery, tag, format, settled, bytes, is_too_large, transaction } = message;
        let (link, delivery) = (link.id, DeliveryNumber(delivery));
        hub.events.push_back(if is_too_large {
            AmqpEvent::TooLarge { link, delivery, settled, transaction }
        } else {
            let payload = whole(bytes, last);
            AmqpEvent::Message { link, delivery, format, tag, payload, settled, transaction }
        });
        Ok(())
    }

    /// Tells of a transaction that its message is missing of which only a part has come, before the link ends here.
    pub(crate) fn miss_partial(&self, hub: &mut Hub, handle: u32) {
        let partial = self.links.get(&handle).and_then(|link| link.partial.as_ref());
        hub.miss_part(partial.and_then(Partial::settled_transaction));
    }

    /// Raises the credit of a sending peer, and tells it.
    pub(crate) fn grant(&mut self, hub: &mut Hub, id: LinkId, credit: u32) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        if link.peer.is_receiver() || link.state != LinkState::Attached || credit <= link.credit {
            return;
        }
        link.credit = credit;
        self.send_credit(hub, id.handle, false);
    }
}

/// Begins a message with its first part, for which the peer needs credit.
fn first_part(link: &mut Link, transfer: &Transfer) -> Result<Partial, Breach> {
    let handle = transfer.handle;
    if link.credit == 0 {
        return Err(no_credit(handle));
    }
    if transfer.resume {
        return Err(Breach::link(handle, condition::NOT_IMPLEMENTED, "deliveries are not resumed"));
    }
    let (Some(delivery), Some(tag)) = (transfer.delivery_id, &transfer.delivery_tag) else {
        return Err(Breach::link(handle, condition::INVALID_FIELD, "a delivery needs a number and a tag"));
    };
    if tag.len() > AMQP_TAG_BYTES_MAX {
        return Err(Breach::link(handle, condition::INVALID_FIELD, "the tag of a delivery is too long"));
    }
    link.count_delivery();
    Ok(Partial {
        delivery,
        tag: tag.clone(),
        format: transfer.message_format.unwrap_or(0),
        settled: false,
        bytes: BytesMut::new(),
        is_too_large: false,
        transaction: None,
    })
}

/// Sees to it that a part does not belong to another message than the one that has begun.
fn check_next(begun: &Partial, transfer: &Transfer) -> Result<(), Breach> {
    match transfer.delivery_id {
        Some(delivery) if delivery != begun.delivery => {
            Err(not_allowed(transfer.handle, "a delivery began within another one"))
        }
        _ => Ok(()),
    }
}

/// Keeps a part until the next one comes.
fn keep_part(hub: &mut Hub, link: &mut Link, mut partial: Partial, payload: &[u8]) -> Result<(), Breach> {
    let bytes = partial.bytes.len() + payload.len();
    if hub.partial_bytes + bytes > hub.partial_bytes_max() {
        hub.miss_part(partial.settled_transaction());
        // Its client attaches anew and sends again, which it would not after any other condition.
        let what = "too many bytes of messages have come in part";
        return Err(Breach::link(link.id.handle, condition::DETACH_FORCED, what));
    }
    partial.bytes.extend_from_slice(payload);
    // Copies, because a part of a frame keeps all of it.
    partial.tag = Bytes::copy_from_slice(&partial.tag);
    partial.transaction = partial.transaction.as_deref().map(Bytes::copy_from_slice);
    hub.partial_bytes += bytes;
    link.partial = Some(partial);
    Ok(())
}

/// The message of its parts; one of a single frame is not copied.
fn whole(mut parts: BytesMut, last: Bytes) -> Bytes {
    if parts.is_empty() {
        return last;
    }
    parts.extend_from_slice(&last);
    parts.freeze()
}

fn no_credit(handle: u32) -> Breach {
    Breach::link(handle, condition::TRANSFER_LIMIT_EXCEEDED, "the link has no credit")
}

fn no_more(handle: u32, what: &'static str) -> Breach {
    Breach::link(handle, condition::RESOURCE_LIMIT_EXCEEDED, what)
}

fn not_allowed(handle: u32, what: &'static str) -> Breach {
    Breach::link(handle, condition::NOT_ALLOWED, what)
}
