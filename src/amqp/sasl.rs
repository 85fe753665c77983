//! The few frames before the connection opens: who the peer says it is.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::fields::descriptor;
use crate::amqp::list;
use crate::amqp::reader::Reader;
use crate::amqp::text::Text;
use crate::amqp::writer;

pub(crate) const MECHANISMS: u64 = 0x40;
pub(crate) const INIT: u64 = 0x41;
pub(crate) const OUTCOME: u64 = 0x44;

/// What the peer answers to the mechanisms that are offered.
#[derive(Debug, PartialEq)]
pub(crate) struct Init {
    pub(crate) mechanism: Text,
    pub(crate) response: Bytes,
}

impl Init {
    pub(crate) fn read(body: &Bytes) -> Result<Init, DecodeError> {
        let mut reader = Reader::new(body);
        if descriptor(&mut reader, &[("amqp:sasl-init:list", INIT)])? != INIT {
            return Err(DecodeError::Expected("a SASL init"));
        }
        let mut fields = FieldList::begin(&mut reader)?;
        let mechanism = fields.text()?.ok_or(DecodeError::Missing("mechanism"))?;
        Ok(Init { mechanism, response: fields.binary()?.unwrap_or_default() })
    }
}

pub(crate) fn write_mechanisms(out: &mut BytesMut, mechanisms: &[&str]) {
    writer::descriptor(out, MECHANISMS);
    list::write(out, |fields| fields.symbols(mechanisms));
}

/// Code 0 is a welcome, 1 says that the peer is not who it says.
pub(crate) fn write_outcome(out: &mut BytesMut, is_welcome: bool) {
    writer::descriptor(out, OUTCOME);
    list::write(out, |fields| fields.ubyte(u8::from(!is_welcome)));
}
