//! A message to send, as JSON.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde_json::Number;
use serde_json::value::RawValue;

use crate::api::body::BodyFields;
use crate::api::given::given;
use crate::api::time::WireDuration;
use crate::api::time::WireTime;
use crate::error::Misuse;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::message::Message;

/// A message to send. Every field is optional; the body is given as `body` (any JSON value), `body_text` or
/// `body_base64`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendEnvelope {
    /// The queue it goes to, of the same engine, where nothing else names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The workflow it belongs to; must agree with what the queue's definition finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Its position inside the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The message ID of the message it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether it is the first of an after-ordered workflow.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first: bool,
    /// Its ID, by which duplicates are detected and successors name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What it is about, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// MIME type of the body; `application/json` when the body is given as a JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The ID of the message or request it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Where an answer is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The sender's own properties: text, numbers, booleans, or `{"base64": ".."}` for bytes.
    #[serde(default, deserialize_with = "by_name", skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, WireProperty>,
    /// How long after its acceptance, or its scheduled instant, it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<WireDuration>,
    /// Until when it is kept back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_at: Option<WireTime>,
    /// How long it is kept back from its acceptance, whatever the clock is set to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<WireDuration>,
    /// The body as a JSON value.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub body: Option<Box<RawValue>>,
    /// The body as UTF-8 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_text: Option<String>,
    /// The body as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

impl SendEnvelope {
    /// The message.
    ///
    /// # Errors
    /// [`Misuse`] when the body is given twice, or something in it is not base64. Limits are checked when it is sent.
    pub fn into_message(self) -> Result<Message, Misuse> {
        let fields = BodyFields { body: self.body, body_text: self.body_text, body_base64: self.body_base64 };
        let (body, is_json) = fields.read()?;
        let mut message = Message::new(body);
        message.workflow_id = self.workflow_id;
        message.position = self.position;
        message.after = match (self.after, self.first) {
            (Some(_), true) => return Err(Misuse::new("first", "is given together with a predecessor")),
            (Some(after), false) => Some(Some(after)),
            (None, true) => Some(None),
            (None, false) => None,
        };
        message.message_id = self.message_id;
        message.headers.subject = self.subject;
        message.headers.content_type =
            self.content_type.or_else(|| is_json.then(|| "application/json".to_owned()));
        message.headers.correlation_id = self.correlation_id;
        message.headers.reply_to = self.reply_to;
        message.headers.properties = read_properties(self.properties)?;
        message.time_to_live = self.time_to_live.map(|span| span.0);
        message.schedule_at = self.schedule_at.map(|instant| instant.0);
        message.delay = self.delay.map(|span| span.0);
        Ok(message)
    }

    /// As outsiders would write a message.
    pub fn show(message: &Message) -> SendEnvelope {
        let headers = &message.headers;
        let shown = BodyFields::show_exactly(message.body(), headers.content_type.as_deref());
        SendEnvelope {
            queue: None,
            workflow_id: message.workflow_id.clone(),
            position: message.position,
            after: message.after.clone().flatten(),
            first: message.after == Some(None),
            message_id: message.message_id.clone(),
            subject: headers.subject.clone(),
            content_type: headers.content_type.clone(),
            correlation_id: headers.correlation_id.clone(),
            reply_to: headers.reply_to.clone(),
            properties: show_properties(&headers.properties),
            time_to_live: message.time_to_live.map(WireDuration),
            schedule_at: message.schedule_at.map(WireTime),
            delay: message.delay.map(WireDuration),
            body: shown.body,
            body_text: shown.body_text,
            body_base64: shown.body_base64,
        }
    }
}

/// The value of a property in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "is not text, a boolean, a number (a whole one below 2^63, else as text) or {\"base64\": \"...\"}"
)]
pub enum WireProperty {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(#[serde(deserialize_with = "fraction")] f64),
    /// Text.
    Text(String),
    /// Bytes.
    Binary {
        /// As base64.
        base64: String,
    },
}

impl fmt::Display for WireProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireProperty::Boolean(truth) => truth.fmt(f),
            WireProperty::Integer(number) => number.fmt(f),
            WireProperty::Float(number) => number.fmt(f),
            WireProperty::Text(text) => f.write_str(text),
            WireProperty::Binary { base64 } => write!(f, "base64 {base64}"),
        }
    }
}

/// Reads properties; what is wrong with one of them is told with its name.
pub(crate) fn by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, WireProperty>, D::Error> {
    deserializer.deserialize_map(PropertyVisitor)
}

struct PropertyVisitor;

impl<'de> Visitor<'de> for PropertyVisitor {
    type Value = BTreeMap<String, WireProperty>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("properties by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut properties = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let named = |error: A::Error| A::Error::custom(format!("property {name:?}: {error}"));
            let value = map.next_value().map_err(named)?;
            properties.insert(name, value);
        }
        Ok(properties)
    }
}

/// Reads a number that is not whole: a whole one that comes here is too large, and would be rounded.
fn fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    number.as_f64().filter(|_| number.is_f64()).ok_or_else(|| D::Error::custom("is a whole number"))
}

/// A number as JSON has it; as text if JSON has no word for it, because only clients that speak AMQP can send such.
fn show_float(number: f64) -> WireProperty {
    match number.is_finite() {
        true => WireProperty::Float(number),
        false if number.is_nan() => WireProperty::Text("NaN".to_owned()),
        false if number > 0.0 => WireProperty::Text("Infinity".to_owned()),
        false => WireProperty::Text("-Infinity".to_owned()),
    }
}

pub(crate) fn show_properties(properties: &Properties) -> BTreeMap<String, WireProperty> {
    let show = |value: &PropertyValue| match value {
        PropertyValue::Text(text) => WireProperty::Text(text.clone()),
        PropertyValue::Integer(number) => WireProperty::Integer(*number),
        PropertyValue::Float(number) => show_float(*number),
        PropertyValue::Boolean(truth) => WireProperty::Boolean(*truth),
        PropertyValue::Binary(bytes) => WireProperty::Binary { base64: BASE64.encode(bytes) },
    };
    properties.iter().map(|(name, value)| (name.clone(), show(value))).collect()
}

pub(crate) fn read_properties(properties: BTreeMap<String, WireProperty>) -> Result<Properties, Misuse> {
    let read = |value| {
        Ok(match value {
            WireProperty::Text(text) => PropertyValue::Text(text),
            WireProperty::Integer(number) => PropertyValue::Integer(number),
            WireProperty::Float(number) => PropertyValue::Float(number),
            WireProperty::Boolean(truth) => PropertyValue::Boolean(truth),
            WireProperty::Binary { base64 } => {
                let decoded = BASE64.decode(base64.as_bytes());
                PropertyValue::Binary(Bytes::from(
                    decoded.map_err(|error| Misuse::new("properties", error.to_string()))?,
                ))
            }
        })
    };
    properties.into_iter().map(|(name, value)| Ok((name, read(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_the_way_out_and_back() {
        let message = Message::new(r#"{"cents":1999}"#)
            .content_type("application/json")
            .workflow("order-17")
            .position(3)
            .message_id("m-1")
            .subject("paid")
            .property("attempt", 1_i64)
            .property("ratio", 0.5)
            .property("test", true)
            .property("who", "me");
        let json = serde_json::to_string(&SendEnvelope::show(&message)).unwrap();
        let back: SendEnvelope = serde_json::from_str(&json).unwrap();
        assert_eq!(back.into_message().unwrap().check().unwrap(), message.check().unwrap());
    }

    #[test]
    fn every_property_a_message_can_have_is_read_back_from_what_is_shown() {
        let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -0.5];
        let properties =
            floats.iter().enumerate().map(|(n, float)| (n.to_string(), PropertyValue::Float(*float)));
        let json = serde_json::to_string(&show_properties(&properties.collect())).unwrap();
        let back: BTreeMap<String, WireProperty> = serde_json::from_str(&json).unwrap();
        let text = |text: &str| WireProperty::Text(text.to_owned());
        let expected = [text("NaN"), text("Infinity"), text("-Infinity")];
        assert_eq!(back.values().take(3).cloned().collect::<Vec<_>>(), expected);
        assert_eq!((&back["3"], &back["4"]), (&WireProperty::Float(1e300), &WireProperty::Float(-0.5)));
    }

    #[test]
    fn a_whole_number_that_would_be_rounded_is_refused() {
        let read = |number: &str| {
            serde_json::from_str::<SendEnvelope>(&format!(r#"{{"properties":{{"count":{number}}}}}"#))
        };
        let largest = read("9223372036854775807").unwrap();
        assert_eq!(largest.properties["count"], WireProperty::Integer(i64::MAX));
        let error = read("9223372036854775808").unwrap_err().to_string();
        assert!(
            error.starts_with("property \"count\": is not text") && error.contains("below 2^63"),
            "{error}"
        );
        assert_eq!(read("9.5e18").unwrap().properties["count"], WireProperty::Float(9.5e18));
    }

    #[test]
    fn a_body_that_is_null_is_sent_as_null() {
        let sent: SendEnvelope = serde_json::from_str(r#"{"body":null}"#).unwrap();
        let message = sent.into_message().unwrap();
        assert_eq!(message.body(), "null");
        let empty: SendEnvelope = serde_json::from_str(r#"{"body":null,"body_text":"x"}"#).unwrap();
        assert_eq!(empty.into_message().unwrap().body(), "x");
        assert_eq!(message.headers.content_type.as_deref(), Some("application/json"));
        let none: SendEnvelope = serde_json::from_str("{}").unwrap();
        assert_eq!(none.into_message().unwrap().body(), "");
    }

    #[test]
    fn a_message_that_is_sent_on_keeps_its_body_byte_for_byte() {
        for body in ["{\n  \"a\": 1\n}", " 1 ", "1\r\n", "{\"a\": 1.10}", "null", "{"] {
            let message = Message::new(body).content_type("application/json");
            let line = serde_json::to_string(&SendEnvelope::show(&message)).unwrap();
            assert!(!line.contains(['\n', '\r']), "{line}");
            let back = serde_json::from_str::<SendEnvelope>(&line).unwrap().into_message().unwrap();
            assert_eq!(back.check().unwrap(), message.check().unwrap(), "{line}");
        }
    }

    #[test]
    fn a_field_nobody_knows_is_refused() {
        let error = serde_json::from_str::<SendEnvelope>(r#"{"workflow":"order-17"}"#).unwrap_err();
        assert!(error.to_string().contains("workflow"), "{error}");
    }
}
