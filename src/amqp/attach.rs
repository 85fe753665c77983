//! How links begin.

use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::list;
use crate::amqp::terminus::Source;
use crate::amqp::terminus::Target;
use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::amqp::writer;

pub(crate) const ATTACH: u64 = 0x12;
/// Which end of a link a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Deliveries come from it.
    Sender,
    /// Deliveries go to it.
    Receiver,
}

impl Role {
    pub(crate) fn is_receiver(self) -> bool {
        self == Role::Receiver
    }

    pub(crate) fn opposite(self) -> Role {
        if self.is_receiver() { Role::Sender } else { Role::Receiver }
    }

    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Role, DecodeError> {
        let is_receiver = fields.boolean()?.ok_or(DecodeError::Missing("role"))?;
        Ok(if is_receiver { Role::Receiver } else { Role::Sender })
    }
}

/// How a sender settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SenderSettles {
    /// Never before the receiver did.
    Unsettled,
    /// Everything it sends, at once.
    Settled,
    /// As each delivery says.
    #[default]
    Mixed,
}

/// How a receiver settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiverSettles {
    /// At once, with the outcome.
    #[default]
    First,
    /// After the sender did.
    Second,
}

/// What a peer says when it attaches a link, or when it answers that.
#[derive(Debug, Clone, PartialEq)]
pub struct Attach {
    /// The link's name.
    pub name: Text,
    /// Its number in the session.
    pub(crate) handle: u32,
    /// Which end the peer that says this is.
    pub role: Role,
    /// How the sender settles.
    pub sender_settles: SenderSettles,
    /// How the receiver settles.
    pub receiver_settles: ReceiverSettles,
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go to.
    pub target: Option<Target>,
    /// The delivery count at which a sender begins.
    pub(crate) initial_delivery_count: Option<u32>,
    /// The largest message that the peer takes, or has.
    pub max_message_bytes: Option<u64>,
    /// Extensions it has.
    pub offered_capabilities: Vec<Text>,
    /// Extensions it would use.
    pub desired_capabilities: Vec<Text>,
    /// More about the link.
    pub properties: Map,
}

impl Attach {
    pub(crate) fn read(fields: &mut FieldList<'_>) -> Result<Attach, DecodeError> {
        let name = fields.text()?.ok_or(DecodeError::Missing("name"))?;
        let handle = fields.uint()?.ok_or(DecodeError::Missing("handle"))?;
        let role = Role::read(fields)?;
        let sender_settles = match fields.ubyte()? {
            Some(0) => SenderSettles::Unsettled,
            Some(1) => SenderSettles::Settled,
            Some(2) | None => SenderSettles::Mixed,
            Some(_) => return Err(DecodeError::Expected("a settle mode of senders")),
        };
        let receiver_settles = match fields.ubyte()? {
            Some(0) | None => ReceiverSettles::First,
            Some(1) => ReceiverSettles::Second,
            Some(_) => return Err(DecodeError::Expected("a settle mode of receivers")),
        };
        let source = fields.described(Source::read)?;
        let target = fields.described(Target::read)?;
        // What was unsettled when the link was last attached, and whether that is all: no link is resumed.
        fields.skip()?;
        fields.skip()?;
        let initial_delivery_count = fields.uint()?;
        Ok(Attach {
            name,
            handle,
            role,
            sender_settles,
            receiver_settles,
            source,
            target,
            initial_delivery_count,
            max_message_bytes: fields.ulong()?,
            offered_capabilities: fields.symbols()?,
            desired_capabilities: fields.symbols()?,
            properties: fields.map()?,
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, ATTACH);
        list::write(out, |fields| {
            fields.string(self.name.as_str());
            fields.uint(self.handle);
            fields.boolean(self.role.is_receiver());
            fields.ubyte(match self.sender_settles {
                SenderSettles::Unsettled => 0,
                SenderSettles::Settled => 1,
                SenderSettles::Mixed => 2,
            });
            fields.ubyte(match self.receiver_settles {
                ReceiverSettles::First => 0,
                ReceiverSettles::Second => 1,
            });
            match &self.source {
                None => fields.null(),
                Some(source) => fields.field(|out| source.write(out)),
            }
            match &self.target {
                None => fields.null(),
                Some(target) => fields.field(|out| target.write(out)),
            }
            fields.null();
            fields.null();
            fields.uint(self.initial_delivery_count);
            fields.ulong(self.max_message_bytes);
            fields.symbols(&self.offered_capabilities);
            fields.symbols(&self.desired_capabilities);
            fields.map(&self.properties);
        });
    }
}
