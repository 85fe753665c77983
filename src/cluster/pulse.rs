//! What nodes tell all others again and again, and nobody writes down: that they are alive, and how far a log reaches.
//!
//! It goes over NATS without JetStream. What is written down has to be on the disks of several servers first, and just when
//! those are busy a node would seem dead that is not.

use std::sync::Arc;

use async_nats::Client as NatsClient;
use async_nats::Subscriber;
use futures_util::StreamExt;
use serde::Deserialize;
use serde::Serialize;

use crate::cluster::error::ClusterError;
use crate::cluster::leases::Beat;
use crate::cluster::leases::Leases;
use crate::cluster::partition::Partition;
use crate::cluster::stop::ClusterStop;
use crate::cluster::wire;

/// What a node tells all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pulse {
    /// It is alive.
    Alive { node: String, beat: Beat },
    /// It has appended an entry to the log of a partition, so that there is something to read.
    Appended { node: String, partition: u16, position: u64 },
}

/// Where it is told.
#[derive(Clone)]
pub(crate) struct Pulses {
    client: NatsClient,
    subject: String,
}

impl Pulses {
    pub(crate) fn new(client: NatsClient, cluster: &str) -> Pulses {
        Pulses { client, subject: format!("seriatim.{cluster}.pulse") }
    }

    /// Tells all nodes, whether or not somebody hears it.
    pub(crate) async fn tell(&self, pulse: &Pulse) {
        if let Err(error) = self.client.publish(self.subject.clone(), wire::write(pulse).into()).await {
            tracing::debug!(%error, "a node could not say that it is alive");
        }
    }

    /// Begins to hear what is told.
    ///
    /// # Errors
    /// [`ClusterError::Servers`] when the servers refuse.
    pub(crate) async fn listen(&self) -> Result<Subscriber, ClusterError> {
        let subscribed = self.client.subscribe(self.subject.clone()).await;
        subscribed.map_err(|error| ClusterError::Servers(error.to_string()))
    }
}

/// Passes on what is heard until the node is stopped.
pub(crate) async fn hear(
    mut pulses: Subscriber,
    leases: Arc<Leases>,
    partitions: Vec<Arc<Partition>>,
    stop: ClusterStop,
) {
    while !stop.is_said()
        && let Some(message) = pulses.next().await
    {
        match wire::read(&message.payload) {
            Some(Pulse::Alive { node, beat }) => leases.hear(&node, beat),
            Some(Pulse::Appended { node, partition, position }) => {
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
