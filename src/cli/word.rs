//! Words of the wire as text.

use serde::Serialize;
use serde_json::Value;

/// A word as it stands in JSON, with spaces for people.
pub(crate) fn word(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(Value::String(text)) => text.replace('_', " "),
        _ => String::new(),
    }
}
