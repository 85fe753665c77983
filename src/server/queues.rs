//! Queues: list, look, create, change, delete, purge.

use axum::extract::State;
use http::StatusCode;

use crate::api::PageQuery;
use crate::api::PurgeRequest;
use crate::api::PurgeResponse;
use crate::api::QueuePage;
use crate::engine::QueueView;
use crate::error::QueueRefusal;
use crate::id::QueueName;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::answer::json_as;
use crate::server::answer::no_content;
use crate::server::behalf::acting_as;
use crate::server::caller::Caller;
use crate::server::named::Asked;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::named::required;
use crate::server::page::page_limit;
use crate::server::shared::House;
use crate::server::shared::Shared;
use crate::wire::options::OptionsEnvelope;
use crate::wire::views::QueueEnvelope;

pub(crate) async fn list(
    State(shared): State<Shared>,
    caller: Caller,
    Asked(page): Asked<PageQuery>,
) -> Answer {
    let limit = page_limit(page.limit)?;
    let mut after = page.after.map(QueueName::new).transpose()?;
    let mut queues = Vec::new();
    loop {
        let views = shared.client.queues(after.as_ref(), limit).await?;
        let is_last = views.len() < limit;
        for view in views {
            after = Some(view.name.clone());
            if caller.reaches(view.name.as_str()) {
                queues.push(shown(&shared, &view));
            }
            if queues.len() == limit {
                break;
            }
        }
        if is_last || queues.len() == limit {
            let after = after.filter(|_| queues.len() == limit).map(|name| name.to_string());
            return json(&QueuePage { queues, after });
        }
    }
}

pub(crate) async fn look(State(shared): State<Shared>, named: Named) -> Answer {
    json(&shown(&shared, &named.queue()?.view().await?))
}

/// A queue, with what the daemon knows of it.
fn shown(house: &House, view: &QueueView) -> QueueEnvelope {
    let mut shown = QueueEnvelope::show(view);
    if let Some(definition) = house.host.definition_of(&view.name) {
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
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(options): Told<OptionsEnvelope>,
) -> Answer {
    let queue = named.queue()?;
    check_not_defined(&shared, queue.name())?;
    let options = options.read()?;
    let client = acting_as(&shared.client, &caller, None)?;
    let existed = queue.view().await.is_ok();
    let status = match client.create_queue(queue.name(), options.clone()).await {
        Ok(_) if existed => StatusCode::OK,
        Ok(_) => StatusCode::CREATED,
        Err(error) if matches!(error.refusal(), Some(QueueRefusal::QueueExists(_))) => {
            client.change_queue(queue.name(), options).await?;
            StatusCode::OK
        }
        Err(error) => return Err(error.into()),
    };
    Ok(json_as(status, &shown(&shared, &queue.view().await?)))
}

pub(crate) async fn delete(State(shared): State<Shared>, caller: Caller, named: Named) -> Answer {
    let queue = named.queue()?;
    check_not_defined(&shared, queue.name())?;
    acting_as(&shared.client, &caller, None)?.delete_queue(queue.name()).await?;
    no_content()
}

/// What a file defines is changed in that file.
fn check_not_defined(house: &House, queue: &QueueName) -> Result<(), Refused> {
    match house.host.definition_of(queue) {
        None => Ok(()),
        Some(definition) => {
            let detail =
                format!("queue {queue} is defined by {}: change or remove that file", definition.file);
            Err(Refused::new("queue_is_defined", detail))
        }
    }
}

/// What the daemon keeps for itself is not emptied: schedules would end with their messages.
pub(crate) fn check_not_own(house: &House, queue: &QueueName) -> Result<(), Refused> {
    match house.host.is_own(queue) {
        false => Ok(()),
        true => {
            let detail = format!(
                "purge queue {queue}: the daemon keeps what it needs in it, such as its schedules; to end a schedule, \
                 remove it from its definition"
            );
            Err(Refused::new("queue_is_defined", detail))
        }
    }
}

pub(crate) async fn purge(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(request): Told<PurgeRequest>,
) -> Answer {
    let queue = named.queue()?;
    check_not_own(&shared, queue.name())?;
    let counts = queue.view().await?.counts;
    if request.dry_run {
        // Its first step is judged; the counters know how many steps there would be.
        shared.client.dry_run().queue(queue.name())?.purge().await?;
        return json(&PurgeResponse { purged: counts.stored() - counts.locked, dry_run: true });
    }
    let reason = required("reason", request.reason)?;
    let client = acting_as(&shared.client, &caller, Some(&reason))?;
    let purged = client.queue(queue.name())?.purge().await?;
    json(&PurgeResponse { purged, dry_run: false })
}

pub(crate) async fn pause(State(shared): State<Shared>, caller: Caller, named: Named) -> Answer {
    set_paused(&shared, &caller, &named, true).await
}

pub(crate) async fn resume(State(shared): State<Shared>, caller: Caller, named: Named) -> Answer {
    set_paused(&shared, &caller, &named, false).await
}

async fn set_paused(house: &House, caller: &Caller, named: &Named, paused: bool) -> Answer {
    let client = acting_as(&house.client, caller, None)?;
    house.host.set_paused(&client, named.queue()?.name(), paused).await?;
    no_content()
}
