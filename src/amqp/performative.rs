//! What a frame says: one of nine performatives, and for a transfer the bytes after it.

use bytes::Bytes;

use crate::amqp::attach::ATTACH;
use crate::amqp::attach::Attach;
use crate::amqp::closing::CLOSE;
use crate::amqp::closing::ClosingFrame;
use crate::amqp::closing::DETACH;
use crate::amqp::closing::Detach;
use crate::amqp::closing::END;
use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::fields::descriptor;
use crate::amqp::opening::BEGIN;
use crate::amqp::opening::Begin;
use crate::amqp::opening::OPEN;
use crate::amqp::opening::Open;
use crate::amqp::reader::Reader;
use crate::amqp::transfer::DISPOSITION;
use crate::amqp::transfer::Disposition;
use crate::amqp::transfer::FLOW;
use crate::amqp::transfer::Flow;
use crate::amqp::transfer::TRANSFER;
use crate::amqp::transfer::Transfer;

const NAMES: &[(&str, u64)] = &[
    ("amqp:open:list", OPEN),
    ("amqp:begin:list", BEGIN),
    ("amqp:attach:list", ATTACH),
    ("amqp:flow:list", FLOW),
    ("amqp:transfer:list", TRANSFER),
    ("amqp:disposition:list", DISPOSITION),
    ("amqp:detach:list", DETACH),
    ("amqp:end:list", END),
    ("amqp:close:list", CLOSE),
];

/// How many values each of the lists of an attach may hold.
const ATTACH_VALUES_MAX: usize = 1_024;

/// The body of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Performative {
    Open(Box<Open>),
    Begin(Begin),
    Attach(Box<Attach>),
    Flow(Flow),
    Transfer(Transfer, Bytes),
    Disposition(Disposition),
    Detach(Detach),
    End(ClosingFrame),
    Close(ClosingFrame),
}

impl Performative {
    /// The transaction of which it is a part, if the peer waits for no answer to it.
    pub(crate) fn settled_transaction(&self) -> Option<&Bytes> {
        match self {
            Performative::Transfer(transfer, _) => transfer.settled_transaction(),
            Performative::Disposition(disposition) => disposition.settled_transaction(),
            _ => None,
        }
    }

    pub(crate) fn read(body: &Bytes) -> Result<Performative, DecodeError> {
        let mut reader = Reader::new(body);
        let number = descriptor(&mut reader, NAMES)?;
        if number == ATTACH {
            // A link may wait for long, with all that was asked for it.
            reader.limit_values(ATTACH_VALUES_MAX);
        }
        let mut fields = FieldList::begin(&mut reader)?;
        let performative = match number {
            OPEN => Performative::Open(Box::new(Open::read(&mut fields)?)),
            BEGIN => Performative::Begin(Begin::read(&mut fields)?),
            ATTACH => Performative::Attach(Box::new(Attach::read(&mut fields)?)),
            FLOW => Performative::Flow(Flow::read(&mut fields)?),
            TRANSFER => {
                let transfer = Transfer::read(&mut fields)?;
                return Ok(Performative::Transfer(transfer, payload(body, reader.rest())));
            }
            DISPOSITION => Performative::Disposition(Disposition::read(&mut fields)?),
            DETACH => Performative::Detach(Detach::read(&mut fields)?),
            END => Performative::End(ClosingFrame::read(&mut fields)?),
            CLOSE => Performative::Close(ClosingFrame::read(&mut fields)?),
            _ => return Err(DecodeError::Expected("a performative")),
        };
        if reader.is_empty() { Ok(performative) } else { Err(DecodeError::Trailing) }
    }
}

/// What is left of a frame. Of a little the rest is not kept, as it would be by a part of the whole.
fn payload(body: &Bytes, rest: Bytes) -> Bytes {
    if rest.len() < body.len() / 2 { Bytes::copy_from_slice(&rest) } else { rest }
}
