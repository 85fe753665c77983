//! What the headers of a request say of the message in its body: ours, CloudEvents' and the trace's.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::header;
use percent_encoding::percent_decode;

use crate::api::WireDuration;
use crate::api::WireTime;
use crate::error::Misuse;
use crate::header::TRACE;
use crate::message::Message;

/// The headers of a message that is sent, and what they say.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("Seriatim-Workflow-Id", "The workflow it belongs to; must agree with what the queue's definition finds"),
    ("Seriatim-Position", "Its position inside the workflow"),
    ("Seriatim-After", "The message ID of the message it follows"),
    ("Seriatim-First", "`true`: it is the first of an after-ordered workflow"),
    ("Seriatim-Message-Id", "Its ID, by which duplicates are detected and successors name it"),
    ("Seriatim-Subject", "What it is about, in a word"),
    ("Seriatim-Correlation-Id", "The ID of the message or request it belongs to"),
    ("Seriatim-Reply-To", "Where an answer is expected"),
    ("Seriatim-Time-To-Live", "How long after its acceptance it expires, as `5m`"),
    ("Seriatim-Delay", "How long it is kept back from its acceptance: 30s, 5 min"),
    ("Seriatim-Schedule-At", "Until when it is kept back, as RFC 3339 or milliseconds since 1970"),
    ("Seriatim-Property-Name", "A property of its own; the last word is the property's name"),
    ("Idempotency-Key", "The same request, sent again with the same key, is accepted once"),
    ("traceparent", "The trace it belongs to; kept as a property"),
    (
        "ce-id",
        "CloudEvents, binary mode: the message ID; `ce-type` is the subject, `ce-partitionkey` the workflow",
    ),
];

/// Headers of the trace a message belongs to; kept as properties of the same name.
const TRACES: [&str; 2] = [TRACE, "tracestate"];

/// Applies the headers of a request to the message that is its body.
///
/// CloudEvents come in binary mode: `ce-id` is the message ID, `ce-type` the subject, `ce-partitionkey` the workflow
/// and `ce-sequence`, if it is a whole number, the position; the other attributes become properties. What our own
/// headers say goes before what those say.
pub(crate) fn message_of(headers: &HeaderMap, mut message: Message) -> Result<Message, Misuse> {
    message.headers.content_type = text(headers.get(header::CONTENT_TYPE), "content-type")?;
    check_version(headers)?;
    for (name, value) in headers {
        if let Some(attribute) = name.as_str().strip_prefix("ce-") {
            message = with_attribute(message, attribute, decoded(name, only(headers, name)?)?);
        } else if TRACES.contains(&name.as_str()) {
            message = message.property(name.as_str(), decoded(name, value)?);
        }
    }
    for name in headers.keys() {
        let Some(field) = name.as_str().strip_prefix("seriatim-") else { continue };
        message = with_field(message, name, field, decoded(name, only(headers, name)?)?)?;
    }
    Ok(message)
}

/// The value of a header that stands there once: of two, nobody knows which is meant.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a HeaderValue, Misuse> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(Misuse::new(name.to_string(), "is there more than once")),
    }
}

/// Later minor versions of CloudEvents only add; another major one could mean anything, and so could none.
fn check_version(headers: &HeaderMap) -> Result<(), Misuse> {
    let wrong = |problem| Err(Misuse::new("ce-specversion", problem));
    let mut versions = headers.get_all("ce-specversion").iter();
    match (versions.next().map(HeaderValue::as_bytes), versions.next()) {
        (Some(version), None) if version == b"1" || version.starts_with(b"1.") => Ok(()),
        (Some(_), None) => wrong("is not 1.0, the version of CloudEvents that is understood"),
        (Some(_), Some(_)) => wrong("is there more than once"),
        (None, _) if headers.keys().any(|name| name.as_str().starts_with("ce-")) => {
            wrong("is missing: every CloudEvent says its version, and ce- headers are those of an event")
        }
        (None, _) => Ok(()),
    }
}

fn with_attribute(message: Message, attribute: &str, value: String) -> Message {
    match (attribute, value.parse()) {
        ("id", _) => message.message_id(value),
        ("type", _) => message.subject(value),
        ("partitionkey", _) => message.workflow(value),
        ("sequence", Ok(position)) => message.position(position),
        _ => message.property(format!("ce-{attribute}"), value),
    }
}

fn with_field(
    mut message: Message,
    name: &HeaderName,
    field: &str,
    value: String,
) -> Result<Message, Misuse> {
    let wrong = |problem: String| Misuse::new(name.to_string(), problem);
    match field {
        "workflow-id" => message.workflow_id = Some(value),
        "position" => {
            let position = value.parse().map_err(|_| wrong("is not a whole number".to_owned()))?;
            // A sequence that an event brings is no position where the sender says the position.
            message.position = Some(position);
        }
        "after" if message.after.is_none() => message.after = Some(Some(value)),
        "after" => return Err(wrong("is given together with Seriatim-First".to_owned())),
        "first" => match value.as_str() {
            "true" | "1" | "" if message.after.is_none() => message.after = Some(None),
            "true" | "1" | "" => return Err(wrong("is given together with a predecessor".to_owned())),
            "false" | "0" => {}
            _ => return Err(wrong("is neither true nor false".to_owned())),
        },
        "message-id" => message.message_id = Some(value),
        "subject" => message.headers.subject = Some(value),
        "correlation-id" => message.headers.correlation_id = Some(value),
        "reply-to" => message.headers.reply_to = Some(value),
        "time-to-live" => {
            let span: WireDuration = value.parse().map_err(|error: Misuse| wrong(error.to_string()))?;
            message.time_to_live = Some(span.0);
        }
        "delay" => {
            let span: WireDuration = value.parse().map_err(|error: Misuse| wrong(error.to_string()))?;
            message.delay = Some(span.0);
        }
        "schedule-at" => {
            let instant: WireTime = value.parse().map_err(|error: Misuse| wrong(error.to_string()))?;
            message.schedule_at = Some(instant.0);
        }
        _ => match field.strip_prefix("property-") {
            Some(property) if !property.is_empty() => message = message.property(property, value),
            _ => return Err(wrong("is no header of a message".to_owned())),
        },
    }
    Ok(message)
}

fn text(value: Option<&HeaderValue>, name: &'static str) -> Result<Option<String>, Misuse> {
    let read = |value: &HeaderValue| value.to_str().map(str::to_owned);
    value.map(read).transpose().map_err(|_| Misuse::new(name, "has a character that is not ASCII"))
}

/// A header's text. Letters outside ASCII come percent-encoded, as CloudEvents asks for; so does a percent sign.
fn decoded(name: &HeaderName, value: &HeaderValue) -> Result<String, Misuse> {
    let plain = percent_decode(value.as_bytes()).decode_utf8();
    let plain = plain.map_err(|_| Misuse::new(name.to_string(), "is not UTF-8, percent-encoded or not"))?;
    Ok(plain.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::header::PropertyValue;
    use std::time::Duration;

    fn read(headers: &[(&str, &str)]) -> Result<Message, Misuse> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        message_of(&map, Message::new("body"))
    }

    #[test]
    fn our_headers_say_everything_a_message_can_have() {
        let message = read(&[
            ("content-type", "text/plain"),
            ("Seriatim-Workflow-Id", "order%2017 \u{e9}"),
            ("Seriatim-Position", "3"),
            ("Seriatim-Message-Id", "m-1"),
            ("Seriatim-Subject", "paid"),
            ("Seriatim-Correlation-Id", "c"),
            ("Seriatim-Reply-To", "r"),
            ("Seriatim-Time-To-Live", "5 min"),
            ("Seriatim-Schedule-At", "1700000000000"),
            ("Seriatim-Property-Tenant", "blue"),
            ("traceparent", "00-1-2-01"),
        ])
        .unwrap();
        assert_eq!(message.workflow_id.as_deref(), Some("order 17 \u{e9}"));
        assert_eq!((message.position, message.message_id.as_deref()), (Some(3), Some("m-1")));
        assert_eq!(message.time_to_live, Some(Duration::from_secs(300)));
        assert_eq!(message.schedule_at, Some(Timestamp::from_millis(1_700_000_000_000)));
        assert_eq!(read(&[("Seriatim-Delay", "5 min")]).unwrap().delay, Some(Duration::from_secs(300)));
        let properties = &message.headers.properties;
        assert_eq!(properties["tenant"], PropertyValue::from("blue"));
        assert_eq!(properties["traceparent"], PropertyValue::from("00-1-2-01"));
        assert_eq!(message.headers.content_type.as_deref(), Some("text/plain"));
    }

    #[test]
    fn a_cloud_event_says_workflow_and_position_in_its_own_words() {
        let event = [("ce-id", "1"), ("ce-type", "paid"), ("ce-source", "/shop"), ("ce-specversion", "1.0")];
        let message = read(&[&event[..], &[("ce-partitionkey", "order-17"), ("ce-sequence", "2")]].concat());
        let message = message.unwrap();
        assert_eq!(message.message_id.as_deref(), Some("1"));
        assert_eq!(message.headers.subject.as_deref(), Some("paid"));
        assert_eq!((message.workflow_id.as_deref(), message.position), (Some("order-17"), Some(2)));
        let properties: Vec<&str> = message.headers.properties.keys().map(String::as_str).collect();
        assert_eq!(properties, ["ce-source", "ce-specversion"]);

        let message =
            read(&[event[3], ("ce-sequence", "01H-x"), ("ce-id", "1"), ("seriatim-message-id", "2")])
                .unwrap();
        assert_eq!((message.position, message.message_id.as_deref()), (None, Some("2")));
        assert_eq!(message.headers.properties["ce-sequence"], PropertyValue::from("01H-x"));
    }

    #[test]
    fn what_stands_behind_a_percent_sign_is_decoded_only_if_it_is_two_digits() {
        for (value, plain) in
            [("%2B5", "+5"), ("%+5", "%+5"), ("%-1", "%-1"), ("%4", "%4"), ("100%", "100%"), ("%zz", "%zz")]
        {
            let message = read(&[("seriatim-subject", value)]).unwrap();
            assert_eq!(message.headers.subject.as_deref(), Some(plain), "{value}");
        }
    }

    #[test]
    fn a_header_that_is_wrong_is_named() {
        for (name, value) in [
            ("seriatim-position", "three"),
            ("seriatim-time-to-live", "soon"),
            ("seriatim-schedule-at", "yesterday"),
            ("seriatim-delay", "a while"),
            ("seriatim-first", "perhaps"),
            ("seriatim-workflow", "w"),
            ("ce-specversion", "0.3"),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().field(), name);
        }
        let places = [("seriatim-first", "true"), ("seriatim-after", "m-1")];
        for (first, second) in [(places[0], places[1]), (places[1], places[0])] {
            assert_eq!(read(&[first, second]).unwrap_err().field(), second.0);
        }
        for name in ["seriatim-position", "ce-id", "ce-type", "ce-source"] {
            let twice = read(&[("ce-specversion", "1.0"), (name, "1"), (name, "2")]).unwrap_err();
            assert_eq!(twice.field(), name);
            assert!(twice.to_string().contains("more than once"), "{twice}");
        }
        let unversioned = read(&[("ce-id", "1"), ("ce-type", "paid")]).unwrap_err();
        assert_eq!(unversioned.field(), "ce-specversion");
    }
}
