//! Requests and answers about dead letters.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::BodyFields;
use crate::api::Problem;
use crate::api::given::given;
use crate::api::views::DeadLetterEntry;
use crate::error::Misuse;

/// Which dead letters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeadLettersQuery {
    /// Where the page before ended; as answered there.
    pub after: Option<String>,
    /// How many at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
    /// Only those with this reason.
    pub reason: Option<String>,
}

/// A page of dead letters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterPage {
    /// The dead letters, in order of reason and number. Their bodies are looked at one by one.
    pub dead_letters: Vec<DeadLetterEntry>,
    /// Where the next page begins after; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// How a dead letter is put back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedriveRequest {
    /// A new position, when its workflow has gone past its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Why, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says how it would come back, or why it would not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Another body, as a JSON value: the original stays a dead letter with the reason `edited`.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<RawValue>>,
    /// Another body, as UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_text: Option<String>,
    /// Another body, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

impl RedriveRequest {
    /// The body it goes back with, if it is another one.
    pub(crate) fn take_body(&mut self) -> Result<Option<Bytes>, Misuse> {
        let (body, body_text, body_base64) =
            (self.body.take(), self.body_text.take(), self.body_base64.take());
        if body.is_none() && body_text.is_none() && body_base64.is_none() {
            return Ok(None);
        }
        let (bytes, _) = BodyFields { body, body_text, body_base64 }.read()?;
        Ok(Some(bytes))
    }
}

/// How a dead letter came back.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RedriveResponse {
    /// Whether it returned to its own place, or was sent as a new message.
    pub redriven: RedrivenWord,
    /// Its number now; with a dry run and as a new message, the number that one would have now.
    pub sequence_number: u64,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
}

/// How a dead letter came back, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedrivenWord {
    /// To its own place, under its own number.
    InPlace,
    /// As a new message.
    AsNew,
}

/// Which dead letters are put back. One of the filters has to be given: `all` if all are meant. Originals of messages that
/// were edited are not meant, unless their reason is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedriveManyRequest {
    /// All of the queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Those that were moved aside for this reason.
    #[serde(alias = "letter_reason", skip_serializing_if = "Option::is_none")]
    pub dead_letter_reason: Option<String>,
    /// Those of this workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Why they are put back, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says what would become of them, each for itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Where the request before ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most: 100 if it is not given, 1,000 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Which dead letters came back, and where to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RedriveManyResponse {
    /// How many were found.
    pub matched: u64,
    /// How many returned to their own places, or would.
    pub in_place: u64,
    /// How many were sent as new messages, or would be.
    pub as_new: u64,
    /// Which stayed dead letters, and why.
    pub refused: Vec<RefusedDeadLetter>,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
    /// Where to go on: there may be more. Absent when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A dead letter that stayed one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RefusedDeadLetter {
    /// Its number.
    pub sequence_number: u64,
    /// Why.
    pub error: Problem,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_null_is_another_body() {
        let body = |json: &str| serde_json::from_str::<RedriveRequest>(json).unwrap().take_body().unwrap();
        assert_eq!(body(r#"{"body":null}"#), Some(Bytes::from("null")));
        assert_eq!(body(r#"{"body":null,"body_text":"x"}"#), Some(Bytes::from("x")));
        assert_eq!(body(r#"{"position":2}"#), None);
    }
}
