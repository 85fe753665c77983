//! Queues: list, look, create, change, delete, purge.

use axum::extract::State;
use http::StatusCode;

use crate::api::PageQuery;
use crate::api::PurgeRequest;
use crate::api::PurgeResponse;
use crate::api::QueuePage;
use crate::api::options::OptionsEnvelope;
use crate::api::views::QueueEnvelope;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::id::QueueName;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::answer::json_as;
use crate::server::answer::no_content;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::required;
use crate::server::impersonation::Acting;
use crate::server::impersonation::acting_as;
use crate::server::page::page_of_reached;
use crate::server::principal::Principal;
use crate::server::shared::ServerState;
use crate::server::shared::SharedServer;

pub(crate) async fn list(
    State(shared): State<SharedServer>,
    principal: Principal,
    QueryParams(page): QueryParams<PageQuery>,
) -> HttpResult {
    let (views, after) = page_of_reached(&shared.client, &principal, page).await?;
    json(&QueuePage { queues: views.iter().map(|view| shown(&shared, view)).collect(), after })
}

pub(crate) async fn look(State(shared): State<SharedServer>, extract: PathParams) -> HttpResult {
    json(&shown(&shared, &extract.queue()?.view().await?))
}

/// A queue, with what the daemon knows of it.
fn shown(app_state: &ServerState, view: &QueueView) -> QueueEnvelope {
    let mut shown = QueueEnvelope::show(view);
    if let Some(definition) = app_state.host.definition_of(&view.name) {
        shown.definition = Some(definition.file);
        shown.redact = definition.redact;
        shown.paused = (!definition.handlers.is_empty()).then_some(definition.paused);
        if !definition.retry_delays.is_empty() {
            shown.retry_delays = definition.retry_delays;
            shown.options.retry.backoff = None;
        }
    }
    shown
}

pub(crate) async fn put(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
    JsonBody(options): JsonBody<OptionsEnvelope>,
) -> HttpResult {
    let queue = extract.queue()?;
    check_not_defined(&shared, queue.name())?;
    let options = options.read()?;
    let existed = queue.view_if_any().await?.is_some();
    client.put_queue(queue.name(), options).await?;
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json_as(status, &shown(&shared, &queue.view().await?)))
}

pub(crate) async fn delete(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
) -> HttpResult {
    let queue = extract.queue()?;
    check_not_defined(&shared, queue.name())?;
    client.delete_queue(queue.name()).await?;
    no_content()
}

/// What a file defines is changed in that file.
pub(crate) fn check_not_defined(app_state: &ServerState, queue: &QueueName) -> Result<(), HttpRefusal> {
    match app_state.host.definition_of(queue) {
        None => Ok(()),
        Some(definition) => {
            let detail =
                format!("queue {queue} is defined by {}: change or remove that file", definition.file);
            Err(HttpRefusal::new("queue_is_defined", detail))
        }
    }
}

pub(crate) async fn purge(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<PurgeRequest>,
) -> HttpResult {
    let queue = extract.queue()?;
    let counts = queue.view().await?.counts;
    if request.dry_run {
        // Its first step is judged; the counters know how many steps there would be.
        shared.client.dry_run().queue(queue.name())?.purge().await?;
        return json(&PurgeResponse { purged: counts.stored() - counts.locked, dry_run: true });
    }
    let reason = required("reason", request.reason)?;
    let client = acting_as(&shared.client, &principal, Some(&reason))?;
    let purged = client.queue(queue.name())?.purge().await?;
    json(&PurgeResponse { purged, dry_run: false })
}

pub(crate) async fn pause(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
) -> HttpResult {
    set_paused(&shared, &client, &extract, true).await
}

pub(crate) async fn resume(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
) -> HttpResult {
    set_paused(&shared, &client, &extract, false).await
}

async fn set_paused(
    app_state: &ServerState,
    client: &Client,
    extract: &PathParams,
    paused: bool,
) -> HttpResult {
    app_state.host.set_paused(client, extract.queue()?.name(), paused).await?;
    no_content()
}
