//! What a cluster looks like, as JSON.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;

/// A cluster, as one of its nodes sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClusterView {
    /// The name of the cluster.
    pub cluster: String,
    /// The node that was asked.
    pub node: String,
    /// Why nothing may be acknowledged at the moment, as far as it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The nodes that it hears, in order of name.
    pub nodes: Vec<NodeView>,
    /// The partitions, in order of number.
    pub partitions: Vec<PartitionView>,
}

/// A node of a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeView {
    /// Its name.
    pub node: String,
    /// Whether it gives its partitions to others, and takes none.
    pub drains: bool,
    /// Since when the node that was asked hears it without a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_since: Option<WireTime>,
    /// How many partitions it owns.
    pub owned: usize,
    /// Why it has not answered, if it has not: what else is said of it is not known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The partitions that it cannot go on with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<StoppedPartitionView>,
}

/// A partition that a node cannot go on with.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StoppedPartitionView {
    /// Its number.
    pub partition: u16,
    /// Why.
    pub reason: String,
}

/// A partition of a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartitionView {
    /// Its number; the first is 0.
    pub partition: u16,
    /// The node that has it; absent while nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The node to which an operator has moved it; absent where the hash decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// How many times somebody has taken it over since it was made.
    #[serde(default)]
    pub epoch: u32,
    /// The position of the last entry of its log.
    pub position: u64,
    /// How many entries of it the other nodes have still to read.
    pub lags: Vec<LagView>,
    /// The snapshots from which a node can begin, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotView>,
}

/// A snapshot of a partition.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotView {
    /// The position of the last entry of the log that it includes.
    pub position: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// The node that has taken it.
    pub node: String,
    /// When that was.
    pub taken_at: WireTime,
}

/// How far a node is behind a partition's log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LagView {
    /// The node.
    pub node: String,
    /// Entries that it has still to read.
    pub entries: u64,
}
