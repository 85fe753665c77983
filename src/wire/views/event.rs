//! Something that happened, as JSON.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::wire::time::WireTime;

/// Something that happened to a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventView {
    /// When.
    pub at: WireTime,
    /// In which queue.
    pub queue: String,
    /// In which workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Which message it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// What happened: blocked, held, resumed, gap, gap_skipped, dead_lettered, redriven, queue_deleted.
    pub kind: String,
    /// What belongs to this kind.
    #[serde(flatten)]
    pub particulars: Map<String, Value>,
}
