//! The standard properties of a message.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::list;
use crate::amqp::text::Text;
use crate::amqp::value::Value;

/// What every application may say of a message. Identifiers keep their type, which an answer must repeat.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageProperties {
    /// The message's name: a ulong, UUID, binary or string.
    pub message_id: Value,
    /// Who sends it.
    pub user_id: Option<Bytes>,
    /// Where it goes.
    pub to: Option<Text>,
    /// What it is about.
    pub subject: Option<Text>,
    /// Where an answer goes.
    pub reply_to: Option<Text>,
    /// What it answers: an identifier of any type.
    pub correlation_id: Value,
    /// What the body is.
    pub content_type: Option<Text>,
    /// How the body is packed.
    pub content_encoding: Option<Text>,
    /// When it is worth nothing any more, in milliseconds since 1970.
    pub absolute_expiry_time: Option<i64>,
    /// When it was made, in milliseconds since 1970.
    pub creation_time: Option<i64>,
    /// The group it belongs to; a session, in Service Bus.
    pub group_id: Option<Text>,
    /// Its place in the group.
    pub group_sequence: Option<u32>,
    /// The group an answer belongs to.
    pub reply_to_group_id: Option<Text>,
}

impl MessageProperties {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<MessageProperties, DecodeError> {
        Ok(MessageProperties {
            message_id: fields.value()?,
            user_id: fields.binary()?,
            to: fields.text()?,
            subject: fields.text()?,
            reply_to: fields.text()?,
            correlation_id: fields.value()?,
            content_type: fields.text()?,
            content_encoding: fields.text()?,
            absolute_expiry_time: fields.timestamp()?,
            creation_time: fields.timestamp()?,
            group_id: fields.text()?,
            group_sequence: fields.uint()?,
            reply_to_group_id: fields.text()?,
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        list::write(out, |fields| {
            fields.value(&self.message_id);
            fields.binary(self.user_id.as_deref());
            fields.string(self.to.as_deref());
            fields.string(self.subject.as_deref());
            fields.string(self.reply_to.as_deref());
            fields.value(&self.correlation_id);
            fields.symbol(self.content_type.as_deref());
            fields.symbol(self.content_encoding.as_deref());
            fields.timestamp(self.absolute_expiry_time);
            fields.timestamp(self.creation_time);
            fields.string(self.group_id.as_deref());
            fields.uint(self.group_sequence);
            fields.string(self.reply_to_group_id.as_deref());
        });
    }
}
