//! What a node hears of all others, and whom it concerns.

use std::sync::Arc;

use async_nats::Message;
use async_nats::Subscriber;
use futures_util::FutureExt;
use futures_util::StreamExt;

use crate::cluster::error::ClusterError;
use crate::cluster::leases::Leases;
use crate::cluster::options::ClusterOptions;
use crate::cluster::partition::Partition;
use crate::cluster::signals;
use crate::cluster::signals::NodeSignal;
use crate::cluster::stop::ClusterStop;

/// How often a process of the same name is heard before a node is refused that name: for three leases, in which one that is ending
/// has ended.
const NAMESAKE_WAITS: u32 = 12;

/// Waits until nobody is heard who runs as this node, for half a lease, in which a node is heard twice.
///
/// # Errors
/// [`ClusterError::NameTaken`] when somebody is heard all the time.
pub(crate) async fn check_name(
    signals: &mut Subscriber,
    options: &ClusterOptions,
) -> Result<(), ClusterError> {
    let is_own = |message: &Message| {
        let signal = signals::read(&message.payload);
        matches!(signal, Some(NodeSignal::Alive { node, .. }) if node == options.node)
    };
    // What has piled up since the node began to listen says nothing of now.
    while let Some(Some(_)) = tokio::task::unconstrained(signals.next()).now_or_never() {}
    for _ in 0..NAMESAKE_WAITS {
        let heard = async {
            while let Some(message) = signals.next().await {
                if is_own(&message) {
                    return;
                }
            }
            // Nothing is heard any more.
            std::future::pending().await
        };
        if tokio::time::timeout(options.lease / 2, heard).await.is_err() {
            return Ok(());
        }
    }
    Err(ClusterError::NameTaken { cluster: options.cluster.clone(), node: options.node.clone() })
}

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
        match signals::read(&message.payload) {
            Some(NodeSignal::Alive { node, beat, .. }) if leases.is_of_namesake(&node, beat) => {
                leases.look_up_namesake().await;
            }
            Some(NodeSignal::Alive { node, beat, stopped, behind }) => {
                leases.hear(&node, beat, (stopped, behind));
            }
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
