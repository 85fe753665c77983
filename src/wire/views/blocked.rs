//! A workflow that does not go on, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// A workflow that is blocked, held or has a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockedView {
    /// Its queue.
    pub queue: String,
    /// Its ID.
    pub workflow_id: Option<String>,
    /// The message at its head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Why it does not go on.
    pub cause: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<WireTime>,
    /// How many messages wait.
    pub waiting: u64,
    /// Why the message at its head failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What happens next by itself; none when somebody has to act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When that happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<WireTime>,
}

/// A page of blocked workflows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BlockedPage {
    /// The workflows.
    pub blocked: Vec<BlockedView>,
    /// Where the next page goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
