//! A message of ours as clients of Service Bus receive it: their own bytes where they sent it, with header and annotations
//! of this delivery.

use std::time::Duration;

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Map;
use crate::amqp::MessageProperties as AmqpProperties;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageHeader;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_delivery_annotations;
use crate::amqp::message::encode_message_annotations;
use crate::amqp::message::encode_properties;
use crate::clock::Timestamp;
use crate::engine::DeadLetter;
use crate::engine::Deferral;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::ReceivedMessage;
use crate::header::DEAD_LETTER_SOURCE;
use crate::header::FIRST_NUMBER;
use crate::header::FORWARDED;
use crate::header::Headers;
use crate::header::ORIGINAL;
use crate::header::PropertyValue;
use crate::header::SET_BY_SETTLING;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::service_bus::holds::Expiry;
use crate::service_bus::holds::LockUuid;
use crate::service_bus::incoming::SCHEDULED;
use crate::service_bus::incoming::standard_properties;
use crate::service_bus::property;
use crate::service_bus::raw_sections::BodyForm;
use crate::service_bus::raw_sections::RAW_SECTIONS;
use crate::service_bus::raw_sections::RawSections;

/// The annotation of a delivery that says what it is settled by; by link it is the delivery's tag.
const LOCK_TOKEN: &str = "x-opt-lock-token";

/// Times to live that differ by less are the same: they are told by clocks that were read one after the other.
const EXPIRY_TOLERANCE_MS: u64 = 1_000;

/// What a client sees of where a message is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageStateWord {
    Active = 0,
    Deferred = 1,
    Scheduled = 2,
}

/// A message on its way out.
pub(crate) struct EncodedMessage<'a> {
    number: SequenceNumber,
    workflow_id: Option<&'a WorkflowId>,
    message_id: Option<&'a MessageId>,
    position: Option<u64>,
    /// How often it failed, as Service Bus counts.
    failures: u32,
    accepted_at: Timestamp,
    expires_at: Option<Timestamp>,
    scheduled_at: Option<Timestamp>,
    headers: &'a Headers,
    body: &'a Bytes,
    dead_letter: Option<&'a DeadLetter>,
    pub(crate) state: MessageStateWord,
    pub(crate) locked_until: Option<Timestamp>,
    /// What it is settled by, if it is locked.
    pub(crate) lock_token: Option<LockUuid>,
}

/// How often a message failed, as Service Bus counts: a delivery under way has not failed, and neither has the one that made
/// it a dead letter.
fn failures_of(delivery_count: u32, dead_letter: Option<&DeadLetter>, is_out: bool) -> u32 {
    let since = dead_letter.map_or(0, |dead_letter| dead_letter.deliveries);
    let before = delivery_count.saturating_sub(since).saturating_sub(u32::from(dead_letter.is_some()));
    (before + since).saturating_sub(u32::from(is_out))
}

impl<'a> EncodedMessage<'a> {
    /// A message that was handed out. Its count includes this time, that of Service Bus does not.
    pub(crate) fn handed(message: &'a ReceivedMessage) -> EncodedMessage<'a> {
        EncodedMessage {
            number: message.sequence_number,
            workflow_id: message.workflow_id.as_ref(),
            message_id: message.message_id.as_ref(),
            position: None,
            failures: failures_of(message.delivery_count, message.dead_letter.as_ref(), true),
            accepted_at: message.accepted_at,
            expires_at: message.expires_at,
            scheduled_at: None,
            headers: &message.headers,
            body: &message.body,
            dead_letter: message.dead_letter.as_ref(),
            state: MessageStateWord::Active,
            locked_until: None,
            lock_token: None,
        }
    }

    /// A message that is looked at.
    pub(crate) fn seen(view: &'a MessageView) -> EncodedMessage<'a> {
        let (state, scheduled_at, dead_letter) = match &view.status {
            MessageStatus::Deferred { why: Deferral::ByConsumer, .. } => {
                (MessageStateWord::Deferred, None, None)
            }
            MessageStatus::Scheduled { until } => (MessageStateWord::Scheduled, Some(*until), None),
            MessageStatus::DeadLettered(dead_letter) if dead_letter.deferred => {
                (MessageStateWord::Deferred, None, Some(dead_letter))
            }
            MessageStatus::DeadLettered(dead_letter) => (MessageStateWord::Active, None, Some(dead_letter)),
            _ => (MessageStateWord::Active, None, None),
        };
        let is_out = view.locked_until.is_some();
        EncodedMessage {
            number: view.sequence_number,
            workflow_id: view.workflow_id.as_ref(),
            message_id: view.message_id.as_ref(),
            position: view.position,
            failures: failures_of(view.delivery_count, dead_letter, is_out),
            accepted_at: view.accepted_at,
            expires_at: view.expires_at.filter(|_| dead_letter.is_none()),
            scheduled_at,
            headers: &view.headers,
            body: &view.body,
            dead_letter,
            state,
            locked_until: None,
            lock_token: None,
        }
    }

    /// The bytes of the message.
    pub(crate) fn encode(&self) -> Bytes {
        let raw = self.headers.properties.get(RAW_SECTIONS).and_then(RawSections::of_property);
        let mut out = BytesMut::with_capacity(256 + self.body.len());
        self.header(raw.as_ref()).encode(&mut out);
        let annotations = self.delivery_annotations(raw.as_ref());
        if !annotations.is_empty() {
            encode_delivery_annotations(&mut out, &annotations);
        }
        encode_message_annotations(&mut out, &self.annotations(raw.as_ref()));
        match &raw {
            Some(raw) => self.encode_raw(&mut out, raw),
            None => self.encode_plain(&mut out),
        }
        out.freeze()
    }

    fn header(&self, raw: Option<&RawSections>) -> MessageHeader {
        let sent = raw.and_then(|raw| raw.sections.header().ok()).unwrap_or_default();
        MessageHeader {
            durable: sent.durable,
            priority: sent.priority,
            first_acquirer: sent.first_acquirer,
            ttl_ms: self.lasts_ms(raw).map(|lasts_ms| u32::try_from(lasts_ms).unwrap_or(u32::MAX)),
            delivery_count: Some(self.failures),
        }
    }

    /// What the message is settled by, and what its sender has said there.
    fn delivery_annotations(&self, raw: Option<&RawSections>) -> Map {
        let mut annotations =
            raw.and_then(|raw| raw.sections.delivery_annotations().ok()).unwrap_or_default();
        annotations.retain(|(name, _)| name.as_str() != Some(LOCK_TOKEN));
        annotations.extend(self.lock_token.map(|token| (Value::symbol(LOCK_TOKEN), Value::Uuid(token.0))));
        annotations
    }

    /// The time to live, to 10 ms: it is the difference of instants of two clocks, which are read one after the other. That of a
    /// message for later begins when it is due.
    fn lasts_ms(&self, raw: Option<&RawSections>) -> Option<u64> {
        let expires_at = self.expires_at?;
        let sent = raw.and_then(|raw| raw.sections.message_annotations().ok()).unwrap_or_default();
        let begins_at = self.scheduled_at.or(due_at(&sent)).unwrap_or_default().max(self.accepted_at);
        Some(ten_ms(expires_at.since(begins_at)))
    }

    fn annotations(&self, raw: Option<&RawSections>) -> Map {
        let number = i64::try_from(self.number.get()).unwrap_or(i64::MAX);
        let sent = raw.and_then(|raw| raw.sections.message_annotations().ok()).unwrap_or_default();
        let own = [
            ("x-opt-enqueued-time", Some(self.enqueued_at(&sent))),
            ("x-opt-sequence-number", Some(Value::Long(number))),
            ("x-opt-enqueue-sequence-number", Some(Value::Long(self.first_number().unwrap_or(number)))),
            ("x-opt-deadletter-source", self.dead_letter_source()),
            ("x-opt-message-state", Some(Value::Int(self.state as i32))),
            ("x-opt-locked-until", self.locked_until.map(time)),
            (SCHEDULED, self.scheduled_at.map(time)),
        ];
        let mut annotations: Map =
            own.into_iter().filter_map(|(name, value)| Some((Value::symbol(name), value?))).collect();
        let own = annotations.len();
        for (name, value) in sent {
            let is_ours = |text: &str| annotations[..own].iter().any(|(own, _)| own.as_str() == Some(text));
            if !name.as_str().is_some_and(is_ours) {
                annotations.push((name, value));
            }
        }
        annotations
    }

    /// The number that a forwarded message had in the entity to which it was sent.
    fn first_number(&self) -> Option<i64> {
        match self.headers.properties.get(FIRST_NUMBER)? {
            PropertyValue::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The entity in which a message became a dead letter that was forwarded since.
    fn dead_letter_source(&self) -> Option<Value> {
        match self.headers.properties.get(DEAD_LETTER_SOURCE)? {
            PropertyValue::Text(path) => Some(Value::from(path.as_str())),
            _ => None,
        }
    }

    /// When it was enqueued: one for later is when it is due.
    fn enqueued_at(&self, sent: &Map) -> Value {
        match due_at(sent) {
            Some(due_at) if self.state != MessageStateWord::Scheduled => time(due_at.max(self.accepted_at)),
            _ => time(self.accepted_at),
        }
    }

    /// A message that came from Service Bus: what was sent, and what was changed since.
    fn encode_raw(&self, out: &mut BytesMut, raw: &RawSections) {
        match self.changed_expiry(raw) {
            Some(properties) => encode_properties(out, &properties),
            None => out.put_slice(&raw.sections.properties),
        }
        let is_edited = self.headers.properties.contains_key(ORIGINAL);
        let is_as_sent = self.failures == 0
            && self.dead_letter.is_none()
            && !is_edited
            && ![FORWARDED, SET_BY_SETTLING].iter().any(|by| self.headers.properties.contains_key(*by));
        match is_as_sent {
            true => out.put_slice(&raw.sections.application_properties),
            false => {
                let sent = raw.sections.application_properties().unwrap_or_default();
                let now = self.application_properties(&sent);
                match now == sent {
                    true => out.put_slice(&raw.sections.application_properties),
                    false => encode_application_properties(out, &now),
                }
            }
        }
        raw.form.fitting(self.body).encode(out, self.body);
        out.put_slice(&raw.sections.footer);
    }

    /// When the message expires, and when it does by what the client reads, which is the sender's clock where it is said so.
    pub(crate) fn expiry(&self) -> Option<Expiry> {
        let ends_at = self.expires_at?;
        let raw = self.headers.properties.get(RAW_SECTIONS).and_then(RawSections::of_property);
        let reported = raw.filter(|raw| self.changed_expiry(raw).is_none());
        let reported = reported.and_then(|raw| raw.sections.properties().ok()?.absolute_expiry_time);
        let reported = reported.and_then(|at_ms| u64::try_from(at_ms).ok()).map(Timestamp::from_millis);
        Some(Expiry { ends_at, reported_at: reported.map_or(ends_at, |reported| reported.min(ends_at)) })
    }

    /// What was sent, with the expiry that the message has now; nothing if that is still what was sent. Clients look at it
    /// with their own clock: a dead letter, which never expires, or a message that was given another time to live, would
    /// be dropped by them.
    fn changed_expiry(&self, raw: &RawSections) -> Option<AmqpProperties> {
        let mut properties = raw.sections.properties().ok()?;
        let reported_ms = properties.absolute_expiry_time?;
        let was_ms = properties.creation_time.map(|created_ms| reported_ms.saturating_sub(created_ms));
        // Whoever sends a message for later reckons from now, and not from when it is due.
        let lasts_ms = self.expires_at.map(|expires_at| ten_ms(expires_at.since(self.accepted_at)));
        let is_as_reported = match (was_ms.and_then(|was_ms| u64::try_from(was_ms).ok()), lasts_ms) {
            (Some(was_ms), Some(lasts_ms)) => was_ms.abs_diff(lasts_ms) < EXPIRY_TOLERANCE_MS,
            (was_ms, lasts_ms) => was_ms == lasts_ms,
        };
        if is_as_reported {
            return None;
        }
        properties.absolute_expiry_time =
            self.expires_at.map(|at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX));
        Some(properties)
    }

    /// A message that says all there is to say, wherever it came from.
    fn encode_plain(&self, out: &mut BytesMut) {
        encode_properties(out, &self.properties());
        let application = self.application_properties(&[]);
        if !application.is_empty() {
            encode_application_properties(out, &application);
        }
        BodyForm::Data.encode(out, self.body);
    }

    /// Clients need an ID: a message that has none is called by its number.
    fn properties(&self) -> AmqpProperties {
        let number = self.number.to_string();
        let id = self.message_id.map_or(number.as_str(), MessageId::as_str);
        let mut properties =
            standard_properties(Some(id), self.workflow_id.map(WorkflowId::as_str), self.headers);
        properties.group_sequence = self.position.and_then(|position| u32::try_from(position).ok());
        properties
    }

    fn application_properties(&self, sent: &[(Value, Value)]) -> Map {
        let mut entries = property::write(&self.headers.properties, sent);
        property::retype(&mut entries, &self.headers.properties);
        if let Some(dead_letter) = self.dead_letter {
            property::set(&mut entries, "DeadLetterReason", Value::from(dead_letter.reason.as_str()));
            let description = Value::from(dead_letter.description.as_str());
            property::set(&mut entries, "DeadLetterErrorDescription", description);
        }
        entries
    }
}

/// A time in milliseconds, in steps of ten.
fn ten_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_add(5) / 10 * 10
}

/// When a message is due that was sent for later.
fn due_at(sent: &Map) -> Option<Timestamp> {
    let due_ms = lookup(sent, SCHEDULED).and_then(Value::as_timestamp)?;
    u64::try_from(due_ms).ok().map(Timestamp::from_millis)
}

fn time(at: Timestamp) -> Value {
    Value::Timestamp(i64::try_from(at.as_millis()).unwrap_or(i64::MAX))
}
