//! What the partitions of a node work with, and who looks after them.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::sync::broadcast;

use crate::cluster::definitions::QueueDefinitions;
use crate::cluster::leases::Leases;
use crate::cluster::options::NodeClock;
use crate::cluster::snapshots::Snapshots;
use crate::cluster::stop::ClusterStop;
use crate::engine::Event;
use crate::engine::log::FollowerOptions;

/// What a node has once, for all of its partitions.
#[derive(Clone)]
pub(crate) struct NodeMeans {
    /// How each of its files is kept.
    pub(crate) options: FollowerOptions,
    pub(crate) leases: Arc<Leases>,
    pub(crate) definitions: Arc<QueueDefinitions>,
    pub(crate) snapshots: Arc<Snapshots>,
    /// Where it is told what happens to workflows.
    pub(crate) events: broadcast::Sender<Event>,
    /// Held while a partition is given to another node: one at a time, if that takes no longer than a moment.
    pub(crate) moving: Arc<Mutex<()>>,
    pub(crate) clock: NodeClock,
    pub(crate) runtime: Handle,
    pub(crate) stop: ClusterStop,
}
