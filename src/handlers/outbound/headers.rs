//! What the headers of a post say of its message.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;

use crate::handlers::facts::facts;
use crate::handlers::facts::lasting_number;
use crate::handlers::trace::trace;
use crate::limits;
use crate::processor::Context;

/// A message to be described in headers.
pub(crate) struct HeaderSource<'a> {
    pub(crate) context: &'a Context,
    pub(crate) by_position: bool,
}

impl HeaderSource<'_> {
    /// The same for every attempt, and another in each store, because a receiver drops an ID that it knows. It has no dot, which
    /// separates it from the time where it is signed. No queue has a `~` in its name.
    pub(crate) fn id(&self) -> String {
        let queue = self.context.queue().name().as_str().replace('.', "~");
        format!("{queue}_{}", lasting_number(self.context.message()))
    }

    /// What is known of the message. Text is percent-encoded where it is not plain ASCII.
    pub(crate) fn headers(&self) -> HeaderMap {
        let facts = facts(self.context, self.by_position).map(|(_, name, text)| (name, text));
        let trace = trace(self.context).map(|trace| ("traceparent", trace));
        let mut headers: HeaderMap =
            facts.chain(trace).filter_map(|(name, text)| header(name, &text)).collect();
        self.add_properties(&mut headers);
        headers
    }

    /// Adds the properties while there is room: servers refuse a head that is too long. The others are counted.
    fn add_properties(&self, headers: &mut HeaderMap) {
        let (mut bytes, mut left_out) = (0, 0);
        for (name, value) in &self.context.message().headers.properties {
            let text = value.as_text().ok();
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
