//! How deliveries end.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::error::AmqpError;
use crate::amqp::fields::Fields;
use crate::amqp::fields::descriptor;
use crate::amqp::list;
use crate::amqp::malformed::Malformed;
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
    pub(crate) outcome: Option<Outcome>,
    /// The transaction with which it ends so, or not at all.
    pub(crate) transaction: Option<Bytes>,
}

impl DeliveryState {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<DeliveryState, Malformed> {
        let number = descriptor(reader, NAMES)?;
        let mut fields = Fields::begin(reader)?;
        if number != IN_TRANSACTION {
            return Ok(DeliveryState { outcome: Outcome::read(number, &mut fields)?, transaction: None });
        }
        let transaction = fields.binary()?.ok_or(Malformed::Missing("txn-id"))?;
        let outcome = fields.described(|reader| {
            let number = descriptor(reader, NAMES)?;
            match number {
                IN_TRANSACTION => Err(Malformed::Expected("an outcome")),
                _ => Outcome::read(number, &mut Fields::begin(reader)?),
            }
        })?;
        Ok(DeliveryState { outcome: outcome.flatten(), transaction: Some(transaction) })
    }
}

/// A terminal state of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
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
    InTransaction(Bytes, Box<Outcome>),
}

impl Outcome {
    fn read(number: u64, fields: &mut Fields<'_>) -> Result<Option<Outcome>, Malformed> {
        Ok(match number {
            ACCEPTED => Some(Outcome::Accepted),
            REJECTED => Some(Outcome::Rejected(fields.described(AmqpError::read)?)),
            RELEASED => Some(Outcome::Released),
            MODIFIED => Some(Outcome::Modified {
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
            Outcome::Accepted | Outcome::Released | Outcome::Rejected(None) => false,
            Outcome::Rejected(Some(_)) => true,
            Outcome::Modified { annotations, .. } => !annotations.is_empty(),
            Outcome::Declared(_) => true,
            Outcome::InTransaction(_, outcome) => outcome.carries_more(),
        }
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        match self {
            Outcome::Accepted => empty(out, ACCEPTED),
            Outcome::Released => empty(out, RELEASED),
            Outcome::Rejected(None) => empty(out, REJECTED),
            Outcome::Rejected(Some(error)) => {
                writer::descriptor(out, REJECTED);
                list::write(out, |fields| fields.field(|out| error.write(out)));
            }
            Outcome::Modified { delivery_failed, undeliverable_here, annotations } => {
                writer::descriptor(out, MODIFIED);
                list::write(out, |fields| {
                    fields.boolean(*delivery_failed);
                    fields.boolean(*undeliverable_here);
                    fields.map(annotations);
                });
            }
            Outcome::Declared(transaction) => {
                writer::descriptor(out, DECLARED);
                list::write(out, |fields| fields.binary(Some(&transaction[..])));
            }
            Outcome::InTransaction(transaction, outcome) => {
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
