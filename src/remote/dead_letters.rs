//! Calls about dead letters, and those that remove messages for good.

use crate::api::DeadLetterPage;
use crate::api::DeadLettersQuery;
use crate::api::PurgeRequest;
use crate::api::PurgeResponse;
use crate::api::RedriveManyRequest;
use crate::api::RedriveManyResponse;
use crate::api::RedriveRequest;
use crate::api::RedriveResponse;
use crate::remote::error::RemoteError;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

impl Remote {
    /// A page of a queue's dead letters in order of reason and number, only those with this reason if one is given.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn dead_letters(
        &self,
        queue: &str,
        reason: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<DeadLetterPage, RemoteError> {
        let (reason, after) = (reason.map(str::to_owned), after.map(str::to_owned));
        let query = DeadLettersQuery { after, limit: Some(limit), reason };
        self.get(RequestPath::queue(queue).word("dead_letters").asking(&query)).answer().await
    }

    /// Puts a dead letter back: to its own place while its workflow is held before it, else as a new message.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `place_passed` when the workflow has gone past its place.
    pub async fn redrive(
        &self,
        queue: &str,
        sequence_number: u64,
        redrive: &RedriveRequest,
    ) -> Result<RedriveResponse, RemoteError> {
        let route = RequestPath::queue(queue).word("dead_letters").data(sequence_number).word("redrive");
        self.post(route).json(redrive)?.answer().await
    }

    /// Puts a page of dead letters back, those that are meant; the outcome says where to go on.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn redrive_many(
        &self,
        queue: &str,
        redrive: &RedriveManyRequest,
    ) -> Result<RedriveManyResponse, RemoteError> {
        let route = RequestPath::queue(queue).word("dead_letters").word("redrive");
        self.post(route).json(redrive)?.without_timeout().answer().await
    }

    /// Removes all dead letters of a queue for good.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn purge_dead_letters(
        &self,
        queue: &str,
        purge: &PurgeRequest,
    ) -> Result<PurgeResponse, RemoteError> {
        let route = RequestPath::queue(queue).word("dead_letters").word("purge");
        self.post(route).json(purge)?.without_timeout().answer().await
    }

    /// Removes everything a queue stores for good, but what is handed out.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn purge_queue(&self, queue: &str, purge: &PurgeRequest) -> Result<PurgeResponse, RemoteError> {
        self.post(RequestPath::queue(queue).word("purge")).json(purge)?.without_timeout().answer().await
    }
}
