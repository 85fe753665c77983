//! Calls about queues.

use crate::api::PageQuery;
use crate::api::QueuePage;
use crate::api::options::OptionsEnvelope;
use crate::api::views::QueueEnvelope;
use crate::remote::error::RemoteError;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

impl Remote {
    /// A page of queues in order of name, after the given one.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn queues(&self, after: Option<&str>, limit: usize) -> Result<QueuePage, RemoteError> {
        let query = PageQuery { after: after.map(str::to_owned), limit: Some(limit) };
        self.get(RequestPath::new("/v1/queues").asking(&query)).answer().await
    }

    /// A queue.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `queue_not_found` when there is none.
    pub async fn queue(&self, queue: &str) -> Result<QueueEnvelope, RemoteError> {
        self.get(RequestPath::queue(queue)).answer().await
    }

    /// Creates a queue, or gives it these options in the place of all that it had; one that is not named gets its default.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn put_queue(
        &self,
        queue: &str,
        options: &OptionsEnvelope,
    ) -> Result<QueueEnvelope, RemoteError> {
        self.put(RequestPath::queue(queue)).json(options)?.answer().await
    }

    /// Deletes a queue with everything in it.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn delete_queue(&self, queue: &str) -> Result<(), RemoteError> {
        self.delete(RequestPath::queue(queue)).without_timeout().answer_nothing().await
    }

    /// Stops the handlers of a queue from taking further messages.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn pause(&self, queue: &str) -> Result<(), RemoteError> {
        self.post(RequestPath::queue(queue).word("pause")).answer_nothing().await
    }

    /// Lets the handlers of a queue go on.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn unpause(&self, queue: &str) -> Result<(), RemoteError> {
        self.post(RequestPath::queue(queue).word("resume")).answer_nothing().await
    }
}
