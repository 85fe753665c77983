//! What is asked of the daemon around the engine: health, metrics, definitions, schedules, the audit, backups.

use axum::extract::State;
use http::StatusCode;

use crate::api::BackupRequest;
use crate::api::BackupView;
use crate::api::DefinitionPage;
use crate::api::KeyQuery;
use crate::api::RunScheduleRequest;
use crate::api::RunScheduleResponse;
use crate::api::SchedulePage;
use crate::api::daemon::HEALTHY;
use crate::api::daemon::READY;
use crate::api::views::KeyView;
use crate::error::Unavailable;
use crate::id::SequenceNumber;
use crate::inbound::browser::bytes_as;
use crate::sas::Right;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::required;
use crate::server::impersonation::Acting;
use crate::server::impersonation::acting_as;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;

/// The media type of plain text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The media type of metrics.
pub(crate) const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) async fn healthz(State(shared): State<SharedServer>) -> HttpResult {
    refuse_after_fault(&shared)?;
    Ok(bytes_as(StatusCode::OK, TEXT, HEALTHY))
}

/// After a fault nothing works until the store is opened again: whoever looks after the process must hear of it.
fn refuse_after_fault(shared: &SharedServer) -> Result<(), HttpRefusal> {
    match shared.client.fault() {
        Some(fault) => Err(HttpRefusal::from(Unavailable::Stopped(fault))),
        None => Ok(()),
    }
}

pub(crate) async fn readyz(State(shared): State<SharedServer>) -> HttpResult {
    refuse_after_fault(&shared)?;
    if shared.stopping.is_cancelled() {
        return Err(HttpRefusal::new("not_ready", "the server is about to stop"));
    }
    match shared.host.ready() {
        Ok(()) => Ok(bytes_as(StatusCode::OK, TEXT, READY)),
        Err(why) => Err(HttpRefusal::new("not_ready", why)),
    }
}

pub(crate) async fn metrics(State(shared): State<SharedServer>) -> HttpResult {
    Ok(bytes_as(StatusCode::OK, METRICS, shared.host.metrics().await?))
}

pub(crate) async fn status(State(shared): State<SharedServer>, principal: Principal) -> HttpResult {
    let mut status = shared.host.status();
    status.blocked.retain(|count| principal.reaches(&count.queue));
    status.reload_problem = status.reload_problem.filter(|_| principal.reaches_all());
    json(&status)
}

pub(crate) async fn key(
    State(shared): State<SharedServer>,
    principal: Principal,
    QueryParams(query): QueryParams<KeyQuery>,
) -> HttpResult {
    let has = |right: &Right| match &query.queue {
        Some(queue) => principal.check(*right, Some(queue)).is_ok(),
        None => principal.check_any(*right).is_ok(),
    };
    let rights = [Right::Send, Right::Listen, Right::Manage].into_iter().filter(has);
    json(&KeyView {
        name: principal.name().to_owned(),
        is_needed: shared.keys.load().is_some(),
        rights: rights.map(|right| right.as_str().to_owned()).collect(),
        reaches_all: principal.reaches_all(),
    })
}

pub(crate) async fn definitions(State(shared): State<SharedServer>, principal: Principal) -> HttpResult {
    let mut definitions = shared.host.definitions();
    definitions.retain(|definition| principal.reaches(&definition.queue));
    // Its mistakes name files of queues that the caller may not reach.
    let problem = shared.host.reload_problem().filter(|_| principal.reaches_all());
    json(&DefinitionPage { definitions, problem })
}

pub(crate) async fn reload(State(shared): State<SharedServer>) -> HttpResult {
    shared.host.reload().await?;
    json(&DefinitionPage { definitions: shared.host.definitions(), problem: shared.host.reload_problem() })
}

pub(crate) async fn schedules(State(shared): State<SharedServer>, principal: Principal) -> HttpResult {
    let mut schedules = shared.host.schedules().await?;
    schedules.retain(|schedule| principal.reaches(&schedule.queue));
    json(&SchedulePage { schedules })
}

pub(crate) async fn rates(State(shared): State<SharedServer>, principal: Principal) -> HttpResult {
    let mut rates = shared.host.rates();
    rates.queues.retain(|rates| principal.reaches(&rates.queue));
    json(&rates)
}

/// The properties that say of a message who has let its schedule run, and why.
const RUN_BY: [&str; 2] = ["seriatim-run-by", "seriatim-run-reason"];

pub(crate) async fn run_schedule(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<RunScheduleRequest>,
) -> HttpResult {
    let (queue, schedule) = (extract.queue()?, extract.text("schedule")?);
    let message = shared.host.scheduled_now(queue.name(), schedule)?;
    if request.dry_run {
        let effect = "the message of the schedule is sent now; its own ticks stay as they are".to_owned();
        return json(&RunScheduleResponse { effect, sequence_number: None, dry_run: true });
    }
    let message = message.property(RUN_BY[0], principal.name());
    let why = match &request.reason {
        Some(reason) => format!("schedule {schedule}: {reason}"),
        None => format!("schedule {schedule}"),
    };
    let message = match request.reason {
        Some(reason) => message.property(RUN_BY[1], reason),
        None => message,
    };
    let client = acting_as(&shared.client, &principal, Some(&why))?;
    let receipt = client.queue(queue.name())?.run_schedule(message).await?;
    let sequence_number = receipt.sequence_number().map(SequenceNumber::get);
    let effect = match sequence_number {
        Some(number) => format!("sent as message {number}"),
        None => "sent".to_owned(),
    };
    json(&RunScheduleResponse { effect, sequence_number, dry_run: false })
}

pub(crate) async fn backup(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    JsonBody(request): JsonBody<BackupRequest>,
) -> HttpResult {
    let name = required("path", request.path)?;
    let target = shared.host.backup_target(&name)?;
    let records = client.backup(&target).await?;
    json(&BackupView { path: target.display().to_string(), records })
}
