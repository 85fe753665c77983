//! What the sender says of a message beside its body: standard headers and own properties.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;
use crate::limits;

/// The sender's standard headers and own properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Headers {
    /// What the message is about, in a word.
    pub subject: Option<String>,
    /// MIME type of the body.
    pub content_type: Option<String>,
    /// The ID of the message or request this one belongs to.
    pub correlation_id: Option<String>,
    /// Where an answer is expected.
    pub reply_to: Option<String>,
    /// The sender's own properties.
    pub properties: Properties,
}

impl Headers {
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        let texts = [
            ("subject", &self.subject),
            ("content type", &self.content_type),
            ("correlation ID", &self.correlation_id),
            ("reply-to", &self.reply_to),
        ];
        for (field, text) in texts {
            let length = text.as_ref().map_or(0, String::len);
            if length > limits::HEADER_BYTES_MAX {
                let problem = format!("has {length} bytes, at most {} are allowed", limits::HEADER_BYTES_MAX);
                return Err(Misuse::new(field, problem));
            }
        }
        let length = properties_len(&self.properties);
        if length > limits::PROPERTIES_BYTES_MAX {
            let problem =
                format!("have {length} bytes, at most {} are allowed", limits::PROPERTIES_BYTES_MAX);
            return Err(Misuse::new("properties", problem));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        let texts = [&self.subject, &self.content_type, &self.correlation_id, &self.reply_to];
        let texts: usize = texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum();
        texts + properties_len(&self.properties)
    }
}

/// Bytes of all names and values together.
pub(crate) fn properties_len(properties: &Properties) -> usize {
    properties.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// The value of one property of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PropertyValue {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Bytes.
    Binary(Bytes),
}

impl PropertyValue {
    fn len(&self) -> usize {
        match self {
            PropertyValue::Text(text) => text.len(),
            PropertyValue::Binary(bytes) => bytes.len(),
            PropertyValue::Integer(_) | PropertyValue::Float(_) => 8,
            PropertyValue::Boolean(_) => 1,
        }
    }
}

impl From<&str> for PropertyValue {
    fn from(text: &str) -> PropertyValue {
        PropertyValue::Text(text.to_owned())
    }
}

impl From<String> for PropertyValue {
    fn from(text: String) -> PropertyValue {
        PropertyValue::Text(text)
    }
}

impl From<i64> for PropertyValue {
    fn from(number: i64) -> PropertyValue {
        PropertyValue::Integer(number)
    }
}

impl From<f64> for PropertyValue {
    fn from(number: f64) -> PropertyValue {
        PropertyValue::Float(number)
    }
}

impl From<bool> for PropertyValue {
    fn from(truth: bool) -> PropertyValue {
        PropertyValue::Boolean(truth)
    }
}

/// Properties of a message: the sender's own headers, by name.
pub type Properties = BTreeMap<String, PropertyValue>;
