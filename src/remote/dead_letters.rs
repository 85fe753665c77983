//! Calls about dead letters, and those that remove messages for good.

use crate::remote::error::RemoteError;
use crate::remote::operation::Purge;
use crate::remote::operation::PurgeOutcome;
use crate::remote::operation::Redrive;
use crate::remote::operation::RedriveMany;
use crate::remote::operation::RedriveManyOutcome;
use crate::remote::operation::RedriveOutcome;
use crate::remote::page::DeadLetterPage;
use crate::remote::remote::Remote;
use crate::remote::route::Route;

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
        let route = Route::queue(queue).word("dead_letters").query("reason", reason);
        self.get(route.query("after", after).query("limit", Some(limit))).answer().await
    }

    /// Puts a dead letter back: to its own place while its workflow is held before it, else as a new message.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `place_passed` when the workflow has gone past its place.
    pub async fn redrive(
        &self,
        queue: &str,
        sequence_number: u64,
        redrive: &Redrive,
    ) -> Result<RedriveOutcome, RemoteError> {
        let route = Route::queue(queue).word("dead_letters").data(sequence_number).word("redrive");
        self.post(route).json(redrive)?.answer().await
    }

    /// Puts a page of dead letters back, those that are meant; the outcome says where to go on.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn redrive_many(
        &self,
        queue: &str,
        redrive: &RedriveMany,
    ) -> Result<RedriveManyOutcome, RemoteError> {
        let route = Route::queue(queue).word("dead_letters").word("redrive");
        self.post(route).json(redrive)?.patiently().answer().await
    }

    /// Removes all dead letters of a queue for good.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn purge_dead_letters(&self, queue: &str, purge: &Purge) -> Result<PurgeOutcome, RemoteError> {
        let route = Route::queue(queue).word("dead_letters").word("purge");
        self.post(route).json(purge)?.patiently().answer().await
    }

    /// Removes everything a queue stores for good, but what is handed out.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn purge_queue(&self, queue: &str, purge: &Purge) -> Result<PurgeOutcome, RemoteError> {
        self.post(Route::queue(queue).word("purge")).json(purge)?.patiently().answer().await
    }
}
