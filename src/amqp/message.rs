//! A message as its sections lie in a payload, each with its own bytes.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::fields::FieldList;
use crate::amqp::fields::descriptor;
use crate::amqp::list;
use crate::amqp::properties::MessageProperties;
use crate::amqp::reader::Reader;
use crate::amqp::value::Map;
use crate::amqp::value::Value;
use crate::amqp::writer;
use crate::limits::AMQP_DATA_SECTIONS_MAX;

const HEADER: u64 = 0x70;
const DELIVERY_ANNOTATIONS: u64 = 0x71;
const MESSAGE_ANNOTATIONS: u64 = 0x72;
const PROPERTIES: u64 = 0x73;
const APPLICATION_PROPERTIES: u64 = 0x74;
const DATA: u64 = 0x75;
const SEQUENCE: u64 = 0x76;
const VALUE: u64 = 0x77;
const FOOTER: u64 = 0x78;

const NAMES: &[(&str, u64)] = &[
    ("amqp:header:list", HEADER),
    ("amqp:delivery-annotations:map", DELIVERY_ANNOTATIONS),
    ("amqp:message-annotations:map", MESSAGE_ANNOTATIONS),
    ("amqp:properties:list", PROPERTIES),
    ("amqp:application-properties:map", APPLICATION_PROPERTIES),
    ("amqp:data:binary", DATA),
    ("amqp:amqp-sequence:list", SEQUENCE),
    ("amqp:amqp-value:*", VALUE),
    ("amqp:footer:map", FOOTER),
];

/// The sections of a message as they came, each a slice of the payload that begins with its descriptor; empty, if it
/// is not there. Nothing inside a section is looked at before it is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sections {
    /// Durability, priority, time to live, delivery count.
    pub header: Bytes,
    /// Annotations for the next hop.
    pub delivery_annotations: Bytes,
    /// Annotations for the way.
    pub message_annotations: Bytes,
    /// The bare message: properties, application properties and body, as the sender wrote them.
    pub bare: Bytes,
    /// The standard properties, within the bare message.
    pub properties: Bytes,
    /// The application's properties, within the bare message.
    pub application_properties: Bytes,
    /// All sections of the body, within the bare message.
    pub body: Bytes,
    /// What follows the bare message.
    pub footer: Bytes,
}

impl Sections {
    /// Finds the sections of a payload. Delivery annotations are also found behind the body.
    ///
    /// # Errors
    /// It is no message: a section is unknown, cut off, out of order, or twice there.
    pub fn parse(payload: &Bytes) -> Result<Sections, DecodeError> {
        let mut sections = Sections::default();
        let mut reader = Reader::new(payload);
        let (mut last, mut bare, mut body) = (0, None, None);
        let mut bare_end = 0;
        while !reader.is_empty() {
            let from = reader.at();
            let number = descriptor(&mut reader, NAMES)?;
            reader.skip()?;
            let section = payload.slice(from..reader.at());
            if number == DELIVERY_ANNOTATIONS && last >= DATA && sections.delivery_annotations.is_empty() {
                // Not where they belong, but azure-servicebus for Python writes them there.
                sections.delivery_annotations = section;
                last = last.max(VALUE);
                continue;
            }
            let is_repeatable = number == DATA || number == SEQUENCE;
            if number < last || (number == last && !is_repeatable) || (last >= DATA && number == VALUE) {
                return Err(DecodeError::Order);
            }
            last = number;
            match number {
                HEADER => sections.header = section,
                DELIVERY_ANNOTATIONS => sections.delivery_annotations = section,
                MESSAGE_ANNOTATIONS => sections.message_annotations = section,
                PROPERTIES => sections.properties = section,
                APPLICATION_PROPERTIES => sections.application_properties = section,
                DATA | SEQUENCE | VALUE => body = body.or(Some(from)),
                FOOTER => sections.footer = section,
                _ => return Err(DecodeError::Expected("a section of a message")),
            }
            if (PROPERTIES..=VALUE).contains(&number) {
                bare = bare.or(Some(from));
                bare_end = reader.at();
            }
        }
        sections.bare = bare.map_or_else(Bytes::new, |from| payload.slice(from..bare_end));
        sections.body = body.map_or_else(Bytes::new, |from| payload.slice(from..bare_end));
        Ok(sections)
    }

    /// The header; its defaults, if there is none.
    ///
    /// # Errors
    /// It is malformed.
    pub fn header(&self) -> Result<MessageHeader, DecodeError> {
        if self.header.is_empty() { Ok(MessageHeader::default()) } else { MessageHeader::read(&self.header) }
    }

    /// The annotations of the message.
    ///
    /// # Errors
    /// They are malformed.
    pub fn message_annotations(&self) -> Result<Map, DecodeError> {
        map(&self.message_annotations)
    }

    /// The annotations of the delivery.
    ///
    /// # Errors
    /// They are malformed.
    pub fn delivery_annotations(&self) -> Result<Map, DecodeError> {
        map(&self.delivery_annotations)
    }

    /// The standard properties; all are absent, if there is no such section.
    ///
    /// # Errors
    /// They are malformed.
    pub fn properties(&self) -> Result<MessageProperties, DecodeError> {
        if self.properties.is_empty() {
            return Ok(MessageProperties::default());
        }
        let mut reader = Reader::new(&self.properties);
        descriptor(&mut reader, NAMES)?;
        MessageProperties::read(&mut FieldList::begin(&mut reader)?)
    }

    /// The application's properties.
    ///
    /// # Errors
    /// They are malformed.
    pub fn application_properties(&self) -> Result<Map, DecodeError> {
        map(&self.application_properties)
    }

    /// What the body is.
    ///
    /// # Errors
    /// It is malformed, or has more than [`AMQP_DATA_SECTIONS_MAX`] sections.
    pub fn body(&self) -> Result<MessageBody, DecodeError> {
        let mut reader = Reader::new(&self.body);
        let mut data = Vec::new();
        let mut lists = Vec::new();
        while !reader.is_empty() {
            let number = descriptor(&mut reader, NAMES)?;
            match (number, reader.value()?) {
                (DATA, Value::Binary(bytes)) => data.push(bytes),
                (SEQUENCE, Value::List(values)) => lists.push(values),
                (VALUE, value) => return Ok(MessageBody::Value(value)),
                _ => return Err(DecodeError::Expected("a body")),
            }
            if data.len() + lists.len() > AMQP_DATA_SECTIONS_MAX {
                return Err(DecodeError::Count);
            }
        }
        match (data.is_empty(), lists.is_empty()) {
            (true, true) => Ok(MessageBody::Empty),
            (false, true) => Ok(MessageBody::Data(data)),
            (true, false) => Ok(MessageBody::Sequence(lists)),
            (false, false) => Err(DecodeError::Order),
        }
    }
}

/// The body of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageBody {
    /// There is none.
    Empty,
    /// Sections of bytes. Most messages have one; in a batch, each is a message.
    Data(Vec<Bytes>),
    /// Sections of lists.
    Sequence(Vec<Vec<Value>>),
    /// One value.
    Value(Value),
}

/// What a hop needs to know of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageHeader {
    /// Whether it must survive.
    pub durable: Option<bool>,
    /// The higher, the sooner.
    pub priority: Option<u8>,
    /// How long it is worth delivering.
    pub ttl_ms: Option<u32>,
    /// Whether nobody had it before.
    pub first_acquirer: Option<bool>,
    /// How many deliveries failed before.
    pub delivery_count: Option<u32>,
}

impl MessageHeader {
    fn read(section: &Bytes) -> Result<MessageHeader, DecodeError> {
        let mut reader = Reader::new(section);
        descriptor(&mut reader, NAMES)?;
        let mut fields = FieldList::begin(&mut reader)?;
        Ok(MessageHeader {
            durable: fields.boolean()?,
            priority: fields.ubyte()?,
            ttl_ms: fields.uint()?,
            first_acquirer: fields.boolean()?,
            delivery_count: fields.uint()?,
        })
    }

    /// Appends the section.
    pub fn encode(&self, out: &mut BytesMut) {
        writer::descriptor(out, HEADER);
        list::write(out, |fields| {
            fields.boolean(self.durable);
            fields.ubyte(self.priority);
            fields.uint(self.ttl_ms);
            fields.boolean(self.first_acquirer);
            fields.uint(self.delivery_count);
        });
    }
}

/// Appends a section of delivery annotations.
pub fn encode_delivery_annotations(out: &mut BytesMut, annotations: &[(Value, Value)]) {
    writer::descriptor(out, DELIVERY_ANNOTATIONS);
    writer::map(out, annotations);
}

/// Appends a section of message annotations.
pub fn encode_message_annotations(out: &mut BytesMut, annotations: &[(Value, Value)]) {
    writer::descriptor(out, MESSAGE_ANNOTATIONS);
    writer::map(out, annotations);
}

/// Appends a section of standard properties.
pub fn encode_properties(out: &mut BytesMut, properties: &MessageProperties) {
    writer::descriptor(out, PROPERTIES);
    properties.write(out);
}

/// Appends a section of the application's properties.
pub fn encode_application_properties(out: &mut BytesMut, properties: &[(Value, Value)]) {
    writer::descriptor(out, APPLICATION_PROPERTIES);
    writer::map(out, properties);
}

/// Appends a section of bytes as a body, or a part of one.
pub fn encode_data(out: &mut BytesMut, bytes: &[u8]) {
    writer::descriptor(out, DATA);
    writer::binary(out, bytes);
}

/// Appends a body of one value.
pub fn encode_value(out: &mut BytesMut, value: &Value) {
    writer::descriptor(out, VALUE);
    writer::value(out, value);
}

fn map(section: &Bytes) -> Result<Map, DecodeError> {
    if section.is_empty() {
        return Ok(Map::new());
    }
    let mut reader = Reader::new(section);
    descriptor(&mut reader, NAMES)?;
    match reader.value()? {
        Value::Map(entries) => Ok(entries),
        Value::Null => Ok(Map::new()),
        _ => Err(DecodeError::Expected("a map")),
    }
}
