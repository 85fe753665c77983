//! What a selector of JMS means by the names of a message: its headers, and the properties of the application.

use std::borrow::Cow;

use bytes::Bytes;

use crate::amqp::Map;
use crate::amqp::MessageProperties;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageHeader;
use crate::amqp::message::Sections;
use crate::selector::Operand;
use crate::selector::Selector;

/// The priority of a message that says none.
const PRIORITY: u8 = 4;

/// Whether a message, as clients get it, is one that a selector wants. What cannot be read of it is not there.
pub(crate) fn is_selected(selector: &Selector, payload: &Bytes) -> bool {
    let Ok(sections) = Sections::parse(payload) else { return false };
    let header = sections.header().unwrap_or_default();
    let properties = sections.properties().unwrap_or_default();
    let application = sections.application_properties().unwrap_or_default();
    selector.selects(|name| operand(name, (&header, &properties, &application)))
}

fn operand<'m>(
    name: &str,
    (header, properties, application): (&MessageHeader, &'m MessageProperties, &'m Map),
) -> Operand<'m> {
    match name {
        "JMSPriority" => Operand::Integer(header.priority.unwrap_or(PRIORITY).into()),
        "JMSDeliveryMode" => text(match header.durable {
            Some(true) => "PERSISTENT",
            _ => "NON_PERSISTENT",
        }),
        "JMSMessageID" => identifier(&properties.message_id),
        "JMSCorrelationID" => identifier(&properties.correlation_id),
        "JMSTimestamp" => properties.creation_time.map_or(Operand::Null, Operand::Integer),
        "JMSType" => properties.subject.as_ref().map_or(Operand::Null, |subject| text(subject.as_str())),
        "JMSXGroupID" => properties.group_id.as_ref().map_or(Operand::Null, |group| text(group.as_str())),
        "JMSXGroupSeq" => {
            properties.group_sequence.map_or(Operand::Null, |place| Operand::Integer(place.into()))
        }
        "JMSXDeliveryCount" => Operand::Integer(i64::from(header.delivery_count.unwrap_or_default()) + 1),
        "JMSXUserID" => match properties.user_id.as_deref().map(std::str::from_utf8) {
            Some(Ok(user)) => text(user),
            _ => Operand::Null,
        },
        name => lookup(application, name).map_or(Operand::Null, property),
    }
}

fn text(text: &str) -> Operand<'_> {
    Operand::Text(Cow::Borrowed(text))
}

fn identifier(value: &Value) -> Operand<'_> {
    match value {
        Value::Ulong(number) => Operand::Text(Cow::Owned(number.to_string())),
        value => value.as_str().map_or(Operand::Null, text),
    }
}

/// Truth values, numbers and text; there is nothing to say of other types.
fn property(value: &Value) -> Operand<'_> {
    match value {
        Value::Boolean(truth) => Operand::Boolean(*truth),
        Value::Float(number) => Operand::Float((*number).into()),
        Value::Double(number) => Operand::Float(*number),
        Value::Timestamp(at_ms) => Operand::Integer(*at_ms),
        Value::Char(character) => Operand::Text(Cow::Owned(character.to_string())),
        value => match (value.as_i64(), value.as_u64(), value.as_str()) {
            (Some(number), ..) => Operand::Integer(number),
            (_, Some(number), _) => Operand::Float(number as f64),
            (.., Some(found)) => text(found),
            _ => Operand::Null,
        },
    }
}
