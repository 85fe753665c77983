//! What does not get on, over all queues: the first thing to look at when something is wrong.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::QueueView;
use crate::engine::WorkflowView;
use crate::id::QueueName;
use crate::limits;
use crate::queue::Order;
use crate::sas::Right;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::caller::Caller;
use crate::server::named::Asked;
use crate::server::page::page_limit;
use crate::server::shared::House;
use crate::server::shared::Shared;
use crate::server::walk::Walk;
use crate::wire::views::BlockedCause;
use crate::wire::views::BlockedView;

/// Which of the workflows that do not get on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BlockedQuery {
    /// Only those of this queue.
    queue: Option<String>,
    /// Only those for this cause; without it, all but those that are locked.
    cause: Option<BlockedCause>,
    /// Where the page before ended; as answered there.
    after: Option<String>,
    /// How many at most: 100 if it is not given, 1,000 at most.
    limit: Option<usize>,
}

/// A page of workflows that do not get on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BlockedAnswer {
    /// The workflows, in order of queue and ID.
    blocked: Vec<BlockedView>,
    /// Where the next page begins after; absent on the last. A page may be empty and still have one behind it: no
    /// request looks at more than 10,000 workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

pub(crate) async fn list(
    State(shared): State<Shared>,
    caller: Caller,
    Asked(query): Asked<BlockedQuery>,
) -> Answer {
    if let Some(queue) = &query.queue {
        caller.check(Right::Listen, Some(queue))?;
    }
    let mut search = Search::new(&shared, &caller, query)?;
    search.run().await?;
    let Search { blocked, stands_at, .. } = search;
    json(&BlockedAnswer { blocked, after: stands_at })
}

/// A search for workflows that do not get on.
struct Search<'a> {
    house: &'a House,
    caller: &'a Caller,
    queue: Option<QueueName>,
    cause: Option<BlockedCause>,
    limit: usize,
    /// Workflows that may still be looked at.
    looks: usize,
    blocked: Vec<BlockedView>,
    /// Where it has to go on; `None` when it has come to the end.
    stands_at: Option<String>,
}

impl<'a> Search<'a> {
    fn new(house: &'a House, caller: &'a Caller, query: BlockedQuery) -> Result<Search<'a>, Refused> {
        Ok(Search {
            house,
            caller,
            queue: query.queue.map(QueueName::new).transpose()?,
            cause: query.cause,
            limit: page_limit(query.limit)?,
            looks: limits::HTTP_LOOKS_MAX,
            blocked: Vec::new(),
            stands_at: query.after,
        })
    }

    async fn run(&mut self) -> Result<(), Refused> {
        let (first, after) = match self.stands_at.take() {
            None => (None, None),
            Some(text) => {
                let (queue, id) = text.split_once('/').unwrap_or((&text, ""));
                (Some(QueueName::new(queue)?), Some(id.to_owned()).filter(|id| !id.is_empty()))
            }
        };
        if let Some(name) = &self.queue {
            let view = self.house.client.queue(name)?.view().await?;
            return self.search(&view, after).await;
        }
        // The page before ended inside a queue, which may be gone by now.
        if let Some(name) = &first
            && let Ok(view) = self.house.client.queue(name)?.view().await
        {
            self.search(&view, after).await?;
        }
        self.search_behind(first).await
    }

    async fn search_behind(&mut self, mut queue: Option<QueueName>) -> Result<(), Refused> {
        while self.stands_at.is_none() {
            let views = self.house.client.queues(queue.as_ref(), limits::HTTP_PAGE).await?;
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
    async fn search(&mut self, view: &QueueView, after: Option<String>) -> Result<(), Refused> {
        if view.options.order == Order::None || !self.caller.reaches(view.name.as_str()) {
            return Ok(());
        }
        if self.blocked.len() >= self.limit || self.looks == 0 {
            self.stands_at = Some(format!("{}/{}", view.name, after.unwrap_or_default()));
            return Ok(());
        }
        let queue = self.house.client.queue(&view.name)?;
        let mut walk = Walk::new(after, None)?;
        walk.looks = self.looks;
        let cause = self.cause;
        let is_wanted = |found: &WorkflowView| match (BlockedCause::of(found), cause) {
            (Some(found), Some(wanted)) => found == wanted,
            (Some(found), None) => found != BlockedCause::Locked,
            (None, _) => false,
        };
        let found = walk.next(&queue, self.limit - self.blocked.len(), is_wanted).await?;
        for workflow in &found.views {
            let Some(id) = &workflow.workflow_id else { continue };
            let head = queue.workflow(id)?.messages(0, 1).await?;
            self.blocked.extend(BlockedView::show(&view.name, &view.options, workflow, head.first()));
        }
        self.looks = walk.looks;
        self.stands_at = walk.rest(found.is_last).map(|id| format!("{}/{id}", view.name));
        Ok(())
    }
}
