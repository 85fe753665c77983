//! What is asked of the daemon around the engine: health, metrics, definitions, schedules, the audit, backups.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::error::OperationError;
use crate::error::Unavailable;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::bytes_as;
use crate::server::answer::json;
use crate::server::behalf::acting_as;
use crate::server::caller::Caller;
use crate::server::named::Asked;
use crate::server::named::Told;
use crate::server::named::required;
use crate::server::openapi;
use crate::server::page::PageQuery;
use crate::server::page::page_limit;
use crate::server::shared::Shared;
use crate::wire::views::AuditView;
use crate::wire::views::DefinitionView;
use crate::wire::views::ScheduleView;

/// The media type of plain text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The media type of metrics.
pub(crate) const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) async fn healthz(State(shared): State<Shared>) -> Answer {
    refuse_after_fault(&shared)?;
    Ok(bytes_as(StatusCode::OK, TEXT, "ok\n"))
}

/// After a fault nothing works until the store is opened again: whoever looks after the process must hear of it.
fn refuse_after_fault(shared: &Shared) -> Result<(), Refused> {
    match shared.client.fault() {
        Some(fault) => Err(Refused::from(Unavailable::Stopped(fault))),
        None => Ok(()),
    }
}

pub(crate) async fn readyz(State(shared): State<Shared>) -> Answer {
    refuse_after_fault(&shared)?;
    if shared.stopping.is_cancelled() {
        return Err(Refused::new("not_ready", "the server is about to stop"));
    }
    match shared.host.ready() {
        Ok(()) => Ok(bytes_as(StatusCode::OK, TEXT, "ready\n")),
        Err(why) => Err(Refused::new("not_ready", why)),
    }
}

pub(crate) async fn metrics(State(shared): State<Shared>) -> Answer {
    Ok(bytes_as(StatusCode::OK, METRICS, shared.host.metrics().await?))
}

pub(crate) async fn document() -> Response {
    bytes_as(StatusCode::OK, "application/json", openapi::document().to_vec())
}

pub(crate) async fn status(State(shared): State<Shared>) -> Answer {
    json(&shared.host.status())
}

/// The definitions in use.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefinitionsAnswer {
    /// In order of queue.
    definitions: Vec<DefinitionView>,
    /// Why the files as they are now are not in use, if they are not: every mistake, a line for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(crate) async fn definitions(State(shared): State<Shared>, caller: Caller) -> Answer {
    let mut definitions = shared.host.definitions();
    let all = definitions.len();
    definitions.retain(|definition| caller.reaches(&definition.queue));
    // Its mistakes name files of queues that the caller may not reach.
    let problem = shared.host.reload_problem().filter(|_| definitions.len() == all);
    json(&DefinitionsAnswer { definitions, problem })
}

pub(crate) async fn reload(State(shared): State<Shared>) -> Answer {
    shared.host.reload().await?;
    json(&DefinitionsAnswer { definitions: shared.host.definitions(), problem: shared.host.reload_problem() })
}

/// The schedules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SchedulesAnswer {
    /// In order of queue and name.
    schedules: Vec<ScheduleView>,
}

pub(crate) async fn schedules(State(shared): State<Shared>, caller: Caller) -> Answer {
    let mut schedules = shared.host.schedules().await?;
    schedules.retain(|schedule| caller.reaches(&schedule.queue));
    json(&SchedulesAnswer { schedules })
}

/// What operators did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditAnswer {
    /// In the order in which it was done.
    actions: Vec<AuditView>,
    /// Where the next page begins after; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

pub(crate) async fn audit(
    State(shared): State<Shared>,
    caller: Caller,
    Asked(page): Asked<PageQuery>,
) -> Answer {
    let after = page.after.as_deref().unwrap_or("0").parse();
    let after = after.map_err(|_| Refused::misuse("after", "is not the number of an entry"))?;
    let limit = page_limit(page.limit)?;
    let entries = shared.client.audit(after, limit).await?;
    let is_full = entries.len() == limit;
    let after = entries.last().filter(|_| is_full).map(|entry| entry.number.to_string());
    let mut actions: Vec<AuditView> = entries.into_iter().map(AuditView::show).collect();
    actions.retain(|action| caller.reaches(&action.queue));
    json(&AuditAnswer { actions, after })
}

/// Where a backup goes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BackupRequest {
    /// The name of the new file, inside the folder the daemon keeps for backups; required.
    path: Option<String>,
}

/// A backup that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BackupAnswer {
    /// The file.
    path: String,
    /// How many records it has.
    records: u64,
}

pub(crate) async fn backup(
    State(shared): State<Shared>,
    caller: Caller,
    Told(request): Told<BackupRequest>,
) -> Answer {
    let name = required("path", request.path)?;
    let target = shared.host.backup_target(&name)?;
    let made = acting_as(&shared.client, &caller, None)?.backup(&target).await;
    let records = made.map_err(|error| match error {
        // It is the copy that failed; the engine goes on.
        OperationError::Unavailable(Unavailable::Stopped(fault)) => {
            Refused::new("backup_failed", format!("back up to {}: {fault}", target.display()))
        }
        other => Refused::from(other),
    })?;
    json(&BackupAnswer { path: target.display().to_string(), records })
}
