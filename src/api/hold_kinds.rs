//! The cause of a hold, as a request says it.

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error;
use serde_json::Value;

use crate::queue::HoldKind;

/// Reads a cause of a hold. A script may still say a word of an older release, but none is offered.
///
/// # Errors
/// The causes that are known, in a sentence, for every other word.
pub fn hold_kind(text: &str) -> Result<HoldKind, String> {
    HoldKind::deserialize(Value::from(text)).map_err(|_| {
        let known = HoldKind::ALL.map(HoldKind::as_str).join(", ");
        format!("no workflow is held for {text:?}; known are {known}")
    })
}

/// Reads a cause that may be left out.
pub(crate) fn one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HoldKind>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    text.as_deref().map(hold_kind).transpose().map_err(D::Error::custom)
}

/// Reads a list of causes.
pub(crate) fn many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HoldKind>, D::Error> {
    let texts: Vec<String> = Vec::deserialize(deserializer)?;
    texts.iter().map(|text| hold_kind(text)).collect::<Result<_, _>>().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_an_older_release_is_read_and_each_that_is_offered() {
        assert_eq!(hold_kind("spent"), Ok(HoldKind::Exhausted));
        for known in HoldKind::ALL {
            assert_eq!(hold_kind(known.as_str()), Ok(known));
        }
    }
}
