//! What nodes tell all others again and again, and nobody writes down: that they are alive, and how far a log reaches.
//!
//! It goes over NATS without JetStream. What is written down has to be on the disks of several servers first, and just when
//! those are busy a node would seem dead that is not.

use async_nats::Client as NatsClient;
use async_nats::Subscriber;
use serde::Deserialize;
use serde::Serialize;

use crate::cluster::error::ClusterError;
use crate::cluster::wire;

/// What a node says of itself, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    /// Another number each time the node is started.
    pub(crate) incarnation: u64,
    /// Whether it gives its partitions to others.
    pub(crate) drains: bool,
}

/// What a node tells all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NodeSignal {
    /// It is alive, and cannot go on with these partitions.
    Alive { node: String, beat: Beat, stopped: Vec<u16> },
    /// It has appended an entry to the log of a partition, so that there is something to read.
    Appended { node: String, partition: u16, position: u64 },
}

/// Where it is told.
#[derive(Clone)]
pub(crate) struct NodeSignals {
    client: NatsClient,
    subject: String,
}

impl NodeSignals {
    pub(crate) fn new(client: NatsClient, cluster: &str) -> NodeSignals {
        NodeSignals { client, subject: format!("seriatim.{cluster}.signal") }
    }

    /// Tells all nodes, whether or not somebody hears it.
    pub(crate) async fn tell(&self, signal: &NodeSignal) {
        if let Err(error) = self.client.publish(self.subject.clone(), wire::write(signal).into()).await {
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
