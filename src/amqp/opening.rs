//! How connections and sessions begin.

use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::list;
use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::amqp::writer;

pub(crate) const BEGIN: u64 = 0x11;
pub(crate) const OPEN: u64 = 0x10;
/// What a peer says when it opens a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Open {
    /// The peer's name.
    pub container_id: Text,
    /// The host it wants to reach.
    pub hostname: Option<Text>,
    /// The largest frame it takes.
    pub max_frame_size: Option<u32>,
    /// The highest channel it takes.
    pub channel_max: Option<u16>,
    /// Milliseconds of silence after which it gives up.
    pub idle_time_out: Option<u32>,
    /// Extensions it has.
    pub offered_capabilities: Vec<Text>,
    /// Extensions it would use.
    pub desired_capabilities: Vec<Text>,
    /// More about the peer.
    pub properties: Map,
}

impl Open {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Open, DecodeError> {
        let container_id = fields.text()?.ok_or(DecodeError::Missing("container-id"))?;
        let hostname = fields.text()?;
        let max_frame_size = fields.uint()?;
        let channel_max = fields.ushort()?;
        let idle_time_out = fields.uint()?;
        // The locales.
        fields.skip()?;
        fields.skip()?;
        Ok(Open {
            container_id,
            hostname,
            max_frame_size,
            channel_max,
            idle_time_out,
            offered_capabilities: fields.symbols()?,
            desired_capabilities: fields.symbols()?,
            properties: fields.map()?,
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, OPEN);
        list::write(out, |fields| {
            fields.string(self.container_id.as_str());
            fields.string(self.hostname.as_deref());
            fields.uint(self.max_frame_size);
            fields.ushort(self.channel_max);
            fields.uint(self.idle_time_out);
            fields.null();
            fields.null();
            fields.symbols(&self.offered_capabilities);
            fields.symbols(&self.desired_capabilities);
            fields.map(&self.properties);
        });
    }
}

/// What a peer says when it begins a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Begin {
    /// The channel of the session that this answers.
    pub(crate) remote_channel: Option<u16>,
    pub(crate) next_outgoing_id: u32,
    pub(crate) incoming_window: u32,
    pub(crate) outgoing_window: u32,
    pub(crate) handle_max: Option<u32>,
}

impl Begin {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Begin, DecodeError> {
        Ok(Begin {
            remote_channel: fields.ushort()?,
            next_outgoing_id: fields.uint()?.ok_or(DecodeError::Missing("next-outgoing-id"))?,
            incoming_window: fields.uint()?.ok_or(DecodeError::Missing("incoming-window"))?,
            outgoing_window: fields.uint()?.ok_or(DecodeError::Missing("outgoing-window"))?,
            handle_max: fields.uint()?,
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, BEGIN);
        list::write(out, |fields| {
            fields.ushort(self.remote_channel);
            fields.uint(self.next_outgoing_id);
            fields.uint(self.incoming_window);
            fields.uint(self.outgoing_window);
            fields.uint(self.handle_max);
        });
    }
}
