//! A message of ours as clients of Service Bus receive it: their own bytes where they sent it, with header and annotations
//! of this delivery.

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Map;
use crate::amqp::Properties as AmqpProperties;
use crate::amqp::Value;
use crate::amqp::message::Header;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_message_annotations;
use crate::amqp::message::encode_properties;
use crate::clock::Timestamp;
use crate::engine::DeadLetter;
use crate::engine::Deferral;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::Received;
use crate::header::Headers;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::service_bus::incoming::SCHEDULED;
use crate::service_bus::incoming::standard_properties;
use crate::service_bus::keepsake::Form;
use crate::service_bus::keepsake::KEPT;
use crate::service_bus::keepsake::Keepsake;
use crate::service_bus::property;

/// What a client sees of where a message is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Active = 0,
    Deferred = 1,
    Scheduled = 2,
}

/// A message on its way out.
pub(crate) struct Outgoing<'a> {
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
    letter: Option<&'a DeadLetter>,
    pub(crate) state: State,
    pub(crate) locked_until: Option<Timestamp>,
}

impl<'a> Outgoing<'a> {
    /// A message that was handed out. Its count includes this time, that of Service Bus does not.
    pub(crate) fn handed(message: &'a Received) -> Outgoing<'a> {
        Outgoing {
            number: message.sequence_number,
            workflow_id: message.workflow_id.as_ref(),
            message_id: message.message_id.as_ref(),
            position: None,
            failures: message.delivery_count.saturating_sub(1),
            accepted_at: message.accepted_at,
            expires_at: message.expires_at,
            scheduled_at: None,
            headers: &message.headers,
            body: &message.body,
            letter: None,
            state: State::Active,
            locked_until: None,
        }
    }

    /// A message that is looked at, or a dead letter that failed so often since it became one.
    pub(crate) fn seen(view: &'a MessageView, failures: u32) -> Outgoing<'a> {
        let (state, scheduled_at, letter) = match &view.status {
            MessageStatus::Deferred { why: Deferral::Asked, .. } => (State::Deferred, None, None),
            MessageStatus::Scheduled { until } => (State::Scheduled, Some(*until), None),
            MessageStatus::DeadLettered(letter) => (State::Active, None, Some(letter)),
            _ => (State::Active, None, None),
        };
        let was_out = matches!(view.status, MessageStatus::Locked { .. } | MessageStatus::DeadLettered(_));
        Outgoing {
            number: view.sequence_number,
            workflow_id: view.workflow_id.as_ref(),
            message_id: view.message_id.as_ref(),
            position: view.position,
            failures: view.delivery_count.saturating_sub(u32::from(was_out)) + failures,
            accepted_at: view.accepted_at,
            expires_at: view.expires_at.filter(|_| letter.is_none()),
            scheduled_at,
            headers: &view.headers,
            body: &view.body,
            letter,
            state,
            locked_until: None,
        }
    }

    /// The bytes of the message.
    pub(crate) fn encode(&self) -> Bytes {
        let kept = self.headers.properties.get(KEPT).and_then(Keepsake::of_property);
        let mut out = BytesMut::with_capacity(256 + self.body.len());
        self.header().encode(&mut out);
        encode_message_annotations(&mut out, &self.annotations(kept.as_ref()));
        match &kept {
            Some(kept) => self.encode_kept(&mut out, kept),
            None => self.encode_plain(&mut out),
        }
        out.freeze()
    }

    fn header(&self) -> Header {
        let lasts = self.expires_at.map(|at| at.since(self.accepted_at).as_millis());
        Header {
            ttl_ms: lasts.map(|lasts_ms| u32::try_from(lasts_ms).unwrap_or(u32::MAX)),
            delivery_count: Some(self.failures),
            ..Header::default()
        }
    }

    fn annotations(&self, kept: Option<&Keepsake>) -> Map {
        let number = i64::try_from(self.number.get()).unwrap_or(i64::MAX);
        let own = [
            ("x-opt-enqueued-time", Some(time(self.accepted_at))),
            ("x-opt-sequence-number", Some(Value::Long(number))),
            ("x-opt-enqueue-sequence-number", Some(Value::Long(number))),
            ("x-opt-message-state", Some(Value::Int(self.state as i32))),
            ("x-opt-locked-until", self.locked_until.map(time)),
            (SCHEDULED, self.scheduled_at.map(time)),
        ];
        let mut annotations: Map =
            own.into_iter().filter_map(|(name, value)| Some((Value::symbol(name), value?))).collect();
        let sent = kept.and_then(|kept| kept.sections.message_annotations().ok()).unwrap_or_default();
        for (name, value) in sent {
            if !annotations.iter().any(|(own, _)| own.as_str() == name.as_str()) {
                annotations.push((name, value));
            }
        }
        annotations
    }

    /// A message that came from Service Bus: what was sent, and what was changed since.
    fn encode_kept(&self, out: &mut BytesMut, kept: &Keepsake) {
        out.put_slice(&kept.sections.properties);
        match self.failures == 0 && self.letter.is_none() {
            true => out.put_slice(&kept.sections.application_properties),
            false => {
                let sent = kept.sections.application_properties().unwrap_or_default();
                let now = self.application_properties(&sent);
                match now == sent {
                    true => out.put_slice(&kept.sections.application_properties),
                    false => encode_application_properties(out, &now),
                }
            }
        }
        kept.form.encode(out, self.body);
        out.put_slice(&kept.sections.footer);
    }

    /// A message that says all there is to say, wherever it came from.
    fn encode_plain(&self, out: &mut BytesMut) {
        encode_properties(out, &self.properties());
        let application = self.application_properties(&[]);
        if !application.is_empty() {
            encode_application_properties(out, &application);
        }
        Form::Data.encode(out, self.body);
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
        if let Some(letter) = self.letter {
            property::set(&mut entries, "DeadLetterReason", Value::from(letter.reason.as_str()));
            let description = Value::from(letter.description.as_str());
            property::set(&mut entries, "DeadLetterErrorDescription", description);
        }
        entries
    }
}

fn time(at: Timestamp) -> Value {
    Value::Timestamp(i64::try_from(at.as_millis()).unwrap_or(i64::MAX))
}
