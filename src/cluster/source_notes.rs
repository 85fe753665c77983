//! By which sources the messages of each queue are placed, as the nodes note it for those that are down meanwhile.

use crate::cluster::connection::in_time;
use crate::cluster::definitions::key_with;
use crate::cluster::handle::ClusterHandle;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;

const SOURCES_PREFIX: &str = "sources.";

impl ClusterHandle {
    /// What was noted last of a queue, as the leader of the bucket says.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when the servers do not say.
    pub(crate) async fn sources_of(&self, queue: &QueueName) -> Result<Option<String>, Unavailable> {
        let noted = self.router.definitions.last_of(&key_with(SOURCES_PREFIX, queue)).await;
        let Some(noted) = noted.map_err(failed)? else { return Ok(None) };
        serde_json::from_slice(&noted.payload).map(Some).map_err(|error| failed(error.to_string()))
    }

    /// Notes by which sources messages of a queue are placed from then on.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when the servers do not say that they have it.
    pub(crate) async fn note_sources(&self, queue: &QueueName, sources: &str) -> Result<(), Unavailable> {
        let bytes = serde_json::to_vec(sources).expect("a text can be written").into();
        let put = self.router.leases.bucket.put(key_with(SOURCES_PREFIX, queue), bytes);
        in_time(limits::NATS_ANSWER, put).await.map(drop).map_err(failed)
    }
}

fn failed(why: String) -> Unavailable {
    Unavailable::Unanswered(format!("by which sources messages are placed: {why}"))
}
