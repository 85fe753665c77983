//! What can be asked of a node beside its messages: who owns what, and who is to.

use std::sync::Arc;

use crate::cluster::partition::PartitionStatus;
use crate::cluster::router::Router;
use crate::engine::Client;
use crate::id::QueueName;
use crate::id::WorkflowId;

/// What can be asked of a node beside its messages. Cheap to clone; it answers as long as the node runs.
#[derive(Clone)]
pub struct ClusterHandle {
    pub(crate) router: Arc<Router>,
}

impl ClusterHandle {
    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.router.node
    }

    /// The nodes that this one hears, itself among them; none when it hears nobody.
    pub fn nodes(&self) -> Vec<String> {
        self.router.leases.nodes()
    }

    /// Every partition, as this node sees it.
    pub fn status(&self) -> Vec<PartitionStatus> {
        self.router.partitions.iter().map(|partition| partition.status()).collect()
    }

    /// The engines of the partitions that this node owns, by their numbers.
    pub fn engines(&self) -> Vec<(u16, Client)> {
        let numbered = (0..self.router.places.partitions).zip(&self.router.partitions);
        numbered.filter_map(|(number, partition)| Some((number, partition.client()?))).collect()
    }

    /// Whether this node owns the partition of a workflow.
    pub fn has(&self, queue: &QueueName, workflow: &WorkflowId) -> bool {
        self.router.partition(self.router.places.workflow(queue, workflow)).client().is_some()
    }

    /// Gives every partition to other nodes, one after the other, and takes none any more.
    pub fn drain(&self) {
        self.router.leases.drain();
    }
}
