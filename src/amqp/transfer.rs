//! How deliveries move: credit, the delivery itself, and how it ends.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::attach::Role;
use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::list;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::outcome::DeliveryState;
use crate::amqp::writer;

pub(crate) const DISPOSITION: u64 = 0x15;
pub(crate) const TRANSFER: u64 = 0x14;
pub(crate) const FLOW: u64 = 0x13;
/// The state of a session's windows, and of one link's credit if it names a handle.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Flow {
    pub(crate) next_incoming_id: Option<u32>,
    pub(crate) incoming_window: u32,
    pub(crate) next_outgoing_id: u32,
    pub(crate) outgoing_window: u32,
    pub(crate) handle: Option<u32>,
    pub(crate) delivery_count: Option<u32>,
    pub(crate) link_credit: Option<u32>,
    pub(crate) available: Option<u32>,
    pub(crate) drain: bool,
    pub(crate) echo: bool,
}

impl Flow {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Flow, DecodeError> {
        Ok(Flow {
            next_incoming_id: fields.uint()?,
            incoming_window: fields.uint()?.ok_or(DecodeError::Missing("incoming-window"))?,
            next_outgoing_id: fields.uint()?.ok_or(DecodeError::Missing("next-outgoing-id"))?,
            outgoing_window: fields.uint()?.ok_or(DecodeError::Missing("outgoing-window"))?,
            handle: fields.uint()?,
            delivery_count: fields.uint()?,
            link_credit: fields.uint()?,
            available: fields.uint()?,
            drain: fields.boolean()?.unwrap_or(false),
            echo: fields.boolean()?.unwrap_or(false),
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, FLOW);
        list::write(out, |fields| {
            fields.uint(self.next_incoming_id);
            fields.uint(self.incoming_window);
            fields.uint(self.next_outgoing_id);
            fields.uint(self.outgoing_window);
            fields.uint(self.handle);
            fields.uint(self.delivery_count);
            fields.uint(self.link_credit);
            fields.uint(self.available);
            fields.boolean(self.drain.then_some(true));
            fields.boolean(self.echo.then_some(true));
        });
    }
}

/// A delivery, or a part of one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Transfer {
    pub(crate) handle: u32,
    pub(crate) delivery_id: Option<u32>,
    pub(crate) delivery_tag: Option<Bytes>,
    pub(crate) message_format: Option<u32>,
    pub(crate) settled: Option<bool>,
    pub(crate) more: bool,
    /// The transaction with which it comes, or not at all.
    pub(crate) transaction: Option<Bytes>,
    pub(crate) resume: bool,
    pub(crate) aborted: bool,
}

impl Transfer {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Transfer, DecodeError> {
        let handle = fields.uint()?.ok_or(DecodeError::Missing("handle"))?;
        let delivery_id = fields.uint()?;
        let delivery_tag = fields.binary()?;
        let message_format = fields.uint()?;
        let settled = fields.boolean()?;
        let more = fields.boolean()?.unwrap_or(false);
        // How the receiver settles: it does not change what is done with a delivery.
        fields.ubyte()?;
        let state = fields.described(DeliveryState::read)?.unwrap_or_default();
        let resume = fields.boolean()?.unwrap_or(false);
        let aborted = fields.boolean()?.unwrap_or(false);
        let transaction = state.transaction;
        Ok(Transfer {
            handle,
            delivery_id,
            delivery_tag,
            message_format,
            settled,
            more,
            transaction,
            resume,
            aborted,
        })
    }

    /// The transaction to which it belongs, if its sender waits for no answer.
    pub(crate) fn settled_transaction(&self) -> Option<&Bytes> {
        self.transaction.as_ref().filter(|_| self.settled == Some(true) && !self.aborted)
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, TRANSFER);
        list::write(out, |fields| {
            fields.uint(self.handle);
            fields.uint(self.delivery_id);
            fields.binary(self.delivery_tag.as_deref());
            fields.uint(self.message_format);
            fields.boolean(self.settled);
            fields.boolean(self.more.then_some(true));
            fields.null();
            fields.null();
            fields.boolean(self.resume.then_some(true));
            fields.boolean(self.aborted.then_some(true));
        });
    }
}

/// How deliveries of a range ended, or are about to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Disposition {
    /// Which end says it.
    pub(crate) role: Role,
    pub(crate) first: u32,
    pub(crate) last: Option<u32>,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryOutcome>,
    /// The transaction with which they end so, or not at all.
    pub(crate) transaction: Option<Bytes>,
}

impl Disposition {
    /// The transaction to which it belongs, if who has received waits for no answer.
    pub(crate) fn settled_transaction(&self) -> Option<&Bytes> {
        self.transaction.as_ref().filter(|_| self.settled && self.role.is_receiver())
    }

    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Disposition, DecodeError> {
        let role = Role::read(fields)?;
        let first = fields.uint()?.ok_or(DecodeError::Missing("first"))?;
        let last = fields.uint()?;
        let settled = fields.boolean()?.unwrap_or(false);
        let state = fields.described(DeliveryState::read)?.unwrap_or_default();
        let DeliveryState { outcome, transaction } = state;
        Ok(Disposition { role, first, last, settled, state: outcome, transaction })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, DISPOSITION);
        list::write(out, |fields| {
            fields.boolean(self.role.is_receiver());
            fields.uint(self.first);
            fields.uint(self.last);
            fields.boolean(self.settled);
            match &self.state {
                None => fields.null(),
                Some(outcome) => fields.field(|out| outcome.write(out)),
            }
        });
    }
}
