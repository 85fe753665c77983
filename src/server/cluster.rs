//! What is asked of the cluster of which the daemon is a node.

use axum::extract::State;

use crate::api::DrainNodeRequest;
use crate::api::MovePartitionRequest;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::JsonBody;
use crate::server::extract::required;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;

pub(crate) async fn look(State(shared): State<SharedServer>) -> HttpResult {
    json(&shared.host.cluster().await?)
}

pub(crate) async fn drain(
    State(shared): State<SharedServer>,
    principal: Principal,
    JsonBody(request): JsonBody<DrainNodeRequest>,
) -> HttpResult {
    let node = required("node", request.node)?;
    shared.host.drain_node(&node, !request.undo).await?;
    tracing::info!(
        node,
        undo = request.undo,
        by = principal.name(),
        "a node is to give its partitions to others"
    );
    json(&shared.host.cluster().await?)
}

pub(crate) async fn move_partition(
    State(shared): State<SharedServer>,
    principal: Principal,
    JsonBody(request): JsonBody<MovePartitionRequest>,
) -> HttpResult {
    let partition = request.partition.ok_or_else(|| HttpRefusal::misuse("partition", "is missing"))?;
    let node = request.node.as_deref();
    shared.host.move_partition(partition, node).await?;
    tracing::info!(partition, node, by = principal.name(), "a partition is to be moved");
    json(&shared.host.cluster().await?)
}
