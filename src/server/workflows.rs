//! Workflows: list, look, their messages and their state.

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::de::IgnoredAny;

use crate::api::MessagePage;
use crate::api::WorkflowMessagesQuery;
use crate::api::WorkflowPage;
use crate::api::WorkflowQuery;
use crate::api::WorkflowsQuery;
use crate::api::views::WorkflowEnvelope;
use crate::api::views::WorkflowWord;
use crate::engine::Queue;
use crate::engine::Workflow;
use crate::engine::WorkflowView;
use crate::inbound::browser::bytes_as;
use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::queue::Order;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::answer::no_content;
use crate::server::blocked;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::check_not_encoded;
use crate::server::impersonation::Acting;
use crate::server::page::page_limit;
use crate::server::shared::SharedServer;
use crate::server::walk::WorkflowWalk;

/// Reads words that are separated by commas.
pub(crate) fn statuses(text: Option<&str>) -> Result<Vec<WorkflowWord>, HttpRefusal> {
    let words = text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    let read = |word: &str| {
        let word = serde_json::Value::from(word);
        let known = "ready, locked, blocked, scheduled, waiting_for_predecessor, held and idle";
        serde_json::from_value(word)
            .map_err(|_| HttpRefusal::misuse("status", format!("is not one of {known}")))
    };
    words.map(read).collect()
}

pub(crate) async fn list(extract: PathParams, QueryParams(query): QueryParams<WorkflowsQuery>) -> HttpResult {
    let (queue, limit) = (extract.queue()?, page_limit(query.limit)?);
    let statuses = statuses(query.status.as_deref())?;
    let mut walk = WorkflowWalk::new(query.after, query.prefix)?;
    let has_status =
        |view: &WorkflowView| statuses.is_empty() || statuses.contains(&WorkflowWord::show(&view.status));
    let found = walk.next(&queue, limit, has_status).await?;
    let workflows = found.views.iter().map(WorkflowEnvelope::show).collect();
    json(&WorkflowPage { workflows, after: walk.rest(found.is_last) })
}

pub(crate) async fn look(extract: PathParams, QueryParams(query): QueryParams<WorkflowQuery>) -> HttpResult {
    let queue = extract.queue()?;
    let workflow = queue.workflow(query.id)?;
    match view(&queue, &workflow).await {
        Ok(view) => json(&shown(&queue, &view).await?),
        // What is stored goes before what is remembered.
        Err(missing) => match workflow.history(None, 1).await?.first() {
            Some(last) => json(&WorkflowEnvelope::show_ended(last)),
            None => Err(missing),
        },
    }
}

/// A workflow that one has asked for, with why it does not go on.
pub(crate) async fn shown(queue: &Queue, view: &WorkflowView) -> Result<WorkflowEnvelope, HttpRefusal> {
    let options = queue.options().await?;
    let blocked = blocked::row_of(queue, &options, view).await?.map(Box::new);
    Ok(WorkflowEnvelope { blocked, ..WorkflowEnvelope::show(view) })
}

/// A workflow as it is, or a refusal when nothing is stored of it.
pub(crate) async fn view(queue: &Queue, workflow: &Workflow) -> Result<WorkflowView, HttpRefusal> {
    let missing = || {
        let detail = format!("queue {} stores nothing of workflow {:?}", queue.name(), workflow.id());
        HttpRefusal::new("workflow_not_found", detail)
    };
    workflow.view().await?.ok_or_else(missing)
}

pub(crate) async fn messages(
    extract: PathParams,
    QueryParams(query): QueryParams<WorkflowMessagesQuery>,
) -> HttpResult {
    let queue = extract.queue()?;
    let limit = page_limit(query.limit)?;
    let order = queue.options().await?.order;
    let views = queue.workflow(query.id)?.messages(query.from, limit).await?;
    let next = views.last().and_then(|last| match order {
        Order::Position { .. } => Some(last.position? + 1),
        // What follows what is no number.
        Order::After => None,
        _ => Some(last.sequence_number.get() + 1),
    });
    json(&MessagePage::show(&views, next))
}

pub(crate) async fn state(extract: PathParams, QueryParams(query): QueryParams<WorkflowQuery>) -> HttpResult {
    let queue = extract.queue()?;
    let workflow = queue.workflow(query.id)?;
    match workflow.state().await? {
        Some(state) => Ok(shown_state(state)),
        None => {
            let detail = format!("workflow {:?} of queue {} keeps no state", workflow.id(), queue.name());
            Err(HttpRefusal::new("state_not_found", detail))
        }
    }
}

fn shown_state(state: bytes::Bytes) -> Response {
    let is_json = serde_json::from_slice::<IgnoredAny>(&state).is_ok();
    let media_type = if is_json { "application/json" } else { "application/octet-stream" };
    bytes_as(StatusCode::OK, media_type, state)
}

pub(crate) async fn put_state(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
    QueryParams(query): QueryParams<WorkflowQuery>,
    request: Request,
) -> HttpResult {
    let queue = client.queue(extract.text("queue")?)?;
    check_not_encoded(request.headers())?;
    // One byte more than is allowed, so that the engine says what is.
    let inflow = Inflow::new(&shared.reading, request.into_body(), limits::STATE_BYTES_MAX + 1);
    let (state, _room) = inflow.all().await?;
    queue.workflow(query.id)?.set_state(Some(state)).await?;
    no_content()
}

pub(crate) async fn delete_state(
    Acting(client): Acting,
    extract: PathParams,
    QueryParams(query): QueryParams<WorkflowQuery>,
) -> HttpResult {
    client.queue(extract.text("queue")?)?.workflow(query.id)?.set_state(None).await?;
    no_content()
}
