//! The transactions of a connection that are not discharged: what belongs to one waits here.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::amqp::LinkId;
use crate::clock::whole_millis;
use crate::limits;
use crate::message::Message;
use crate::service_bus::client_settlement::ClientSettlement;
use crate::service_bus::entity::Entity;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;

/// The transactions of one connection that are not discharged.
#[derive(Default)]
pub(crate) struct Transactions {
    open: BTreeMap<u64, OpenTransaction>,
    /// How many were ever declared; each has the number it was.
    declared: u64,
}

/// A transaction that is being filled.
pub(crate) struct OpenTransaction {
    /// The link over which it was declared, with which it ends.
    coordinator: LinkId,
    ends_at_ms: u64,
    pub(crate) parts: Vec<TransactionPart>,
    pub(crate) bytes: usize,
    /// Why a part is missing that its client has settled, and so has heard nothing of: it hears it with the discharge.
    pub(crate) missing: Option<AmqpRefusal>,
}

/// What happens with a transaction, or does not.
pub(crate) enum TransactionPart {
    /// A message that came over a link.
    Send(LinkId, Arc<Entity>, Message),
    /// A message that a client holds ends; without a settlement, as if it had not been handed out.
    Settle(ClientHold, Option<ClientSettlement>),
}

impl Transactions {
    /// Begins a transaction, and says its ID.
    pub(crate) fn declare(&mut self, coordinator: LinkId, now_ms: u64) -> Result<Bytes, AmqpRefusal> {
        self.open.retain(|_, open| now_ms < open.ends_at_ms);
        if self.open.len() >= limits::SERVICE_BUS_TRANSACTIONS_MAX {
            let most = limits::SERVICE_BUS_TRANSACTIONS_MAX;
            let refusal = format!("the connection has {most} open transactions, which is the most");
            return Err(AmqpRefusal::new(condition::RESOURCE_LIMIT, refusal));
        }
        self.declared += 1;
        let ends_at_ms = now_ms.saturating_add(whole_millis(limits::SERVICE_BUS_TRANSACTION_LASTS));
        let open = OpenTransaction { coordinator, ends_at_ms, parts: Vec::new(), bytes: 0, missing: None };
        self.open.insert(self.declared, open);
        Ok(Bytes::copy_from_slice(&self.declared.to_be_bytes()))
    }

    /// Ends a transaction, and gives it up.
    pub(crate) fn end(&mut self, id: &Bytes, now_ms: u64) -> Result<OpenTransaction, AmqpRefusal> {
        self.open(id, now_ms)?;
        number_of(id).and_then(|number| self.open.remove(&number)).ok_or_else(unknown)
    }

    /// Notes that a part of a transaction is missing of which its client waits for no answer.
    pub(crate) fn note_missing(&mut self, id: &Bytes, refusal: AmqpRefusal) {
        if let Some(open) = number_of(id).and_then(|number| self.open.get_mut(&number)) {
            open.missing.get_or_insert(refusal);
        }
    }

    /// Adds to a transaction, all or none.
    pub(crate) fn add(
        &mut self,
        id: &Bytes,
        now_ms: u64,
        (parts, bytes): (Vec<TransactionPart>, usize),
    ) -> Result<(), AmqpRefusal> {
        let open_now = self.open.values().filter(|open| now_ms < open.ends_at_ms);
        let waiting: usize = open_now.map(|open| open.bytes).sum();
        let open = self.open(id, now_ms)?;
        let most = limits::TRANSACTION_STEPS_MAX;
        if open.parts.len() + parts.len() > most {
            let refusal = format!("a transaction has at most {most} sends and settlements");
            return Err(AmqpRefusal::new(condition::RESOURCE_LIMIT, refusal));
        }
        if waiting + bytes > limits::SERVICE_BUS_SENDING_BYTES {
            let most = limits::SERVICE_BUS_SENDING_BYTES;
            let refusal = format!(
                "the open transactions of a connection have at most {most} bytes of messages and settlements"
            );
            return Err(AmqpRefusal::new(condition::RESOURCE_LIMIT, refusal));
        }
        open.parts.extend(parts);
        open.bytes += bytes;
        Ok(())
    }

    fn open(&mut self, id: &Bytes, now_ms: u64) -> Result<&mut OpenTransaction, AmqpRefusal> {
        let number = number_of(id).ok_or_else(unknown)?;
        match self.open.get(&number) {
            None => Err(unknown()),
            Some(open) if now_ms >= open.ends_at_ms => {
                self.open.remove(&number);
                let seconds = limits::SERVICE_BUS_TRANSACTION_LASTS.as_secs();
                let refusal = format!("the transaction was open for {seconds} seconds, and is rolled back");
                Err(AmqpRefusal::new(condition::TRANSACTION_TIMEOUT, refusal))
            }
            Some(_) => self.open.get_mut(&number).ok_or_else(unknown),
        }
    }

    /// Rolls back what was declared over a link.
    pub(crate) fn forget(&mut self, coordinator: LinkId) {
        self.open.retain(|_, open| open.coordinator != coordinator);
    }
}

fn number_of(id: &Bytes) -> Option<u64> {
    Some(u64::from_be_bytes(<[u8; 8]>::try_from(&id[..]).ok()?))
}

/// Why a part of a transaction is missing that was said of a link, or a delivery, which has ended here meanwhile.
pub(crate) fn link_is_over() -> AmqpRefusal {
    let why = "a part of the transaction came over a link, or for a delivery, that had ended meanwhile";
    AmqpRefusal::new(condition::DETACH_FORCED, why)
}

fn unknown() -> AmqpRefusal {
    AmqpRefusal::new(condition::UNKNOWN_TRANSACTION, "the connection has no such open transaction")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rolled_back_by_its_time_takes_no_room_of_others() {
        let link = LinkId { channel: 0, handle: 0, serial: 0 };
        let mut transactions = Transactions::default();
        let most = limits::SERVICE_BUS_SENDING_BYTES;
        let over = transactions.declare(link, 0).unwrap();
        transactions.add(&over, 0, (Vec::new(), most)).unwrap();
        let open = transactions.declare(link, 1).unwrap();
        assert!(transactions.add(&open, 1, (Vec::new(), most)).is_err());
        let ended_ms = whole_millis(limits::SERVICE_BUS_TRANSACTION_LASTS);
        transactions.add(&open, ended_ms, (Vec::new(), most)).unwrap();
    }
}
