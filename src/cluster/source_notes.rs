//! By which sources the messages of each queue are placed, as the nodes note it for those that are down meanwhile.

use async_nats::jetstream::kv::UpdateError;
use async_nats::jetstream::kv::UpdateErrorKind;
use bytes::Bytes;

use crate::cluster::connection::in_time;
use crate::cluster::definitions::key_with;
use crate::cluster::handle::ClusterHandle;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;

const SOURCES_PREFIX: &str = "sources.";

impl ClusterHandle {
    /// What was noted last of a queue, with its revision, as the leader of the bucket says; 0 if nothing ever was.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when the servers do not say.
    pub(crate) async fn sources_of(&self, queue: &QueueName) -> Result<(u64, Option<String>), Unavailable> {
        let noted = self.router.definitions.last_of(&key_with(SOURCES_PREFIX, queue)).await;
        let Some(noted) = noted.map_err(failed)? else { return Ok((0, None)) };
        // A note that was taken back where there was none before.
        if noted.payload.is_empty() {
            return Ok((noted.sequence, None));
        }
        let sources = serde_json::from_slice(&noted.payload).map_err(|error| failed(error.to_string()))?;
        Ok((noted.sequence, Some(sources)))
    }

    /// Notes by which sources messages of a queue are placed from then on, if nobody has noted anything since a revision. Returns that of
    /// the note.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when another was faster, or the servers do not say that they have it.
    pub(crate) async fn note_sources_behind(
        &self,
        queue: &QueueName,
        sources: &str,
        behind: u64,
    ) -> Result<u64, Unavailable> {
        let put =
            self.router.leases.bucket.update(key_with(SOURCES_PREFIX, queue), bytes_of(sources), behind);
        let why = match tokio::time::timeout(limits::NATS_ANSWER, put).await {
            Ok(Ok(revision)) => return Ok(revision),
            Ok(Err(error)) if is_late(&error) => return Err(failed(error.to_string())),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer came in {:?}", limits::NATS_ANSWER),
        };
        // It may be there though nobody says so, and has to be taken back then if its definition is refused.
        match self.sources_of(queue).await? {
            (revision, Some(noted)) if revision > behind && noted == sources => Ok(revision),
            _ => Err(failed(why)),
        }
    }

    /// Notes by which sources messages of a queue are placed, whatever was noted before.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when the servers do not say that they have it.
    pub(crate) async fn note_sources(&self, queue: &QueueName, sources: &str) -> Result<(), Unavailable> {
        let put = self.router.leases.bucket.put(key_with(SOURCES_PREFIX, queue), bytes_of(sources));
        in_time(limits::NATS_ANSWER, put).await.map(drop).map_err(failed)
    }

    /// Puts what was noted before in the place of a note, unless somebody has noted something since.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when the servers do not say that it is done.
    pub(crate) async fn take_back_sources(
        &self,
        queue: &QueueName,
        before: Option<&str>,
        noted: u64,
    ) -> Result<(), Unavailable> {
        let (bucket, key) = (&self.router.leases.bucket, key_with(SOURCES_PREFIX, queue));
        let taken_back = async {
            match before {
                Some(before) => bucket.update(key, bytes_of(before), noted).await.map(drop),
                None => bucket.delete_expect_revision(key, Some(noted)).await,
            }
        };
        let unless_late = async {
            match taken_back.await {
                Err(error) if is_late(&error) => Ok(()),
                taken_back => taken_back,
            }
        };
        in_time(limits::NATS_ANSWER, unless_late).await.map_err(failed)
    }
}

fn bytes_of(sources: &str) -> Bytes {
    serde_json::to_vec(sources).expect("a text can be written").into()
}

/// Whether somebody has noted something since.
fn is_late(error: &UpdateError) -> bool {
    error.kind() == UpdateErrorKind::WrongLastRevision
}

fn failed(why: String) -> Unavailable {
    Unavailable::Unanswered(format!("by which sources messages are placed: {why}"))
}
