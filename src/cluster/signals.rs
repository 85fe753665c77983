//! What nodes tell all others again and again, and nobody writes down: that they are alive, and how far a log reaches.
//!
//! It goes over NATS without JetStream. What is written down has to be on the disks of several servers first, and just when
//! those are busy a node would seem dead that is not.

use async_nats::Client as NatsClient;
use async_nats::Subscriber;
use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::cluster::connection::in_time;
use crate::cluster::connection::is_connected;
use crate::cluster::entry_version;
use crate::cluster::error::ClusterError;
use crate::limits;

/// What a node says of itself, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    /// Another number each time the node is started.
    pub(crate) incarnation: u64,
    /// Whether it gives its partitions to others.
    pub(crate) drains: bool,
    /// The newest version of entries that it reads.
    #[serde(default = "first_version")]
    pub(crate) entry_version: u32,
}

fn first_version() -> u32 {
    entry_version::FIRST
}

/// What a node tells all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NodeSignal {
    /// It is alive, cannot go on with some partitions, and is still reading what there is of others, which older nodes do not say.
    Alive {
        node: String,
        beat: Beat,
        stopped: Vec<u16>,
        #[serde(default)]
        behind: Vec<u16>,
    },
    /// It has appended an entry to the log of a partition, so that there is something to read.
    Appended { node: String, partition: u16, position: u64 },
}

/// Writes what a node says of itself, to others and in the bucket. It is JSON, which a node of another version reads as far as it
/// knows it: nodes that do not hear each other would take each other for dead.
pub(crate) fn bytes_of<T: Serialize>(said: &T) -> Bytes {
    Bytes::from(serde_json::to_vec(said).expect("what nodes say can be written"))
}

/// Reads a signal, if it is one that this version knows.
pub(crate) fn read(bytes: &[u8]) -> Option<NodeSignal> {
    serde_json::from_slice(bytes).ok()
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

    /// Whether somebody can be told.
    pub(crate) fn is_connected(&self) -> bool {
        is_connected(&self.client)
    }

    /// Tells all nodes, whether or not somebody hears it; nobody, while no server is connected: it would be old when it is heard.
    pub(crate) async fn tell(&self, signal: &NodeSignal) {
        if !self.is_connected() {
            return;
        }
        let told = self.client.publish(self.subject.clone(), bytes_of(signal));
        if let Err(error) = in_time(limits::NATS_ANSWER, told).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_another_version_is_heard() {
        let older =
            br#"{"Alive": {"node": "a", "beat": {"incarnation": 7, "drains": false}, "stopped": [3]}}"#;
        let newer = br#"{"Alive": {"node": "a", "beat": {"incarnation": 7, "drains": false, "entry_version": 1, "mood": 2}, "stopped": [3], "x": 1}}"#;
        let beat = Beat { incarnation: 7, drains: false, entry_version: 1 };
        let signal = NodeSignal::Alive { node: "a".to_owned(), beat, stopped: vec![3], behind: Vec::new() };
        for bytes in [&older[..], &newer[..], &bytes_of(&signal)[..]] {
            assert_eq!(read(bytes).as_ref(), Some(&signal));
        }
        assert_eq!(read(br#"{"Sings": {"node": "a"}}"#), None, "who does not know it passes over it");
    }
}
