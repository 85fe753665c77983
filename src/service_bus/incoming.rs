//! A message as clients of Service Bus send it, as a message of ours.

use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::DecodeError;
use crate::amqp::MessageProperties as AmqpProperties;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_properties;
use crate::clock::Timestamp;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::header::check_properties;
use crate::header::is_internal;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::service_bus::property;
use crate::service_bus::raw_sections::BodyForm;
use crate::service_bus::raw_sections::RAW_SECTIONS;
use crate::service_bus::raw_sections::RawSections;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;

/// The annotation that says when a message is to be offered.
pub(crate) const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";

/// The property that says a message's position inside its workflow.
const POSITION: &str = "seriatim-position";

/// The property that names a message's predecessor; empty for the first of a workflow.
const AFTER: &str = "seriatim-after";

/// The priority of a message whose sender names none.
const DEFAULT_PRIORITY: u8 = 4;

/// Reads a message for a queue of an order. `new_id` is what it is called if it has no ID.
pub(crate) fn read(payload: &Bytes, order: Order, new_id: &str) -> Result<Message, AmqpRefusal> {
    let mut sections = Sections::parse(payload)?;
    let mut given = sections.properties()?;
    if given.message_id.is_null() {
        given.message_id = Value::from(new_id);
        sections.properties = encoded(|out| encode_properties(out, &given));
    }
    let application = sections.application_properties()?;
    let (form, body) = BodyForm::of(&sections, &sections.body()?);
    let mut message = with_headers(Message::new(body), &given);
    message.headers.properties = property::read(&application);
    if let Some(name) = message.headers.properties.keys().find(|name| is_internal(name)) {
        return Err(AmqpRefusal::argument(format!("the property {name} is reserved")));
    }
    // Before anything is done with each of them.
    check_properties(&message.headers.properties)?;
    message = with_times(message, &sections, &given)?;
    message = with_place(message, &given, order)?;
    sections.header = header_to_keep(&sections)?;
    if !is_given(&message, &sections, form) {
        let raw = RawSections { form, sections }.to_property();
        message.headers.properties.insert(RAW_SECTIONS.to_owned(), raw);
    }
    Ok(message)
}

/// The header, if it says anything that a message of ours has no word for: how long it lives has one, and how often it was
/// delivered is not its sender's to say.
fn header_to_keep(sections: &Sections) -> Result<Bytes, DecodeError> {
    let header = sections.header()?;
    let is_plain = header.durable != Some(true)
        && header.first_acquirer != Some(true)
        && header.priority.is_none_or(|priority| priority == DEFAULT_PRIORITY);
    Ok(if is_plain { Bytes::new() } else { sections.header.clone() })
}

fn with_headers(mut message: Message, given: &AmqpProperties) -> Message {
    let short =
        |text: Option<&str>| text.filter(|text| text.len() <= limits::HEADER_BYTES_MAX).map(str::to_owned);
    message.message_id = property::id_text(&given.message_id);
    message.workflow_id = given.group_id.as_deref().filter(|id| !id.is_empty()).map(str::to_owned);
    message.headers.subject = short(given.subject.as_deref());
    message.headers.content_type = short(given.content_type.as_deref());
    message.headers.reply_to = short(given.reply_to.as_deref());
    message.headers.correlation_id = short(property::id_text(&given.correlation_id).as_deref());
    message
}

fn with_times(
    mut message: Message,
    sections: &Sections,
    given: &AmqpProperties,
) -> Result<Message, DecodeError> {
    let lasts = match (given.creation_time, given.absolute_expiry_time) {
        (Some(created), Some(expires)) if expires > created => Some(expires.abs_diff(created)),
        _ => sections.header()?.ttl_ms.map(u64::from),
    };
    if let Some(lasts_ms) = lasts.filter(|lasts_ms| *lasts_ms > 0) {
        let lasts = Duration::from_millis(lasts_ms);
        message.time_to_live = (lasts <= limits::DURATION_MAX).then_some(lasts);
    }
    let annotations = sections.message_annotations()?;
    let at = lookup(&annotations, SCHEDULED).and_then(Value::as_timestamp);
    if let Some(at_ms) = at.and_then(|at_ms| u64::try_from(at_ms).ok()) {
        message.schedule_at = Some(Timestamp::from_millis(at_ms));
    }
    Ok(message)
}

/// A message that was read for another queue, with the place that its sender has said for one of this order.
pub(crate) fn placed_anew(message: Message, order: Order) -> Result<Message, AmqpRefusal> {
    let raw = message.headers.properties.get(RAW_SECTIONS).and_then(RawSections::of_property);
    let given = raw.and_then(|raw| raw.sections.properties().ok()).unwrap_or_default();
    with_place(message, &given, order)
}

/// Where the message belongs inside its workflow, if its queue has such places.
fn with_place(mut message: Message, given: &AmqpProperties, order: Order) -> Result<Message, AmqpRefusal> {
    match order {
        Order::Position { .. } => {
            message.position = match message.headers.properties.get(POSITION) {
                Some(property) => Some(position(property)?),
                None => given.group_sequence.filter(|at| *at > 0).map(u64::from),
            };
        }
        Order::After => {
            message.after = match message.headers.properties.get(AFTER) {
                Some(PropertyValue::Text(id)) if id.is_empty() => Some(None),
                Some(PropertyValue::Text(id)) => Some(Some(id.clone())),
                Some(_) => return Err(AmqpRefusal::argument(format!("the property {AFTER} is no text"))),
                None => None,
            };
        }
        _ => {}
    }
    Ok(message)
}

fn position(property: &PropertyValue) -> Result<u64, AmqpRefusal> {
    let position = match property {
        PropertyValue::Integer(number) => u64::try_from(*number).ok(),
        PropertyValue::Text(text) => text.parse().ok(),
        _ => None,
    };
    position.ok_or_else(|| {
        AmqpRefusal::argument(format!("the property {POSITION} is no whole number above zero"))
    })
}

/// Whether the message says all that was sent, so that nothing has to be kept.
fn is_given(message: &Message, sections: &Sections, form: BodyForm) -> bool {
    form == BodyForm::Data
        && sections.header.is_empty()
        && sections.delivery_annotations.is_empty()
        && sections.message_annotations.is_empty()
        && sections.footer.is_empty()
        && sections.properties == encoded(|out| encode_properties(out, &properties_of(message)))
        && sections.application_properties == application_properties_of(&message.headers.properties)
}

fn properties_of(message: &Message) -> AmqpProperties {
    let headers = &message.headers;
    standard_properties(message.message_id.as_deref(), message.workflow_id.as_deref(), headers)
}

/// The standard properties as far as headers say them.
pub(crate) fn standard_properties(
    message_id: Option<&str>,
    workflow_id: Option<&str>,
    headers: &crate::header::Headers,
) -> AmqpProperties {
    AmqpProperties {
        message_id: message_id.map_or(Value::Null, Value::from),
        subject: headers.subject.as_deref().map(Into::into),
        reply_to: headers.reply_to.as_deref().map(Into::into),
        correlation_id: headers.correlation_id.as_deref().map_or(Value::Null, Value::from),
        content_type: headers.content_type.as_deref().map(Into::into),
        group_id: workflow_id.map(Into::into),
        ..AmqpProperties::default()
    }
}

/// The section of application properties; empty without any.
fn application_properties_of(properties: &Properties) -> Bytes {
    match properties.is_empty() {
        true => Bytes::new(),
        false => encoded(|out| encode_application_properties(out, &property::write(properties, &[]))),
    }
}

pub(crate) fn encoded(encode: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    encode(&mut out);
    out.freeze()
}

impl From<DecodeError> for AmqpRefusal {
    fn from(malformed: DecodeError) -> AmqpRefusal {
        AmqpRefusal::new(condition::DECODE_ERROR, malformed.to_string())
    }
}
