//! What the headers of a post say of its message.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;

use crate::api::WireTime;
use crate::handlers::trace::trace;
use crate::header::PropertyValue;
use crate::limits;
use crate::processor::Context;

/// A message to be described in headers.
pub(crate) struct HeaderSource<'a> {
    pub(crate) context: &'a Context,
    pub(crate) by_position: bool,
}

impl HeaderSource<'_> {
    /// The same for every attempt, and without a dot, which separates it from the time where it is signed. No queue has
    /// a `~` in its name.
    pub(crate) fn id(&self) -> String {
        let queue = self.context.queue().name().as_str().replace('.', "~");
        format!("{queue}_{}", self.context.message().sequence_number)
    }

    /// What is known of the message. Text is percent-encoded where it is not plain ASCII.
    pub(crate) fn headers(&self) -> HeaderMap {
        let message = self.context.message();
        let known = &message.headers;
        let texts = [
            ("seriatim-queue", Some(self.context.queue().name().to_string())),
            ("seriatim-workflow-id", message.workflow_id.as_ref().map(ToString::to_string)),
            (
                "seriatim-position",
                (self.by_position && message.has_workflow()).then(|| message.rank.to_string()),
            ),
            ("seriatim-sequence-number", Some(message.sequence_number.to_string())),
            ("seriatim-message-id", message.message_id.as_ref().map(ToString::to_string)),
            ("seriatim-subject", known.subject.clone()),
            ("seriatim-correlation-id", known.correlation_id.clone()),
            ("seriatim-reply-to", known.reply_to.clone()),
            ("seriatim-delivery-count", Some(message.delivery_count.to_string())),
            ("seriatim-accepted-at", Some(WireTime(message.accepted_at).to_string())),
            ("seriatim-lock-token", Some(self.context.lock_token().to_string())),
            ("traceparent", trace(self.context)),
        ];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
        let mut headers: HeaderMap = texts.filter_map(|(name, text)| header(&name, &text)).collect();
        self.add_properties(&mut headers);
        headers
    }

    /// Adds the properties while there is room: servers refuse a head that is too long. The others are counted.
    fn add_properties(&self, headers: &mut HeaderMap) {
        let (mut bytes, mut left_out) = (0, 0);
        for (name, value) in &self.context.message().headers.properties {
            let text = match value {
                PropertyValue::Text(text) => Some(text.clone()),
                PropertyValue::Integer(number) => Some(number.to_string()),
                PropertyValue::Float(number) => Some(number.to_string()),
                PropertyValue::Boolean(truth) => Some(truth.to_string()),
                PropertyValue::Binary(_) => None,
            };
            let header = text.and_then(|text| header(&format!("seriatim-property-{name}"), &text));
            let header = header.filter(|(_, value)| {
                bytes += name.len() + value.len();
                bytes <= limits::PROPERTY_HEADERS_BYTES_MAX
            });
            match header {
                Some((name, value)) => drop(headers.append(name, value)),
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            let name = HeaderName::from_static("seriatim-properties-left-out");
            headers.insert(name, HeaderValue::from(left_out));
        }
    }
}

/// A header, if its name can be one.
fn header(name: &str, text: &str) -> Option<(HeaderName, HeaderValue)> {
    let name: HeaderName = name.parse().ok()?;
    let value = HeaderValue::from_str(&encoded(text)).ok()?;
    Some((name, value))
}

/// Text with everything percent-encoded that is not plain ASCII, as CloudEvents does in headers.
fn encoded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | b'"' => plain.push_str(&format!("%{byte:02X}")),
            b'!'..=b'~' => plain.push(char::from(byte)),
            _ => plain.push_str(&format!("%{byte:02X}")),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_kind_fits_into_a_header() {
        assert_eq!(encoded("order-17/a=b"), "order-17/a=b");
        assert_eq!(encoded("100% \u{e9}\r\nx"), "100%25%20%C3%A9%0D%0Ax");
    }
}
