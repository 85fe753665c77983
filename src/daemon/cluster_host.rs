//! What the server asks of the cluster of which the daemon is a node.

use crate::api::Problem;
use crate::api::WireTime;
use crate::api::views::ClusterView;
use crate::api::views::LagView;
use crate::api::views::NodeView;
use crate::api::views::PartitionView;
use crate::api::views::SnapshotView;
use crate::api::views::StoppedPartitionView;
use crate::cluster::ClusterError;
use crate::cluster::ClusterHandle;
use crate::cluster::NodeOverview;
use crate::cluster::PartitionOverview;
use crate::cluster::PartitionSnapshot;
use crate::daemon::membership::Membership;

/// What the cluster looks like.
pub(crate) async fn look(membership: &Membership) -> Result<ClusterView, Problem> {
    let overview = handle(membership).map_err(|problem| *problem)?.overview().await;
    Ok(ClusterView {
        cluster: overview.cluster,
        node: overview.node,
        nodes: overview.nodes.into_iter().map(show_node).collect(),
        partitions: overview.partitions.into_iter().map(show_partition).collect(),
    })
}

/// Has a node give its partitions to others, or take some again.
pub(crate) async fn drain(membership: &Membership, node: &str, drains: bool) -> Result<(), Problem> {
    handle(membership).map_err(|problem| *problem)?.drain_node(node, drains).await.map_err(problem)
}

/// Has a node own a partition.
pub(crate) async fn move_partition(
    membership: &Membership,
    partition: u16,
    node: Option<&str>,
) -> Result<(), Problem> {
    handle(membership).map_err(|problem| *problem)?.move_partition(partition, node).await.map_err(problem)
}

fn handle(membership: &Membership) -> Result<&ClusterHandle, Box<Problem>> {
    let detail =
        "the daemon keeps its messages in a file of its own; `seriatim run --cluster` makes it a node";
    membership.handle.as_ref().ok_or_else(|| Box::new(Problem::new("no_cluster", detail)))
}

fn problem(error: ClusterError) -> Problem {
    let code = match error {
        ClusterError::UnknownNode { .. } => "node_not_found",
        ClusterError::UnknownPartition { .. } => "partition_not_found",
        _ => "not_ready",
    };
    Problem::new(code, error.to_string())
}

fn show_node(overview: NodeOverview) -> NodeView {
    let NodeOverview { node, drains, problem, owned, stopped, .. } = overview;
    let show = |(partition, reason)| StoppedPartitionView { partition, reason };
    NodeView { node, drains, owned, problem, stopped: stopped.into_iter().map(show).collect() }
}

fn show_partition(overview: PartitionOverview) -> PartitionView {
    let PartitionOverview { partition, owner, pinned, position, lags, snapshots } = overview;
    let lags = lags.into_iter().map(|(node, entries)| LagView { node, entries }).collect();
    let snapshots = snapshots.into_iter().map(show_snapshot).collect();
    PartitionView { partition, owner, moved_to: pinned, position, lags, snapshots }
}

fn show_snapshot(snapshot: PartitionSnapshot) -> SnapshotView {
    let PartitionSnapshot { position, bytes, node, taken_at } = snapshot;
    SnapshotView { position, bytes, node, taken_at: WireTime(taken_at) }
}
