//! A queue, as JSON.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// A queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// In which order the messages of a workflow are handled: none, arrival, position or after.
    #[serde(default)]
    pub order: String,
    /// How many messages are where, and how many ended how.
    #[serde(default)]
    pub counts: CountsView,
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<WireTime>,
    /// Whether its handlers are paused.
    #[serde(default)]
    pub paused: bool,
    /// The file that defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Its options, named as in a definition.
    #[serde(default)]
    pub options: serde_json::Value,
}

/// How many messages of a queue are where (the first block), and how many ended how (the second).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CountsView {
    /// Messages that could be handed out now or once those before them are settled.
    pub ready: u64,
    /// Messages handed out under a lock.
    pub locked: u64,
    /// Deferred: a predecessor is missing.
    pub early: u64,
    /// Deferred: waiting for the retry after a failure.
    pub failed: u64,
    /// Deferred: failed as often as allowed, at the head of a held workflow.
    pub spent: u64,
    /// Deferred: set aside by the consumer.
    pub asked: u64,
    /// Waiting for their scheduled instant.
    pub scheduled: u64,
    /// Dead letters.
    pub dead_lettered: u64,

    /// Ended: completed.
    pub completed: u64,
    /// Ended: expired and dropped.
    pub expired: u64,
    /// Ended: cancelled before their instant.
    pub cancelled: u64,
    /// Ended: purged.
    pub purged: u64,
    /// All messages ever accepted.
    pub accepted: u64,
}

/// A page of queues.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QueuePage {
    /// The queues, in order of name.
    pub queues: Vec<QueueView>,
    /// Where the next page goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
