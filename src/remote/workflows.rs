//! Calls about workflows.

use bytes::Bytes;

use crate::api::BlockedPage;
use crate::api::BlockedQuery;
use crate::api::BulkRequest;
use crate::api::BulkResponse;
use crate::api::HistoryPage;
use crate::api::HistoryQuery;
use crate::api::MessagePage;
use crate::api::OperateRequest;
use crate::api::OperateResponse;
use crate::api::Verb;
use crate::api::WorkflowMessagesQuery;
use crate::api::WorkflowPage;
use crate::api::WorkflowQuery;
use crate::api::WorkflowsQuery;
use crate::api::views::BlockedCause;
use crate::api::views::WorkflowEnvelope;
use crate::remote::error::RemoteError;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

fn workflow_route(queue: &str, words: &[&str], workflow_id: &str) -> RequestPath {
    let route = RequestPath::queue(queue).word("workflow");
    words
        .iter()
        .fold(route, |route, word| route.word(word))
        .asking(&WorkflowQuery { id: workflow_id.to_owned() })
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
        let (queue, after) = (queue.map(str::to_owned), after.map(str::to_owned));
        let query = BlockedQuery { queue, cause, after, limit: Some(limit), reason: None };
        self.get(RequestPath::new("/v1/blocked").asking(&query)).answer().await
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
        let status = (!statuses.is_empty()).then(|| statuses.join(","));
        let after = after.map(str::to_owned);
        let query = WorkflowsQuery { after, limit: Some(limit), status, prefix: None };
        self.get(RequestPath::queue(queue).word("workflows").asking(&query)).answer().await
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
        let query = WorkflowMessagesQuery { id: workflow_id.to_owned(), from, limit: Some(limit) };
        let route = RequestPath::queue(queue).word("workflow").word("messages").asking(&query);
        self.get(route).answer().await
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
        let query = HistoryQuery { workflow: workflow_id.map(str::to_owned), before, limit: Some(limit) };
        self.get(RequestPath::queue(queue).word("history").asking(&query)).answer().await
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
            Some(state) => self.put(route).bytes("application/octet-stream", state)?.answer_nothing().await,
            None => self.delete(route).answer_nothing().await,
        }
    }

    /// Operates on a workflow: hold, resume, retry, skip, release_lock, void, skip_gap or purge.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem when the workflow is not in the state the verb needs.
    pub async fn operate(
        &self,
        queue: &str,
        workflow_id: &str,
        verb: Verb,
        operation: &OperateRequest,
    ) -> Result<OperateResponse, RemoteError> {
        let call = self.post(workflow_route(queue, &[verb.as_str()], workflow_id)).json(operation)?;
        call.without_timeout().answer().await
    }

    /// Operates on a page of the workflows, or dead letters, that match; the outcome says where to go on.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn operate_on_all(&self, queue: &str, bulk: &BulkRequest) -> Result<BulkResponse, RemoteError> {
        self.post(RequestPath::queue(queue).word("operate")).json(bulk)?.without_timeout().answer().await
    }
}
