//! A body inside JSON: as a JSON value, as text, or as base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use memchr::memchr2;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::given::given;
use crate::error::Misuse;

/// A body inside JSON; one of the three is given, none for an empty body.
///
/// A JSON value is kept byte for byte, so that large numbers and the order of its fields stay as they were sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BodyFields {
    /// The body as a JSON value.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub body: Option<Box<RawValue>>,
    /// The body as UTF-8 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_text: Option<String>,
    /// The body as base64, for any bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

impl BodyFields {
    /// Shows bytes: as a JSON value when the content type says so and it is one, as text when it is UTF-8, else as
    /// base64.
    pub fn show(body: &Bytes, content_type: Option<&str>) -> BodyFields {
        let mut fields = BodyFields::default();
        let text = std::str::from_utf8(body);
        match (text, content_type.is_some_and(is_json)) {
            (Ok(""), _) => {}
            (Ok(text), true) => match RawValue::from_string(text.to_owned()) {
                // A line of JSON must stay one line.
                Ok(value) if memchr2(b'\n', b'\r', body).is_none() => fields.body = Some(value),
                Ok(_) => fields.body = on_one_line(text),
                Err(_) => fields.body_text = Some(text.to_owned()),
            },
            (Ok(text), false) => fields.body_text = Some(text.to_owned()),
            (Err(_), _) => fields.body_base64 = Some(BASE64.encode(body)),
        }
        fields
    }

    /// Shows bytes byte for byte: as text, or as base64 where that is shorter than the text with its escapes.
    pub fn show_raw(body: &Bytes) -> BodyFields {
        match escaped_len(body) > body.len().div_ceil(3) * 4 {
            true => BodyFields { body_base64: Some(BASE64.encode(body)), ..BodyFields::default() },
            false => BodyFields::show(body, None),
        }
    }

    /// Shows bytes for who sends them on: as a JSON value only where that is written byte for byte as they are.
    pub fn show_exactly(body: &Bytes, content_type: Option<&str>) -> BodyFields {
        let shown = BodyFields::show(body, content_type);
        match &shown.body {
            Some(value) if value.get().as_bytes() == body.as_ref() => shown,
            _ => BodyFields::show_raw(body),
        }
    }

    /// The bytes, and whether they were given as a JSON value.
    ///
    /// # Errors
    /// [`Misuse`] when more than one is given, or what is given is not base64.
    pub fn read(self) -> Result<(Bytes, bool), Misuse> {
        // Beside another one, null is a field that a typed program has left empty.
        let is_other = self.body_text.is_some() || self.body_base64.is_some();
        let body = self.body.filter(|body| !is_other || body.get() != "null");
        match (body, self.body_text, self.body_base64) {
            (None, None, None) => Ok((Bytes::new(), false)),
            (Some(value), None, None) => Ok((Bytes::from(String::from(Box::<str>::from(value))), true)),
            (None, Some(text), None) => Ok((Bytes::from(text), false)),
            (None, None, Some(text)) => {
                let decoded = BASE64.decode(text.as_bytes());
                let decoded = decoded.map_err(|error| Misuse::new("body_base64", error.to_string()))?;
                Ok((Bytes::from(decoded), false))
            }
            _ => Err(Misuse::new("body", "is given more than once, as body, body_text or body_base64")),
        }
    }
}

/// How many bytes a text has in JSON, without its quotes.
fn escaped_len(text: &[u8]) -> usize {
    let len_of = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.iter().map(len_of).sum()
}

/// A JSON text without its line ends, which stand only between its parts: inside a JSON text they are escaped.
fn on_one_line(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.replace(['\n', '\r'], " ")).ok()
}

/// Whether a content type is JSON: `application/json`, or any with the suffix `+json`.
pub(crate) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.rsplit_once('+').is_some_and(|(_, suffix)| suffix.eq_ignore_ascii_case("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_body_is_kept_byte_for_byte() {
        let text = r#"{"id":18446744073709551616,"a":1.10,"b":[ ]}"#;
        let fields = BodyFields::show(&Bytes::from(text), Some("application/vnd.order+json; charset=utf-8"));
        let json = serde_json::to_string(&fields).unwrap();
        assert_eq!(json, format!("{{\"body\":{text}}}"));
        let (bytes, is_json) = serde_json::from_str::<BodyFields>(&json).unwrap().read().unwrap();
        assert_eq!((bytes, is_json), (Bytes::from(text), true));
    }

    #[test]
    fn any_bytes_survive_the_way_out_and_back() {
        for body in [&b""[..], b"plain", b"{\n\"a\": 1}", &[0, 255, 10]] {
            for content_type in [None, Some("application/json")] {
                let body = Bytes::copy_from_slice(body);
                let json = serde_json::to_string(&BodyFields::show(&body, content_type)).unwrap();
                assert!(!json.contains('\n'));
                let (back, _) = serde_json::from_str::<BodyFields>(&json).unwrap().read().unwrap();
                assert_eq!(back.len(), body.len(), "{json}");
            }
        }
    }

    #[test]
    fn a_text_is_never_longer_in_json_than_as_base64() {
        let escapes = "\"\\\n\r\t\u{8}\u{c}";
        for text in ["", "plain", "\u{1}", escapes, "\u{1b}[2J caf\u{e9} \u{7f}", "\"a\" is text\n"] {
            let body = Bytes::from(text.repeat(3));
            let fields = BodyFields::show_raw(&body);
            let escaped = serde_json::to_string(&text.repeat(3)).unwrap().len() - 2;
            assert_eq!(escaped_len(&body), escaped);
            let is_longer = escaped > body.len().div_ceil(3) * 4;
            assert_eq!(fields.body_base64.is_some(), is_longer, "{fields:?}");
            assert_eq!(fields.read().unwrap().0, body);
        }
    }

    #[test]
    fn two_bodies_are_refused() {
        let fields: BodyFields = serde_json::from_str(r#"{"body":1,"body_text":"1"}"#).unwrap();
        assert_eq!(fields.read().unwrap_err().field(), "body");
    }
}
