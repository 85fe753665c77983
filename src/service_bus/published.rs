//! A message of Service Bus on its way through a topic: fields that a message of ours has no word for, and what actions
//! change of the bytes that are kept.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::amqp::MessageProperties as AmqpProperties;
use crate::amqp::Value;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_properties;
use crate::engine::ActionChanges;
use crate::engine::TopicMessage;
use crate::error::Misuse;
use crate::message::Message;
use crate::message::NewMessage;
use crate::service_bus::incoming::encoded;
use crate::service_bus::property;
use crate::service_bus::raw_sections::RAW_SECTIONS;
use crate::service_bus::raw_sections::RawSections;

/// A message as the rules of a topic look at it.
pub(crate) fn published(message: Message) -> Result<TopicMessage, Misuse> {
    let mut published = TopicMessage::from(message.check()?);
    published.mend = Some(mend);
    let raw = published.message.headers.properties.get(RAW_SECTIONS).and_then(RawSections::of_property);
    let Some(given) = raw.and_then(|raw| raw.sections.properties().ok()) else { return Ok(published) };
    let fields = [("to", given.to), ("replytosessionid", given.reply_to_group_id)];
    let fields_set = fields.into_iter().filter_map(|(name, text)| Some((name, text?.to_string())));
    published.extra = fields_set.collect::<BTreeMap<_, _>>();
    Ok(published)
}

/// Brings what is kept of a message in line with what an action has changed.
fn mend(message: &mut NewMessage, changes: &ActionChanges) {
    let properties = &mut message.headers.properties;
    property::forget_set(properties, &changes.removed);
    // What is said without it, our words say.
    let Some(mut raw) = properties.get(RAW_SECTIONS).and_then(RawSections::of_property) else { return };
    let sections = &mut raw.sections;
    mend_application(sections, properties, &changes.removed);
    if !changes.fields.is_empty()
        && let Ok(mut given) = sections.properties()
    {
        changes.fields.iter().for_each(|(name, value)| set_field(&mut given, name, value.as_deref()));
        sections.properties = encoded(|out| encode_properties(out, &given));
    }
    let raw = raw.to_property();
    properties.insert(RAW_SECTIONS.to_owned(), raw);
}

fn mend_application(sections: &mut Sections, properties: &crate::header::Properties, removed: &[String]) {
    let mut sent = sections.application_properties().unwrap_or_default();
    sent.retain(|(name, _)| !removed.iter().any(|removed| name.as_str() == Some(removed)));
    let now = property::write(properties, &sent);
    sections.application_properties = match now.is_empty() {
        true => Bytes::new(),
        false => encoded(|out| encode_application_properties(out, &now)),
    };
}

fn set_field(given: &mut AmqpProperties, name: &str, value: Option<&str>) {
    match name {
        "contenttype" => given.content_type = value.map(Into::into),
        "correlationid" => given.correlation_id = value.map_or(Value::Null, Value::from),
        "label" | "subject" => given.subject = value.map(Into::into),
        "replyto" => given.reply_to = value.map(Into::into),
        "replytosessionid" => given.reply_to_group_id = value.map(Into::into),
        "sessionid" => given.group_id = value.map(Into::into),
        "to" => given.to = value.map(Into::into),
        _ => {}
    }
}
