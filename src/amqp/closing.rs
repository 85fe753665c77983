//! How links, sessions and connections end.

use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::error::AmqpError;
use crate::amqp::fields::FieldList;
use crate::amqp::list;
use crate::amqp::writer;

pub(crate) const CLOSE: u64 = 0x18;
pub(crate) const END: u64 = 0x17;
pub(crate) const DETACH: u64 = 0x16;

/// The end of a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Detach {
    pub(crate) handle: u32,
    /// Whether the link is over, and not only detached.
    pub(crate) closed: bool,
    pub(crate) error: Option<AmqpError>,
}

impl Detach {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Detach, DecodeError> {
        Ok(Detach {
            handle: fields.uint()?.ok_or(DecodeError::Missing("handle"))?,
            closed: fields.boolean()?.unwrap_or(false),
            error: fields.described(AmqpError::read)?,
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, DETACH);
        list::write(out, |fields| {
            fields.uint(self.handle);
            fields.boolean(self.closed);
            error(fields, self.error.as_ref());
        });
    }
}

/// The end of a session or a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ClosingFrame {
    pub(crate) error: Option<AmqpError>,
}

impl ClosingFrame {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<ClosingFrame, DecodeError> {
        Ok(ClosingFrame { error: fields.described(AmqpError::read)? })
    }

    /// Writes it as what it ends: [`END`] or [`CLOSE`].
    pub(crate) fn write(&self, out: &mut BytesMut, number: u64) {
        writer::descriptor(out, number);
        list::write(out, |fields| error(fields, self.error.as_ref()));
    }
}

fn error(fields: &mut list::List<'_>, error: Option<&AmqpError>) {
    match error {
        None => fields.null(),
        Some(error) => fields.field(|out| error.write(out)),
    }
}
