//! What a replay works with: an engine on a file of its own, or a node of a cluster.

use seriatim::Client;
use seriatim::Engine;
#[cfg(feature = "cluster")]
use seriatim::cluster::ClusterNode;
#[cfg(feature = "cluster")]
use seriatim::cluster::ClusterOptions;

use crate::demo::replay::error::ReplayError;
use crate::demo::replay::plan::EnginePlan;
use crate::demo::replay::plan::FILE_NAME;
#[cfg(feature = "cluster")]
use crate::demo::replay::plan::NodePlan;

/// Partitions of the cluster: two for each node.
#[cfg(feature = "cluster")]
const PARTITIONS: u16 = 6;

/// What a replay works with.
pub(crate) enum ReplayStore {
    Engine(Engine),
    #[cfg(feature = "cluster")]
    Node(ClusterNode),
}

impl ReplayStore {
    pub(crate) async fn open(plan: &EnginePlan) -> Result<ReplayStore, ReplayError> {
        #[cfg(feature = "cluster")]
        if let Some(node) = &plan.node {
            return Ok(ReplayStore::Node(begin(plan, node).await?));
        }
        Ok(ReplayStore::Engine(Engine::open(plan.data.join(FILE_NAME)).await?))
    }

    pub(crate) fn client(&self) -> &Client {
        match self {
            ReplayStore::Engine(engine) => engine.client(),
            #[cfg(feature = "cluster")]
            ReplayStore::Node(node) => node.client(),
        }
    }

    pub(crate) async fn close(self) {
        match self {
            ReplayStore::Engine(engine) => engine.close().await,
            #[cfg(feature = "cluster")]
            ReplayStore::Node(node) => node.close().await,
        }
    }
}

#[cfg(feature = "cluster")]
async fn begin(plan: &EnginePlan, node: &NodePlan) -> Result<ClusterNode, ReplayError> {
    let options = ClusterOptions::new("demo", &node.name, plan.data.join(&node.name)).partitions(PARTITIONS);
    let addresses = node.nats.split(',').filter_map(|server| server.split_once('='));
    let options = addresses.fold(options, |options, (server, monitor)| options.server(server, monitor));
    ClusterNode::start(options).await.map_err(ReplayError::cluster)
}
