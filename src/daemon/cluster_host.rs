//! What the server asks of the cluster of which the daemon is a node.

use crate::api::Problem;
use crate::api::WireTime;
use crate::api::views::ClusterView;
use crate::api::views::LagView;
use crate::api::views::NodeView;
use crate::api::views::PartitionView;
use crate::api::views::SnapshotView;
use crate::api::views::StoppedPartitionView;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::cluster::ClusterError;
use crate::cluster::ClusterHandle;
use crate::cluster::NodeOverview;
use crate::cluster::PartitionOverview;
use crate::cluster::PartitionSnapshot;
use crate::daemon::membership::Membership;

/// What the cluster looks like.
pub(crate) async fn look(membership: &Membership, clock: &dyn Clock) -> Result<ClusterView, Problem> {
    let overview = handle(membership).map_err(|problem| *problem)?.overview().await;
    let now = clock.now();
    Ok(ClusterView {
        cluster: overview.cluster,
        node: overview.node,
        problem: overview.problem,
        nodes: overview.nodes.into_iter().map(|node| show_node(node, now)).collect(),
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
        ClusterError::NodeDrains { .. } => "node_drains",
        ClusterError::NodeStopped { .. } => "node_stopped",
        _ => "not_ready",
    };
    Problem::new(code, error.to_string())
}

fn show_node(overview: NodeOverview, now: Timestamp) -> NodeView {
    let NodeOverview { node, drains, problem, heard_for, owned, stopped, .. } = overview;
    let show = |(partition, reason)| StoppedPartitionView { partition, reason };
    let heard_for = whole_millis(heard_for);
    let heard_since = Some(WireTime(Timestamp::from_millis(now.as_millis().saturating_sub(heard_for))));
    let stopped = stopped.into_iter().map(show).collect();
    NodeView { node, drains, heard_since, owned, problem, stopped }
}

fn show_partition(overview: PartitionOverview) -> PartitionView {
    let PartitionOverview { partition, owner, pinned, epoch, position, lags, snapshots } = overview;
    let lags = lags.into_iter().map(|(node, entries)| LagView { node, entries }).collect();
    let snapshots = snapshots.into_iter().map(show_snapshot).collect();
    PartitionView { partition, owner, moved_to: pinned, epoch, position, lags, snapshots }
}

fn show_snapshot(snapshot: PartitionSnapshot) -> SnapshotView {
    let PartitionSnapshot { position, bytes, node, taken_at } = snapshot;
    SnapshotView { position, bytes, node, taken_at: WireTime(taken_at) }
}
