//! Words of the wire as text, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
pub(crate) use seriatim::api::plural::counted;

/// A word as it stands in JSON, with spaces for people.
pub(crate) fn word(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(Value::String(text)) => text.replace('_', " "),
        _ => String::new(),
    }
}

/// Reads a word as it stands in JSON; hyphens are taken too.
pub(crate) fn parse_word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(wire_word(text))).map_err(|error| error.to_string())
}

/// A word that somebody typed, as it stands in JSON.
pub(crate) fn wire_word(text: &str) -> String {
    text.trim().to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use seriatim::api::views::WorkflowWord;

    use super::*;

    #[test]
    fn a_word_is_read_with_hyphens_and_shown_with_spaces() {
        let read: WorkflowWord = parse_word("waiting-for-predecessor").unwrap();
        assert_eq!(
            (read, word(&read).as_str()),
            (WorkflowWord::WaitingForPredecessor, "waiting for predecessor")
        );
        assert!(parse_word::<WorkflowWord>("stuck").unwrap_err().contains("held"));
    }
}
