//! What a cluster looks like from one node: every node is asked what it has.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::cluster::error::ClusterError;
use crate::cluster::handle::ClusterHandle;
use crate::cluster::node_overview::NodeOverview;
use crate::cluster::nodes::NodeAnswer;
use crate::cluster::partition::PartitionState;
use crate::cluster::partition::PartitionStatus;
use crate::cluster::router::Router;
use crate::cluster::snapshot_list::PartitionSnapshot;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;

/// What a cluster looks like from one node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterOverview {
    /// The name of the cluster.
    pub cluster: String,
    /// The node that has looked.
    pub node: String,
    /// Why nothing may be acknowledged at the moment, as far as it knows.
    pub problem: Option<String>,
    /// The nodes that it hears, in order of name.
    pub nodes: Vec<NodeOverview>,
    /// The partitions, in order of number.
    pub partitions: Vec<PartitionOverview>,
}

/// A partition, as the nodes say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionOverview {
    /// Its number; the first is 0.
    pub partition: u16,
    /// The node that has it, if that is alive.
    pub owner: Option<String>,
    /// The node to which it was moved, if it was.
    pub pinned: Option<String>,
    /// How many times somebody has taken it over.
    pub epoch: u32,
    /// The position of the last entry of its log that some node knows.
    pub position: u64,
    /// How many entries each node that follows it has still to read.
    pub lags: Vec<(String, u64)>,
    /// The snapshots from which a node can begin, the newest first.
    pub snapshots: Vec<PartitionSnapshot>,
}

impl ClusterHandle {
    /// What the cluster looks like, as its nodes say at this moment.
    pub async fn overview(&self) -> ClusterOverview {
        let router = &self.router;
        let heard = router.leases.heard();
        let ask = |(name, heard_for): (String, Duration)| async move {
            NodeOverview { heard_for, ..router.overview_of(&name).await }
        };
        let nodes = join_all(heard.into_iter().map(ask)).await;
        let partitions = self.status().into_iter().map(|status| self.partition(status, &nodes)).collect();
        ClusterOverview {
            cluster: router.nodes.cluster().to_owned(),
            node: router.node.clone(),
            problem: self.problem(),
            nodes,
            partitions,
        }
    }

    fn partition(&self, status: PartitionStatus, nodes: &[NodeOverview]) -> PartitionOverview {
        let PartitionStatus { partition, owner, snapshots, epoch: own_epoch, .. } = status;
        let number = usize::from(partition);
        let has = |node: &NodeOverview| Some((*node.positions.get(number)?, *node.lags.get(number)?));
        let position = nodes.iter().filter_map(has).map(|(position, lag)| position + lag).max();
        let position = position.unwrap_or(status.position);
        // Whoever writes the log has it.
        let follows = |node: &&NodeOverview| owner.as_ref() != Some(&node.node);
        let lag = |node: &NodeOverview| Some((node.node.clone(), position.saturating_sub(has(node)?.0)));
        let lags = nodes.iter().filter(follows).filter_map(lag).collect();
        let pinned = self.router.leases.pinned(partition);
        let epoch = nodes.iter().filter_map(|node| node.epochs.get(number).copied()).max();
        let epoch = epoch.unwrap_or(own_epoch);
        PartitionOverview { partition, owner, pinned, epoch, position, lags, snapshots }
    }

    /// Has a node give its partitions to others, one after the other, and take none any more; or take some again.
    ///
    /// # Errors
    /// [`ClusterError::UnknownNode`] when it is not heard, [`ClusterError::Servers`] when it does not answer.
    pub async fn drain_node(&self, node: &str, drains: bool) -> Result<(), ClusterError> {
        self.check_node(node)?;
        let router = &self.router;
        if node == router.node {
            router.leases.set_draining(drains);
            return Ok(());
        }
        let ask = Ask::of_node(What::Drain(drains));
        match router.ask_node(node, &ask, Duration::ZERO).await {
            NodeAnswer::Replied(NodeReply::Defined) => Ok(()),
            other => Err(ClusterError::Servers(format!("node {node} has not answered: {other:?}"))),
        }
    }

    /// Has a partition owned by a node, as long as that is alive; `None` leaves it to the hash again.
    ///
    /// # Errors
    /// [`ClusterError::UnknownNode`] and [`ClusterError::UnknownPartition`]; [`ClusterError::NodeDrains`] and
    /// [`ClusterError::NodeStopped`] when the node would not take it; [`ClusterError::Servers`] when the servers refuse, or the node does
    /// not answer.
    pub async fn move_partition(&self, partition: u16, node: Option<&str>) -> Result<(), ClusterError> {
        let partitions = self.router.places.partitions;
        if partition >= partitions {
            return Err(ClusterError::UnknownPartition { partition, last: partitions - 1 });
        }
        if let Some(node) = node {
            self.check_node(node)?;
            self.check_takes(partition, node).await?;
        }
        self.router.leases.pin(partition, node).await.map_err(ClusterError::Servers)
    }

    /// Asks a node whether it takes partitions: what it told all others last may be older.
    async fn check_takes(&self, partition: u16, node: &str) -> Result<(), ClusterError> {
        let NodeOverview { problem, drains, .. } = self.router.overview_of(node).await;
        let name = node.to_owned();
        match problem {
            Some(why) => Err(ClusterError::Servers(format!("node {name} has not answered: {why}"))),
            None if drains => Err(ClusterError::NodeDrains { node: name }),
            None if self.router.leases.is_stopped_at(partition, node) => {
                Err(ClusterError::NodeStopped { node: name, partition })
            }
            None => Ok(()),
        }
    }

    fn check_node(&self, node: &str) -> Result<(), ClusterError> {
        let known = self.nodes();
        match known.iter().any(|name| name == node) {
            true => Ok(()),
            false => Err(ClusterError::UnknownNode { node: node.to_owned(), known: known.join(", ") }),
        }
    }
}

impl Router {
    /// What this node says of itself.
    pub(crate) fn own_overview(&self) -> NodeOverview {
        let mut overview = NodeOverview {
            node: self.node.clone(),
            drains: self.leases.is_draining(),
            ..NodeOverview::default()
        };
        for partition in &self.partitions {
            let status = partition.status();
            overview.positions.push(status.position);
            overview.lags.push(status.lag);
            overview.epochs.push(status.epoch);
            match status.state {
                PartitionState::Owner => {
                    overview.owned += 1;
                    overview.stopped.extend(partition.trouble().map(|why| (status.partition, why)));
                }
                PartitionState::Stopped(why) => overview.stopped.push((status.partition, why)),
                PartitionState::Following => {}
            }
        }
        overview
    }

    async fn overview_of(self: &Arc<Router>, node: &str) -> NodeOverview {
        if node == self.node {
            return self.own_overview();
        }
        let ask = Ask::of_node(What::Overview);
        let problem = match self.ask_node(node, &ask, Duration::ZERO).await {
            NodeAnswer::Replied(NodeReply::Overview(overview)) => return *overview,
            NodeAnswer::Nothing(why) | NodeAnswer::Replied(NodeReply::Failed(why)) => why,
            _ => "it does not listen".to_owned(),
        };
        NodeOverview { node: node.to_owned(), problem: Some(problem), ..NodeOverview::default() }
    }
}
