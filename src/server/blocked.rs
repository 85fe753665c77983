//! What does not go on, over all queues: the first thing to look at when something is wrong.

use std::collections::BTreeMap;

use axum::extract::State;

use crate::api::BlockedPage;
use crate::api::BlockedQuery;
use crate::api::views::BlockedCause;
use crate::api::views::BlockedView;
use crate::api::views::HeldBackView;
use crate::engine::HoldCause;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::Queue;
use crate::engine::QueueView;
use crate::engine::WorkflowView;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::sas::Right;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::blocked_reason::held_or_failed_because;
use crate::server::extract::QueryParams;
use crate::server::page::page_limit;
use crate::server::principal::Principal;
use crate::server::shared::ServerState;
use crate::server::shared::SharedServer;
use crate::server::unordered_summary::UnorderedSummary;
use crate::server::walk::WorkflowWalk;

pub(crate) async fn list(
    State(shared): State<SharedServer>,
    principal: Principal,
    QueryParams(query): QueryParams<BlockedQuery>,
) -> HttpResult {
    if let Some(queue) = &query.queue {
        principal.check(Right::Listen, Some(queue))?;
    }
    let mut search = BlockedSearch::new(&shared, &principal, query)?;
    search.run().await?;
    let BlockedSearch { blocked, stands_at, .. } = search;
    json(&BlockedPage { blocked, after: stands_at })
}

/// A search for workflows that do not go on.
struct BlockedSearch<'a> {
    app_state: &'a ServerState,
    principal: &'a Principal,
    queue: Option<QueueName>,
    cause: Option<BlockedCause>,
    reason: Option<String>,
    limit: usize,
    /// Workflows that may still be looked at.
    looks: usize,
    blocked: Vec<BlockedView>,
    /// Where it has to go on; `None` when it has come to the end.
    stands_at: Option<String>,
}

impl<'a> BlockedSearch<'a> {
    fn new(
        app_state: &'a ServerState,
        principal: &'a Principal,
        query: BlockedQuery,
    ) -> Result<BlockedSearch<'a>, HttpRefusal> {
        Ok(BlockedSearch {
            app_state,
            principal,
            queue: query.queue.map(QueueName::new).transpose()?,
            cause: query.cause,
            reason: query.reason,
            limit: page_limit(query.limit)?,
            looks: limits::HTTP_LOOKS_MAX,
            blocked: Vec::new(),
            stands_at: query.after,
        })
    }

    async fn run(&mut self) -> Result<(), HttpRefusal> {
        let (first, after) = match self.stands_at.take() {
            None => (None, None),
            Some(text) => {
                let from = QueueName::topic_len(&text);
                let at = text[from..].find('/').map_or(text.len(), |at| from + at);
                let (queue, id) = (&text[..at], text.get(at + 1..).unwrap_or_default());
                (Some(QueueName::new(queue)?), Some(id.to_owned()).filter(|id| !id.is_empty()))
            }
        };
        if let Some(name) = &self.queue {
            let view = self.app_state.client.queue(name)?.view().await?;
            return self.search(&view, after).await;
        }
        // The page before ended inside a queue, which may be gone by now.
        if let Some(name) = &first
            && let Ok(view) = self.app_state.client.queue(name)?.view().await
        {
            self.search(&view, after).await?;
        }
        self.search_behind(first).await
    }

    async fn search_behind(&mut self, mut queue: Option<QueueName>) -> Result<(), HttpRefusal> {
        while self.stands_at.is_none() {
            let views = self.app_state.client.queues(queue.as_ref(), limits::HTTP_PAGE).await?;
            let Some(last) = views.last() else { return Ok(()) };
            queue = Some(last.name.clone());
            for view in &views {
                self.search(view, None).await?;
                if self.stands_at.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Searches one queue.
    async fn search(&mut self, view: &QueueView, after: Option<String>) -> Result<(), HttpRefusal> {
        if !self.principal.reaches(view.name.as_str()) {
            return Ok(());
        }
        let held_back = self.held_back(view);
        let had_looks = self.looks > 0;
        if !had_looks && UnorderedSummary::is_needed(view, held_back.as_ref(), |cause| self.wants(cause)) {
            self.stands_at = Some(format!("{}/{}", view.name, after.unwrap_or_default()));
            return Ok(());
        }
        let stalled = StalledQueue::look(self, view).await?;
        let looks = self.looks;
        // It keeps from looking at further queues, but each request gets on with the workflows of this one.
        self.looks = looks.saturating_sub(stalled.looks);
        if view.options.order == Order::None && stalled.alone.is_none() {
            return Ok(());
        }
        if self.blocked.len() >= self.limit || !had_looks {
            self.stands_at = Some(format!("{}/{}", view.name, after.unwrap_or_default()));
            return Ok(());
        }
        let queue = self.app_state.client.queue(&view.name)?;
        let mut walk = WorkflowWalk::new(after, None)?;
        walk.looks = looks;
        walk.is_of_standing = self.asks_for_standing(view, &stalled);
        let cause = self.cause;
        let cause_of = |found: &WorkflowView| {
            let of_handlers = || BlockedCause::held_back(found, held_back.as_ref()?);
            stalled.cause_of(found).or_else(of_handlers)
        };
        let reason = self.reason.clone();
        let says = |found: &WorkflowView| {
            let text = reason.as_deref();
            text.is_none_or(|text| held_or_failed_because(found).any(|found_text| found_text.contains(text)))
        };
        let is_wanted = |found: &WorkflowView| match (cause_of(found), cause) {
            _ if !says(found) => false,
            (Some(found), Some(wanted)) => found == wanted,
            (Some(found), None) => found != BlockedCause::Locked,
            (None, _) => false,
        };
        let found = walk.next(&queue, self.limit - self.blocked.len(), is_wanted).await?;
        self.show(&queue, view, &stalled, &found.views).await?;
        self.looks = self.looks.saturating_sub(looks - walk.looks);
        let last = walk.after.clone();
        self.stands_at = walk.rest(found.is_last).map(|id| format!("{}/{id}", view.name));
        match stalled.alone.filter(|_| self.stands_at.is_none()) {
            Some(row) if self.blocked.len() < self.limit => self.blocked.push(row),
            Some(_) => {
                let last = last.map(|id| id.to_string()).unwrap_or_default();
                self.stands_at = Some(format!("{}/{last}", view.name));
            }
            None => {}
        }
        Ok(())
    }

    /// Adds the rows of workflows that were found.
    async fn show(
        &mut self,
        queue: &Queue,
        view: &QueueView,
        stalled: &StalledQueue,
        found: &[WorkflowView],
    ) -> Result<(), HttpRefusal> {
        let held_back = self.held_back(view);
        for workflow in found {
            let Some(id) = &workflow.workflow_id else { continue };
            if stalled.cause_of(workflow) == Some(BlockedCause::TooLarge) {
                self.blocked.extend(stalled.row_of(workflow));
                continue;
            }
            let about = about(queue, id, workflow).await?;
            let shown = BlockedView::show(&view.name, &view.options, workflow, about.as_ref());
            let of_handlers =
                || BlockedView::show_held_back(&view.name, workflow, held_back.as_ref()?, about.as_ref());
            self.blocked.extend(shown.or_else(of_handlers));
        }
        Ok(())
    }

    /// Why the handlers of a queue are handed nothing, if they are not.
    fn held_back(&self, view: &QueueView) -> Option<HeldBackView> {
        self.app_state.host.definition_of(&view.name).and_then(|definition| definition.held_back)
    }

    /// Whether everything that is asked for stands still by what the engine itself knows: not for a rate, a receiver or a
    /// handler, for which workflows wait that are ready, and not because somebody is at work.
    fn asks_for_standing(&self, view: &QueueView, stalled: &StalledQueue) -> bool {
        let held_back = self.held_back(view);
        match self.cause {
            Some(BlockedCause::Retry | BlockedCause::Deferred | BlockedCause::Gap | BlockedCause::Held) => {
                true
            }
            None => {
                held_back.is_none() && view.rate_limited_until.is_none() && stalled.of_workflow.is_empty()
            }
            _ => false,
        }
    }

    fn wants(&self, cause: BlockedCause) -> bool {
        self.cause.is_none_or(|wanted| wanted == cause)
    }
}

/// A workflow, if it does not go on for a reason that the engine knows.
pub(crate) async fn row_of(
    queue: &Queue,
    options: &QueueOptions,
    workflow: &WorkflowView,
) -> Result<Option<BlockedView>, HttpRefusal> {
    let Some(id) = &workflow.workflow_id else { return Ok(None) };
    let about = about(queue, id, workflow).await?;
    Ok(BlockedView::show(queue.name(), options, workflow, about.as_ref()))
}

/// The message because of which a workflow does not go on.
async fn about(
    queue: &Queue,
    id: &WorkflowId,
    workflow: &WorkflowView,
) -> Result<Option<MessageView>, HttpRefusal> {
    if let Some(number) = quarantined_for(workflow) {
        let found = queue.peek(number, 1).await?.pop();
        if let Some(message) = found.filter(|message| message.sequence_number == number) {
            return Ok(Some(message));
        }
    }
    Ok(queue.workflow(id)?.messages(0, 1).await?.pop())
}

/// What stands still in a queue because it is too large for its receivers.
#[derive(Default)]
struct StalledQueue {
    /// Of each workflow: the message at its head.
    of_workflow: BTreeMap<WorkflowId, BlockedView>,
    /// The first message without a workflow, or all that wait for their retry, for a handler, or for room in a window.
    alone: Option<BlockedView>,
    /// How many messages were looked at.
    looks: usize,
}

impl StalledQueue {
    /// Looks at the messages that were too large for somebody: those that have gone, or are not at the head any more, keep
    /// nobody waiting.
    async fn look(search: &BlockedSearch<'_>, view: &QueueView) -> Result<StalledQueue, HttpRefusal> {
        let mut stalled = StalledQueue::default();
        if search.wants(BlockedCause::TooLarge) {
            stalled.look_for_large(search, view).await?;
        }
        if stalled.alone.is_none() {
            let queue = search.app_state.client.queue(&view.name)?;
            let held_back = search.held_back(view);
            let wants = |cause| search.wants(cause);
            if UnorderedSummary::is_needed(view, held_back.as_ref(), wants) {
                let alone = UnorderedSummary::look(&queue, view, search.reason.as_deref()).await?;
                stalled.looks = alone.looks;
                stalled.alone = alone.row(&queue, view, held_back.as_ref(), wants).await?;
            }
        }
        if search.wants(BlockedCause::PrefetchWindow) && view.counts.ready > 0 && stalled.alone.is_none() {
            let full = search.app_state.host.full_window(&view.name);
            stalled.alone = full.map(|full| {
                BlockedView::show_full_window(&view.name, full.messages, full.since, view.counts.ready)
            });
        }
        Ok(stalled)
    }

    async fn look_for_large(
        &mut self,
        search: &BlockedSearch<'_>,
        view: &QueueView,
    ) -> Result<(), HttpRefusal> {
        let queue = search.app_state.client.queue(&view.name)?;
        for too_large in search.app_state.host.too_large(&view.name) {
            let number = too_large.sequence_number;
            let Some(message) = queue.peek(number, 1).await?.pop() else { continue };
            if message.sequence_number != number || message.status != MessageStatus::Ready {
                continue;
            }
            let sizes = (too_large.bytes, too_large.bytes_max);
            let row =
                |waiting| BlockedView::show_too_large(&view.name, &message, sizes, too_large.since, waiting);
            match message.workflow_id.clone().filter(|_| view.options.order != Order::None) {
                None => drop(self.alone.get_or_insert_with(|| row(view.counts.ready))),
                Some(id) => {
                    let workflow = queue.workflow(&id)?;
                    let head = workflow.messages(0, 1).await?.pop();
                    if head.is_some_and(|head| head.sequence_number == number)
                        && let Some(seen) = workflow.view().await?
                    {
                        self.of_workflow.insert(id, row(seen.messages));
                    }
                }
            }
        }
        Ok(())
    }

    /// Why a workflow does not go on: what the engine knows comes first, but who holds a stalled one cannot work on it.
    fn cause_of(&self, view: &WorkflowView) -> Option<BlockedCause> {
        let is_stalled = || self.row_of(view).map(|_| BlockedCause::TooLarge);
        match BlockedCause::of(view) {
            None | Some(BlockedCause::Locked) => is_stalled().or_else(|| BlockedCause::of(view)),
            known => known,
        }
    }

    fn row_of(&self, view: &WorkflowView) -> Option<BlockedView> {
        self.of_workflow.get(view.workflow_id.as_ref()?).cloned()
    }
}

/// The message whose retries were exhausted before its workflow was quarantined; it is a dead letter now.
fn quarantined_for(view: &WorkflowView) -> Option<SequenceNumber> {
    view.holds.iter().find_map(|hold| match hold.cause {
        HoldCause::Quarantine(number) => Some(number),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::engine::Engine;
    use crate::inbound::timeouts::Timeouts;
    use crate::message::Message;
    use crate::server::tests::fixture::FakeHost;
    use crate::server::tests::fixture::FakePlace;

    async fn server(engine: &Engine) -> ServerState {
        let (place, host) = (Arc::new(FakePlace), Arc::new(FakeHost::default()));
        ServerState::new(engine.client().clone(), place, host, None, Timeouts::default())
    }

    async fn queue_of_healthy(engine: &Engine, name: &str, messages: usize) -> Queue {
        let queue = engine.client().create_queue(name, QueueOptions::default()).await.unwrap();
        queue.send_batch((0..messages).map(|_| Message::new("x"))).await.unwrap();
        queue
    }

    #[tokio::test]
    async fn messages_without_a_workflow_that_all_go_on_are_not_looked_at() {
        let engine = Engine::in_memory().open().await.unwrap();
        queue_of_healthy(&engine, "orders", 1_000).await;
        let (app_state, principal) = (server(&engine).await, Principal::default());
        let mut search = BlockedSearch::new(&app_state, &principal, BlockedQuery::default()).unwrap();
        search.run().await.unwrap();
        assert_eq!((search.blocked.len(), search.stands_at), (0, None));
        assert_eq!(search.looks, limits::HTTP_LOOKS_MAX);
    }

    #[tokio::test]
    async fn messages_that_are_looked_at_are_counted_and_each_request_gets_on() {
        let engine = Engine::in_memory().open().await.unwrap();
        for name in ["a", "b"] {
            let queue = queue_of_healthy(&engine, name, 20).await;
            let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
            delivery.abandon_after(Duration::from_secs(60), "no").await.unwrap();
        }
        let (app_state, principal) = (server(&engine).await, Principal::default());
        let (mut after, mut seen) = (None, Vec::new());
        for stands_at in [Some("b/"), None] {
            let query = BlockedQuery { after, ..BlockedQuery::default() };
            let mut search = BlockedSearch::new(&app_state, &principal, query).unwrap();
            search.looks = 10;
            search.run().await.unwrap();
            assert_eq!(search.stands_at.as_deref(), stands_at);
            seen.extend(search.blocked.iter().map(|row| row.queue.clone()));
            after = search.stands_at;
        }
        assert_eq!(seen, ["a", "b"]);
    }
}
