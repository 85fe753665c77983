//! What operators did, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// Something an operator did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditView {
    /// Its number; later ones are higher.
    pub number: u64,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<WireTime>,
    /// Who: the name of the key.
    pub actor: String,
    /// What.
    pub verb: String,
    /// In which queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// On which workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// On which message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A page of what operators did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AuditPage {
    /// What was done, oldest first.
    pub audit: Vec<AuditView>,
    /// Where the next page goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}
