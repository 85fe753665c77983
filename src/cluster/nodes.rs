//! Other nodes, asked over NATS.

use std::time::Duration;

use async_nats::Client as NatsClient;
use async_nats::Request;
use async_nats::RequestErrorKind;
use async_nats::Subscriber;

use crate::cluster::connection::in_time;
use crate::cluster::connection::is_connected;
use crate::cluster::error::ClusterError;
use crate::cluster::wire;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::error::Unavailable;
use crate::limits;

/// Bytes of a payload that what is around a message may take.
const ENVELOPE_BYTES: usize = 1024;

/// Other nodes.
#[derive(Clone)]
pub(crate) struct Nodes {
    client: NatsClient,
    cluster: String,
    /// What a test lets be said at once.
    #[cfg(test)]
    pub(crate) bytes_allowed: std::sync::Arc<std::sync::OnceLock<usize>>,
}

/// What came of asking a node.
#[derive(Debug)]
pub(crate) enum NodeAnswer {
    Replied(NodeReply),
    /// Nobody was there to be asked: nothing was done.
    Nobody,
    /// No answer, or one that makes no sense: it is not known whether anything was done.
    Nothing(String),
}

impl NodeAnswer {
    /// What was said; or, when nothing was done, who may do it if that is known.
    ///
    /// # Errors
    /// Why it is not to be asked again.
    pub(crate) fn said(self) -> Result<Result<NodeReply, Option<String>>, Unavailable> {
        match self {
            NodeAnswer::Replied(NodeReply::NotOwner(owner)) => Ok(Err(owner)),
            NodeAnswer::Nobody => Ok(Err(None)),
            NodeAnswer::Replied(NodeReply::TooLarge { bytes, bytes_max }) => {
                Err(Unavailable::TooLarge { bytes, bytes_max })
            }
            NodeAnswer::Replied(NodeReply::Busy) => Err(Unavailable::Busy),
            NodeAnswer::Replied(NodeReply::Failed(why)) | NodeAnswer::Nothing(why) => {
                Err(Unavailable::Unanswered(why))
            }
            NodeAnswer::Replied(said) => Ok(Ok(said)),
        }
    }
}

impl Nodes {
    pub(crate) fn new(client: NatsClient, cluster: &str) -> Nodes {
        Nodes {
            client,
            cluster: cluster.to_owned(),
            #[cfg(test)]
            bytes_allowed: std::sync::Arc::default(),
        }
    }

    /// Whether any node can be asked.
    pub(crate) fn is_connected(&self) -> bool {
        is_connected(&self.client)
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Of one process: another that ran under the name, and may only have hung, answers for itself alone.
    fn subject(&self, node: &str, incarnation: u64) -> String {
        format!("seriatim.{}.node.{node}.{incarnation:016x}", self.cluster)
    }

    /// Begins to hear what others ask this node.
    ///
    /// # Errors
    /// [`ClusterError::Servers`] when the servers refuse.
    pub(crate) async fn listen(&self, node: &str, incarnation: u64) -> Result<Subscriber, ClusterError> {
        let subscribed = self.client.subscribe(self.subject(node, incarnation)).await;
        subscribed.map_err(|error| ClusterError::Servers(error.to_string()))
    }

    /// The most bytes of what is said at once.
    pub(crate) fn bytes_max(&self) -> usize {
        #[cfg(test)]
        if let Some(bytes) = self.bytes_allowed.get() {
            return *bytes;
        }
        self.client.server_info().max_payload.saturating_sub(ENVELOPE_BYTES)
    }

    /// Asks a process that runs as a node, which may wait for work so long.
    pub(crate) async fn ask(
        &self,
        (node, incarnation): (&str, u64),
        ask: &Ask,
        wait: Duration,
    ) -> NodeAnswer {
        let payload = wire::write(ask);
        if payload.len() > self.bytes_max() {
            return NodeAnswer::Replied(NodeReply::TooLarge {
                bytes: payload.len(),
                bytes_max: self.bytes_max(),
            });
        }
        let timeout = wait.saturating_add(limits::NODE_ANSWER);
        let request = Request::new().payload(payload.into()).timeout(Some(timeout));
        // What waits for a connection would be done when nobody waits for its answer any more.
        if !self.is_connected() {
            return NodeAnswer::Nobody;
        }
        let asked = self.client.send_request(self.subject(node, incarnation), request);
        match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(answer)) => match wire::read(&answer.payload) {
                Some(said) => NodeAnswer::Replied(said),
                None => NodeAnswer::Nothing(format!("what node {node} has answered is not understood")),
            },
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => NodeAnswer::Nobody,
            Ok(Err(error)) => NodeAnswer::Nothing(format!("node {node}: {error}")),
            Err(_) => NodeAnswer::Nothing(format!("node {node}: it has not answered in {timeout:?}")),
        }
    }

    /// Tells a process that runs as a node something that is not answered.
    pub(crate) async fn tell(&self, (node, incarnation): (&str, u64), ask: &Ask) {
        let told = self.client.publish(self.subject(node, incarnation), wire::write(ask).into());
        if let Err(error) = in_time(limits::NATS_ANSWER, told).await {
            tracing::warn!(node, %error, "a node could not be told what was given back; its locks run out");
        }
    }

    /// Answers whoever has asked.
    pub(crate) async fn answer(&self, to: async_nats::Subject, said: Vec<u8>) {
        if let Err(error) = in_time(limits::NATS_ANSWER, self.client.publish(to, said.into())).await {
            tracing::warn!(%error, "a node could not be answered");
        }
    }
}
