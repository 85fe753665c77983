//! What a node hears of all others, and whom it concerns.

use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;

use crate::cluster::leases::Leases;
use crate::cluster::partition::Partition;
use crate::cluster::signals::NodeSignal;
use crate::cluster::stop::ClusterStop;
use crate::cluster::wire;

/// Passes on what is heard until the node is stopped.
pub(crate) async fn hear(
    mut signals: Subscriber,
    leases: Arc<Leases>,
    partitions: Vec<Arc<Partition>>,
    stop: ClusterStop,
) {
    while !stop.is_said()
        && let Some(message) = signals.next().await
    {
        match wire::read(&message.payload) {
            Some(NodeSignal::Alive { node, beat, stopped }) => leases.hear(&node, beat, stopped),
            Some(NodeSignal::Appended { node, partition, position }) => {
                leases.hear_of(&node);
                if let Some(partition) = partitions.get(usize::from(partition)) {
                    partition.hear_of(position);
                }
            }
            // A node of another version says it in another way.
            None => {}
        }
    }
}
