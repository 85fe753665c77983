//! Calls about workflows.

use bytes::Bytes;

use crate::remote::error::RemoteError;
use crate::remote::operation::BulkOperation;
use crate::remote::operation::BulkOutcome;
use crate::remote::operation::Operation;
use crate::remote::operation::OperationOutcome;
use crate::remote::page::BlockedPage;
use crate::remote::page::HistoryPage;
use crate::remote::page::MessagePage;
use crate::remote::page::WorkflowPage;
use crate::remote::remote::Remote;
use crate::remote::route::Route;
use crate::wire::views::BlockedCause;
use crate::wire::views::WorkflowEnvelope;

fn workflow_route(queue: &str, words: &[&str], workflow_id: &str) -> Route {
    let route = Route::queue(queue).word("workflow");
    words.iter().fold(route, |route, word| route.word(word)).query("id", Some(workflow_id))
}

impl Remote {
    /// Everything that does not go on by itself at once: workflows that are blocked, held or have a gap, or only those for one
    /// cause. Those that are locked while more waits behind are listed only when that is the cause.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn blocked(
        &self,
        queue: Option<&str>,
        cause: Option<BlockedCause>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<BlockedPage, RemoteError> {
        let route = Route::new("/v1/blocked").query("queue", queue).query("after", after);
        let route = route.query("cause", cause.map(BlockedCause::as_str));
        self.get(route.query("limit", Some(limit))).answer().await
    }

    /// A page of a queue's workflows in order of ID, with one of these statuses if any are given.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn workflows(
        &self,
        queue: &str,
        statuses: &[String],
        after: Option<&str>,
        limit: usize,
    ) -> Result<WorkflowPage, RemoteError> {
        let route = Route::queue(queue).word("workflows").query("after", after).query("limit", Some(limit));
        let statuses = (!statuses.is_empty()).then(|| statuses.join(","));
        self.get(route.query("status", statuses)).answer().await
    }

    /// A workflow, `None` when nothing is known of it. One of which nothing is stored any more is `ended`, if its queue
    /// remembers it.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn workflow(
        &self,
        queue: &str,
        workflow_id: &str,
    ) -> Result<Option<WorkflowEnvelope>, RemoteError> {
        self.get(workflow_route(queue, &[], workflow_id)).answer_if_any("workflow_not_found").await
    }

    /// A page of a workflow's messages in their order.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn workflow_messages(
        &self,
        queue: &str,
        workflow_id: &str,
        from: u64,
        limit: usize,
    ) -> Result<MessagePage, RemoteError> {
        let route = workflow_route(queue, &["messages"], workflow_id).query("from", Some(from));
        self.get(route.query("limit", Some(limit))).answer().await
    }

    /// What a queue remembers of messages that have ended, in one workflow or in all of them: newest first, before the entry
    /// with this number, or the newest.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn history(
        &self,
        queue: &str,
        workflow_id: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<HistoryPage, RemoteError> {
        let route = Route::queue(queue).word("history").query("workflow", workflow_id);
        let route = route.query("before", before).query("limit", Some(limit));
        self.get(route).answer().await
    }

    /// A workflow's state, `None` when it keeps none.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn state(&self, queue: &str, workflow_id: &str) -> Result<Option<Bytes>, RemoteError> {
        match self.get(workflow_route(queue, &["state"], workflow_id)).answer_bytes().await {
            Ok(state) => Ok(Some(state)),
            Err(error) if error.problem().is_some_and(|problem| problem.code == "state_not_found") => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets a workflow's state, or clears it.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn set_state(
        &self,
        queue: &str,
        workflow_id: &str,
        state: Option<Bytes>,
    ) -> Result<(), RemoteError> {
        let route = workflow_route(queue, &["state"], workflow_id);
        match state {
            Some(state) => self.put(route).bytes("application/octet-stream", state)?.answer_bytes().await?,
            None => self.delete(route).answer_bytes().await?,
        };
        Ok(())
    }

    /// Operates on a workflow: hold, resume, retry, skip, release_lock, void, skip_gap or purge.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem when the workflow is not in the state the verb needs.
    pub async fn operate(
        &self,
        queue: &str,
        workflow_id: &str,
        verb: &str,
        operation: &Operation,
    ) -> Result<OperationOutcome, RemoteError> {
        let call = self.post(workflow_route(queue, &[verb], workflow_id)).json(operation)?;
        call.patiently().answer().await
    }

    /// Operates on a page of the workflows, or dead letters, that match; the outcome says where to go on.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn operate_on_all(
        &self,
        queue: &str,
        bulk: &BulkOperation,
    ) -> Result<BulkOutcome, RemoteError> {
        self.post(Route::queue(queue).word("operate")).json(bulk)?.patiently().answer().await
    }
}
