//! Requests about a cluster: drain a node, move a partition.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

/// Which node gives its partitions to others.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainNodeRequest {
    /// The node; required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// It takes partitions again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
}

/// Which partition a node is to have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MovePartitionRequest {
    /// The partition; required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u16>,
    /// The node; without one, the hash decides again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
