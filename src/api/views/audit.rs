//! How what an operator did looks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;
use crate::engine::AuditEntry;

/// What an operator did, or tried to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditView {
    /// Its number: 1, 2, 3 and so on.
    pub number: u64,
    /// When.
    pub at: WireTime,
    /// Who: the name of a key, or `local`.
    pub actor: String,
    /// What: `hold`, `skip_head`, `purge_queue` and so on.
    pub verb: String,
    /// In which queue.
    pub queue: String,
    /// To which workflow, if it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// To which message, if it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// The first and the last of the positions that were given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<(u64, u64)>,
    /// The reason that the operator gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it was refused; absent when it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// How much it has changed.
    pub count: u64,
}

impl AuditView {
    /// Shows an entry.
    pub fn show(entry: AuditEntry) -> AuditView {
        AuditView {
            number: entry.number,
            at: WireTime(entry.at),
            actor: entry.actor,
            verb: entry.verb.as_str().to_owned(),
            queue: entry.queue.to_string(),
            workflow_id: entry.workflow_id.map(|id| id.to_string()),
            sequence_number: entry.sequence_number.map(|number| number.get()),
            positions: entry.positions,
            reason: entry.reason,
            refusal: entry.refusal,
            count: entry.count,
        }
    }
}
