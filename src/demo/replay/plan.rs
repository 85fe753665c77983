//! What a replay is to do.

use std::path::PathBuf;

/// The name of the engine's file in the data folder.
pub(crate) const FILE_NAME: &str = "seriatim.redb";

/// The name of the folder of the NATS servers in the data folder.
pub(crate) const NATS_FOLDER: &str = "nats";

/// How the messages are handled: as seriatim does, or as an ordinary queue would, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// By position; a failed message keeps its place.
    Ordered,
    /// In order of arrival, which is not the order of the changes.
    AsTheyArrive,
    /// Sent in order, but a failed message is sent again at the back.
    RetryAtBack,
}

/// A replay, as the supervising process is asked for it.
pub(crate) struct ReplayPlan {
    pub(crate) repository: PathBuf,
    pub(crate) failures: f64,
    pub(crate) crashes: u32,
    pub(crate) seed: u64,
    /// The folder of the engine's file.
    pub(crate) data: PathBuf,
    pub(crate) json: bool,
    /// The name by which the engine's process is told how to handle.
    pub(crate) mode: &'static str,
    pub(crate) handling: Handling,
    /// Whether it runs on a cluster.
    pub(crate) cluster: bool,
}

/// A node of the cluster of a replay.
#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    /// The NATS servers: `address=monitor`, with commas between them.
    pub(crate) nats: String,
    /// Whether it sends the changes.
    pub(crate) feeds: bool,
}

/// A replay, as the engine's process is asked for it.
#[derive(Clone)]
pub(crate) struct EnginePlan {
    pub(crate) repository: PathBuf,
    /// The commit to which the history is replayed; it must not move while the replay runs.
    pub(crate) head: String,
    pub(crate) data: PathBuf,
    pub(crate) failures: f64,
    pub(crate) seed: u64,
    pub(crate) handling: Handling,
    /// The node that the process is, on a cluster.
    pub(crate) node: Option<NodePlan>,
}
