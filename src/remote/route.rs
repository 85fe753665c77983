//! The path and query of a request; what comes from outside is percent-encoded.

use std::fmt::Display;
use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

/// Path and query of a request, built piece by piece.
#[derive(Clone, Debug)]
pub(crate) struct RequestPath {
    text: String,
    has_query: bool,
}

impl RequestPath {
    /// Begins with a path that is written in the source.
    pub(crate) fn new(path: &str) -> RequestPath {
        RequestPath { text: path.to_owned(), has_query: false }
    }

    /// The path of a queue.
    pub(crate) fn queue(queue: &str) -> RequestPath {
        RequestPath::new("/v1/queues").data(queue)
    }

    /// Goes on with a word of the path.
    pub(crate) fn word(mut self, word: &str) -> RequestPath {
        self.text.push('/');
        self.text.push_str(word);
        self
    }

    /// Goes on with a segment that holds data.
    pub(crate) fn data(mut self, data: impl Display) -> RequestPath {
        self.text.push('/');
        encode(&data.to_string(), &mut self.text);
        self
    }

    /// Adds a parameter of the query, if it has a value.
    pub(crate) fn query(mut self, name: &str, value: Option<impl Display>) -> RequestPath {
        let Some(value) = value else { return self };
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        encode(&value.to_string(), &mut self.text);
        self
    }

    /// Adds the fields of a query of the API: those that have a value, and flags that are set.
    pub(crate) fn asking(self, query: &impl Serialize) -> RequestPath {
        let fields = serde_json::to_value(query).expect("a query has names and values that JSON can write");
        let fields = fields.as_object().into_iter().flatten();
        fields.fold(self, |route, (name, value)| match value {
            Value::Null | Value::Bool(false) => route,
            Value::String(text) => route.query(name, Some(text)),
            other => route.query(name, Some(other)),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Percent-encodes everything but the characters that RFC 3986 calls unreserved.
fn encode(data: &str, into: &mut String) {
    for byte in data.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                into.push(char::from(byte))
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(into, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_leave_its_place() {
        let route = RequestPath::queue("a/../b?c").word("workflow").query("id", Some("order 17/&x=\u{e9}"));
        assert_eq!(route.as_str(), "/v1/queues/a%2F..%2Fb%3Fc/workflow?id=order%2017%2F%26x%3D%C3%A9");
    }

    #[test]
    fn a_parameter_without_a_value_is_left_out() {
        let route = RequestPath::new("/v1/queues").query("after", None::<&str>).query("limit", Some(10));
        assert_eq!(route.as_str(), "/v1/queues?limit=10");
        assert_eq!(route.query("after", Some("a")).as_str(), "/v1/queues?limit=10&after=a");
    }
}
