//! How deliveries end.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::error::AmqpError;
use crate::amqp::fields::FieldList;
use crate::amqp::fields::descriptor;
use crate::amqp::list;
use crate::amqp::reader::Reader;
use crate::amqp::value::Map;
use crate::amqp::writer;

const ACCEPTED: u64 = 0x24;
const REJECTED: u64 = 0x25;
const RELEASED: u64 = 0x26;
const MODIFIED: u64 = 0x27;
const DECLARED: u64 = 0x33;
const IN_TRANSACTION: u64 = 0x34;

const NAMES: &[(&str, u64)] = &[
    ("amqp:received:list", 0x23),
    ("amqp:accepted:list", ACCEPTED),
    ("amqp:rejected:list", REJECTED),
    ("amqp:released:list", RELEASED),
    ("amqp:modified:list", MODIFIED),
    ("amqp:declared:list", DECLARED),
    ("amqp:transactional-state:list", IN_TRANSACTION),
];

/// The state of a delivery, as a peer says it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DeliveryState {
    /// How it ends, if that is said.
    pub(crate) outcome: Option<DeliveryOutcome>,
    /// The transaction with which it ends so, or not at all.
    pub(crate) transaction: Option<Bytes>,
}

impl DeliveryState {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<DeliveryState, DecodeError> {
        let number = descriptor(reader, NAMES)?;
        let mut fields = FieldList::begin(reader)?;
        if number != IN_TRANSACTION {
            return Ok(DeliveryState {
                outcome: DeliveryOutcome::read(number, &mut fields)?,
                transaction: None,
            });
        }
        let transaction = fields.binary()?.ok_or(DecodeError::Missing("txn-id"))?;
        let outcome = fields.described(|reader| {
            let number = descriptor(reader, NAMES)?;
            match number {
                IN_TRANSACTION => Err(DecodeError::Expected("an outcome")),
                _ => DeliveryOutcome::read(number, &mut FieldList::begin(reader)?),
            }
        })?;
        Ok(DeliveryState { outcome: outcome.flatten(), transaction: Some(transaction) })
    }
}

/// A terminal state of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryOutcome {
    /// It was taken.
    Accepted,
    /// It cannot be taken, for a reason; without one, the list of the state is empty.
    Rejected(Option<AmqpError>),
    /// It was not looked at.
    Released,
    /// It was looked at and not taken.
    Modified {
        /// Whether the delivery counts as failed.
        delivery_failed: bool,
        /// Whether it should not come to this receiver again.
        undeliverable_here: bool,
        /// Annotations to set.
        annotations: Map,
    },
    /// A transaction was declared, and has this ID.
    Declared(Bytes),
    /// It ends so with the transaction of this ID.
    InTransaction(Bytes, Box<DeliveryOutcome>),
}

impl DeliveryOutcome {
    fn read(number: u64, fields: &mut FieldList<'_>) -> Result<Option<DeliveryOutcome>, DecodeError> {
        Ok(match number {
            ACCEPTED => Some(DeliveryOutcome::Accepted),
            REJECTED => Some(DeliveryOutcome::Rejected(fields.described(AmqpError::read)?)),
            RELEASED => Some(DeliveryOutcome::Released),
            MODIFIED => Some(DeliveryOutcome::Modified {
                delivery_failed: fields.boolean()?.unwrap_or(false),
                undeliverable_here: fields.boolean()?.unwrap_or(false),
                annotations: fields.map()?,
            }),
            _ => None,
        })
    }

    /// Whether it is more than a word: then every delivery gets a copy of what may be long.
    pub(crate) fn carries_more(&self) -> bool {
        match self {
            DeliveryOutcome::Accepted | DeliveryOutcome::Released | DeliveryOutcome::Rejected(None) => false,
            DeliveryOutcome::Rejected(Some(_)) => true,
            DeliveryOutcome::Modified { annotations, .. } => !annotations.is_empty(),
            DeliveryOutcome::Declared(_) => true,
            DeliveryOutcome::InTransaction(_, outcome) => outcome.carries_more(),
        }
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        match self {
            DeliveryOutcome::Accepted => empty(out, ACCEPTED),
            DeliveryOutcome::Released => empty(out, RELEASED),
            DeliveryOutcome::Rejected(None) => empty(out, REJECTED),
            DeliveryOutcome::Rejected(Some(error)) => {
                writer::descriptor(out, REJECTED);
                list::write(out, |fields| fields.field(|out| error.write(out)));
            }
            DeliveryOutcome::Modified { delivery_failed, undeliverable_here, annotations } => {
                writer::descriptor(out, MODIFIED);
                list::write(out, |fields| {
                    fields.boolean(*delivery_failed);
                    fields.boolean(*undeliverable_here);
                    fields.map(annotations);
                });
            }
            DeliveryOutcome::Declared(transaction) => {
                writer::descriptor(out, DECLARED);
                list::write(out, |fields| fields.binary(Some(&transaction[..])));
            }
            DeliveryOutcome::InTransaction(transaction, outcome) => {
                writer::descriptor(out, IN_TRANSACTION);
                list::write(out, |fields| {
                    fields.binary(Some(&transaction[..]));
                    fields.field(|out| outcome.write(out));
                });
            }
        }
    }
}

fn empty(out: &mut BytesMut, number: u64) {
    writer::descriptor(out, number);
    list::write(out, |_| {});
}
