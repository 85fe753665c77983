//! The two ends of a link.

use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::fields::descriptor;
use crate::amqp::list;
use crate::amqp::reader::Reader;
use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::amqp::value::Value;
use crate::amqp::writer;

const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;
const COORDINATOR: u64 = 0x30;

/// Where the messages of a link come from. What a peer left out stays out when it is sent back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Source {
    /// The name of the node.
    pub address: Option<Text>,
    /// How durable the terminus is.
    pub durable: Option<u32>,
    /// When it expires.
    pub expiry_policy: Option<Text>,
    /// Seconds until it expires.
    pub timeout: Option<u32>,
    /// Whether the peer wants a node made, whose name the answer tells.
    pub dynamic: Option<bool>,
    /// What the node to make is like.
    pub dynamic_node_properties: Map,
    /// Whether messages are moved or copied.
    pub distribution_mode: Option<Text>,
    /// Which messages are wanted.
    pub filter: Map,
    /// How deliveries end that are not settled.
    pub default_outcome: Value,
    /// The outcomes that may happen.
    pub outcomes: Vec<Text>,
    /// Extensions.
    pub capabilities: Vec<Text>,
}

impl Source {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Source, DecodeError> {
        if descriptor(reader, &[("amqp:source:list", SOURCE)])? != SOURCE {
            return Err(DecodeError::Expected("a source"));
        }
        let mut fields = FieldList::begin(reader)?;
        Ok(Source {
            address: fields.text()?,
            durable: fields.uint()?,
            expiry_policy: fields.text()?,
            timeout: fields.uint()?,
            dynamic: fields.boolean()?,
            dynamic_node_properties: fields.map()?,
            distribution_mode: fields.text()?,
            filter: fields.map()?,
            default_outcome: fields.value()?,
            outcomes: fields.symbols()?,
            capabilities: fields.symbols()?,
        })
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        writer::descriptor(out, SOURCE);
        list::write(out, |fields| {
            fields.string(self.address.as_deref());
            fields.uint(self.durable);
            fields.symbol(self.expiry_policy.as_deref());
            fields.uint(self.timeout);
            fields.boolean(self.dynamic);
            fields.map(&self.dynamic_node_properties);
            fields.symbol(self.distribution_mode.as_deref());
            fields.map(&self.filter);
            fields.value(&self.default_outcome);
            fields.symbols(&self.outcomes);
            fields.symbols(&self.capabilities);
        });
    }
}

/// Where the messages of a link go to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Target {
    /// Whether it is no node but the coordinator of transactions; then only its capabilities mean something.
    pub coordinator: bool,
    /// The name of the node.
    pub address: Option<Text>,
    /// How durable the terminus is.
    pub durable: Option<u32>,
    /// When it expires.
    pub expiry_policy: Option<Text>,
    /// Seconds until it expires.
    pub timeout: Option<u32>,
    /// Whether the peer wants a node made, whose name the answer tells.
    pub dynamic: Option<bool>,
    /// What the node to make is like.
    pub dynamic_node_properties: Map,
    /// Extensions.
    pub capabilities: Vec<Text>,
}

impl Target {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Target, DecodeError> {
        let names = [("amqp:target:list", TARGET), ("amqp:coordinator:list", COORDINATOR)];
        let number = descriptor(reader, &names)?;
        let mut fields = FieldList::begin(reader)?;
        match number {
            TARGET => Ok(Target {
                coordinator: false,
                address: fields.text()?,
                durable: fields.uint()?,
                expiry_policy: fields.text()?,
                timeout: fields.uint()?,
                dynamic: fields.boolean()?,
                dynamic_node_properties: fields.map()?,
                capabilities: fields.symbols()?,
            }),
            COORDINATOR => {
                Ok(Target { coordinator: true, capabilities: fields.symbols()?, ..Target::default() })
            }
            _ => Err(DecodeError::Expected("a target")),
        }
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        if self.coordinator {
            writer::descriptor(out, COORDINATOR);
            return list::write(out, |fields| fields.symbols(&self.capabilities));
        }
        writer::descriptor(out, TARGET);
        list::write(out, |fields| {
            fields.string(self.address.as_deref());
            fields.uint(self.durable);
            fields.symbol(self.expiry_policy.as_deref());
            fields.uint(self.timeout);
            fields.boolean(self.dynamic);
            fields.map(&self.dynamic_node_properties);
            fields.symbols(&self.capabilities);
        });
    }
}
