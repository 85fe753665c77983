//! Calls about dead letters.

use crate::remote::error::RemoteError;
use crate::remote::operation::Operation;
use crate::remote::operation::OperationOutcome;
use crate::remote::page::DeadLetterPage;
use crate::remote::remote::Remote;
use crate::remote::route::Route;

impl Remote {
    /// A page of a queue's dead letters in order of reason and number.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn dead_letters(
        &self,
        queue: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<DeadLetterPage, RemoteError> {
        let route = Route::queue(queue).word("dead_letters");
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
        operation: &Operation,
    ) -> Result<OperationOutcome, RemoteError> {
        let route = Route::queue(queue).word("dead_letters").data(sequence_number).word("redrive");
        self.post(route).json(operation)?.answer_or_default().await
    }

    /// Removes all dead letters of a queue.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn purge_dead_letters(
        &self,
        queue: &str,
        operation: &Operation,
    ) -> Result<OperationOutcome, RemoteError> {
        let route = Route::queue(queue).word("dead_letters").word("purge");
        self.post(route).json(operation)?.patiently().answer_or_default().await
    }
}
