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
        check_properties(&self.properties)?;
        let raw_bytes = self.properties.get(RAW_SECTIONS).map_or(0, PropertyValue::len);
        if raw_bytes > limits::KEPT_BYTES_MAX {
            let problem = format!("has {raw_bytes} bytes, at most {} are allowed", limits::KEPT_BYTES_MAX);
            return Err(Misuse::new(RAW_SECTIONS, problem));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        let texts = [&self.subject, &self.content_type, &self.correlation_id, &self.reply_to];
        let texts: usize = texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum();
        texts + stored_len(self.properties.iter())
    }
}

/// The property in which an endpoint keeps what its protocol says beside the message, its properties once more among it.
pub(crate) const RAW_SECTIONS: &str = "seriatim-amqp";

/// The property in which it keeps what settlements have set, with types that properties do not have.
pub(crate) const SET_BY_SETTLING: &str = "seriatim-amqp-set";

/// The property in which it counts how often a message was forwarded.
pub(crate) const FORWARDED: &str = "seriatim-amqp-forwarded";

/// The property that has the number of a forwarded message in the entity to which it was sent.
pub(crate) const FIRST_NUMBER: &str = "seriatim-amqp-first-number";

/// The property of a forwarded dead letter that names the entity of which it was one.
pub(crate) const DEAD_LETTER_SOURCE: &str = "seriatim-amqp-dead-letter-source";

/// The property of an edited message that has the number of its original.
pub(crate) const ORIGINAL: &str = "seriatim-original";

/// The property of an original that has the number of the message it became.
pub(crate) const EDITED_AS: &str = "seriatim-edited-as";

/// The property that carries a trace, as W3C writes it.
#[cfg(feature = "daemon")]
pub(crate) const TRACE: &str = "traceparent";

/// The property by which it knows the copies of a message that was scheduled over the management of a topic.
pub(crate) const SCHEDULED_AS: &str = "seriatim-amqp-scheduled";

/// Whether a property is an endpoint's own, and not the sender's.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(
        name,
        RAW_SECTIONS | SET_BY_SETTLING | FORWARDED | FIRST_NUMBER | DEAD_LETTER_SOURCE | SCHEDULED_AS
    )
}

pub(crate) fn check_properties(properties: &Properties) -> Result<(), Misuse> {
    let length = properties_len(properties);
    if length > limits::PROPERTIES_BYTES_MAX {
        let problem = format!("have {length} bytes, at most {} are allowed", limits::PROPERTIES_BYTES_MAX);
        return Err(Misuse::new("properties", problem));
    }
    Ok(())
}

/// Bytes of all names and values that a sender has chosen: what an endpoint keeps says them once more, and is not counted.
pub(crate) fn properties_len(properties: &Properties) -> usize {
    stored_len(properties.iter().filter(|(name, _)| !is_internal(name)))
}

/// Bytes of names and values together.
pub(crate) fn stored_len<'a>(properties: impl Iterator<Item = (&'a String, &'a PropertyValue)>) -> usize {
    properties.map(|(name, value)| name.len() + value.len()).sum()
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
    /// The value as text; bytes have none.
    #[cfg(feature = "daemon")]
    pub(crate) fn as_text(&self) -> Result<String, &Bytes> {
        match self {
            PropertyValue::Text(text) => Ok(text.clone()),
            PropertyValue::Integer(number) => Ok(number.to_string()),
            PropertyValue::Float(number) => Ok(number.to_string()),
            PropertyValue::Boolean(truth) => Ok(truth.to_string()),
            PropertyValue::Binary(bytes) => Err(bytes),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(named: &[(&str, usize)]) -> Headers {
        let value = |bytes: &usize| PropertyValue::Binary(Bytes::from(vec![0; *bytes]));
        let properties = named.iter().map(|(name, bytes)| ((*name).to_owned(), value(bytes))).collect();
        Headers { properties, ..Headers::default() }
    }

    #[test]
    fn properties_are_counted_once_beside_what_an_endpoint_keeps_of_them() {
        let full = limits::PROPERTIES_BYTES_MAX - 1;
        let both = headers(&[("a", full), (RAW_SECTIONS, full)]);
        assert!(both.check().is_ok());
        assert!(both.len() > 2 * full, "what is stored is all of it");
        let refused = headers(&[("a", full + 1)]).check().unwrap_err();
        assert_eq!(refused.field(), "properties");
    }

    #[test]
    fn what_an_endpoint_keeps_has_a_bound_of_its_own() {
        let refused = headers(&[(RAW_SECTIONS, limits::KEPT_BYTES_MAX + 1)]).check().unwrap_err();
        assert_eq!(refused.field(), RAW_SECTIONS);
    }
}
