//! Calls about the cluster of which the daemon is a node.

use crate::api::DrainNodeRequest;
use crate::api::MovePartitionRequest;
use crate::api::views::ClusterView;
use crate::remote::error::RemoteError;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

impl Remote {
    /// What the cluster looks like.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `no_cluster` when the daemon is no node of one.
    pub async fn cluster(&self) -> Result<ClusterView, RemoteError> {
        self.get(RequestPath::new("/v1/cluster")).answer().await
    }

    /// Has a node give its partitions to others, or take some again.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `node_not_found` when there is no such node.
    pub async fn drain_node(&self, node: &str, undo: bool) -> Result<ClusterView, RemoteError> {
        let request = DrainNodeRequest { node: Some(node.to_owned()), undo };
        self.post(RequestPath::new("/v1/cluster/drain")).json(&request)?.answer().await
    }

    /// Has a partition owned by a node; without one, the hash decides again.
    ///
    /// # Errors
    /// As [`Remote::drain_node`]; a problem with the code `partition_not_found` when there is no such partition, `node_drains`
    /// or `node_stopped` when the node would not take it.
    pub async fn move_partition(
        &self,
        partition: u16,
        node: Option<&str>,
    ) -> Result<ClusterView, RemoteError> {
        let request = MovePartitionRequest { partition: Some(partition), node: node.map(str::to_owned) };
        self.post(RequestPath::new("/v1/cluster/move")).json(&request)?.answer().await
    }
}
