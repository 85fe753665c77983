//! Errors as peers send them to one another.

use std::fmt;

use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::fields::descriptor;
use crate::amqp::list;
use crate::amqp::reader::Reader;
use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::amqp::writer;

const ERROR: u64 = 0x1d;

/// Of a description that is cut, so many bytes remain.
const DESCRIPTION_KEPT: usize = 128;

/// A condition that programs know, a description for humans, and further information.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AmqpError {
    /// The symbol that says what kind of error it is.
    pub condition: Text,
    /// What happened.
    pub description: Option<Text>,
    /// More about it.
    pub info: Map,
}

impl AmqpError {
    /// An error without further information.
    pub fn new(condition: &'static str, description: impl Into<Text>) -> AmqpError {
        AmqpError { condition: Text::of(condition), description: Some(description.into()), info: Map::new() }
    }

    /// With further information.
    pub fn with(mut self, info: Map) -> AmqpError {
        self.info = info;
        self
    }

    /// The same without what a reader can do without.
    pub(crate) fn shortened(&self) -> AmqpError {
        let description = self.description.as_ref().map(|text| {
            let fits = |end: &usize| text.is_char_boundary(*end);
            let end = (0..=DESCRIPTION_KEPT.min(text.len())).rev().find(fits).unwrap_or(0);
            Text::from(&text[..end])
        });
        AmqpError { condition: self.condition.clone(), description, info: Map::new() }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<AmqpError, DecodeError> {
        if descriptor(reader, &[("amqp:error:list", ERROR)])? != ERROR {
            return Err(DecodeError::Expected("an error"));
        }
        let mut fields = FieldList::begin(reader)?;
        Ok(AmqpError {
            condition: fields.text()?.ok_or(DecodeError::Missing("condition"))?,
            description: fields.text()?,
            info: fields.map()?,
        })
    }

    /// Writes all three fields even if they are null: there are clients that look for the third.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, ERROR);
        list::write(out, |fields| {
            fields.symbol(self.condition.as_str());
            fields.string(self.description.as_deref());
            fields.map(&self.info);
            fields.keep_nulls();
        });
    }
}

impl fmt::Display for AmqpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(description) => write!(f, "{}: {description}", self.condition),
            None => f.write_str(&self.condition),
        }
    }
}

/// The conditions of the standard.
pub mod condition {
    /// Something failed here.
    pub const INTERNAL_ERROR: &str = "amqp:internal-error";
    /// There is no such thing.
    pub const NOT_FOUND: &str = "amqp:not-found";
    /// The peer may not do this.
    pub const UNAUTHORIZED_ACCESS: &str = "amqp:unauthorized-access";
    /// Bytes are not what they should be.
    pub const DECODE_ERROR: &str = "amqp:decode-error";
    /// A limit of what is kept is reached.
    pub const RESOURCE_LIMIT_EXCEEDED: &str = "amqp:resource-limit-exceeded";
    /// The peer did what the protocol does not allow.
    pub const NOT_ALLOWED: &str = "amqp:not-allowed";
    /// A field has a value that it cannot have.
    pub const INVALID_FIELD: &str = "amqp:invalid-field";
    /// This is not done here.
    pub const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
    /// A condition for what was asked is not met.
    pub const PRECONDITION_FAILED: &str = "amqp:precondition-failed";
    /// A frame is too large for the peer.
    pub const FRAME_SIZE_TOO_SMALL: &str = "amqp:frame-size-too-small";
    /// An operator, or idleness, closed the connection.
    pub const CONNECTION_FORCED: &str = "amqp:connection:forced";
    /// A frame is none.
    pub const FRAMING_ERROR: &str = "amqp:connection:framing-error";
    /// More transfers came than the window allows.
    pub const WINDOW_VIOLATION: &str = "amqp:session:window-violation";
    /// A frame came for a link that goes the other way.
    pub const ERRANT_LINK: &str = "amqp:session:errant-link";
    /// A handle is attached already.
    pub const HANDLE_IN_USE: &str = "amqp:session:handle-in-use";
    /// A frame came for a handle that is not attached.
    pub const UNATTACHED_HANDLE: &str = "amqp:session:unattached-handle";
    /// An operator, or idleness, detached the link.
    pub const DETACH_FORCED: &str = "amqp:link:detach-forced";
    /// More deliveries came than credit allows.
    pub const TRANSFER_LIMIT_EXCEEDED: &str = "amqp:link:transfer-limit-exceeded";
    /// A link of the same name took its place.
    pub const STOLEN: &str = "amqp:link:stolen";
}
