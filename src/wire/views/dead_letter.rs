//! A dead letter in a listing, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterView {
    /// Its number.
    pub sequence_number: u64,
    /// Its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The sender's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// How often it was handed out.
    #[serde(default)]
    pub delivery_count: u32,
    /// A short reason, by which dead letters are listed.
    pub reason: String,
    /// What else was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When it was moved aside.
    pub at: WireTime,
}

/// A page of dead letters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeadLetterPage {
    /// The dead letters, in order of reason and number.
    pub dead_letters: Vec<DeadLetterView>,
    /// Where the next page goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
