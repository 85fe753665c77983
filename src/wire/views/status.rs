//! The daemon itself, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// How the daemon is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusView {
    /// Its version.
    pub version: String,
    /// What its clock says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<WireTime>,
    /// Since when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<WireTime>,
    /// How many queues it has.
    pub queues: u64,
    /// How many workflows are blocked, held or have a gap.
    pub blocked: u64,
    /// How many dead letters there are.
    pub dead_letters: u64,
    /// Size of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_bytes: Option<u64>,
    /// Whether it takes no new work because it is about to stop.
    pub draining: bool,
}

/// A copy of the daemon's file that was written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BackupView {
    /// Where, on the daemon's machine.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}
