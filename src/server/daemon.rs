//! What is asked of the daemon around the engine: health, metrics, definitions, schedules, the audit, backups.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::error::OperationError;
use crate::error::Unavailable;
use crate::id::SequenceNumber;
use crate::limits;
use crate::sas::Right;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::bytes_as;
use crate::server::answer::json;
use crate::server::behalf::acting_as;
use crate::server::caller::Caller;
use crate::server::named::Asked;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::named::required;
use crate::server::openapi;
use crate::server::page::page_limit;
use crate::server::shared::Shared;
use crate::wire::views::DefinitionView;
use crate::wire::views::KeyView;
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

pub(crate) async fn status(State(shared): State<Shared>, caller: Caller) -> Answer {
    let mut status = shared.host.status();
    status.blocked.retain(|count| caller.reaches(&count.queue));
    json(&status)
}

/// For which queue.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KeyQuery {
    /// Only the rights for this queue.
    queue: Option<String>,
}

pub(crate) async fn key(
    State(shared): State<Shared>,
    caller: Caller,
    Asked(query): Asked<KeyQuery>,
) -> Answer {
    let has = |right: &Right| match &query.queue {
        Some(queue) => caller.check(*right, Some(queue)).is_ok(),
        None => caller.check_any(*right).is_ok(),
    };
    let rights = [Right::Send, Right::Listen, Right::Manage].into_iter().filter(has);
    json(&KeyView {
        name: caller.name().to_owned(),
        is_needed: shared.keys.load().is_some(),
        rights: rights.map(|right| right.as_str().to_owned()).collect(),
        reaches_all: caller.reaches_all(),
    })
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

pub(crate) async fn rates(State(shared): State<Shared>, caller: Caller) -> Answer {
    let mut rates = shared.host.rates();
    rates.queues.retain(|rates| caller.reaches(&rates.queue));
    json(&rates)
}

/// How a schedule is run out of its turn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunScheduleRequest {
    /// Why; kept with the message.
    reason: Option<String>,
    /// Only says what would be sent.
    dry_run: bool,
}

/// What a schedule has sent out of its turn.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunScheduleAnswer {
    /// What was done, or would be, in a sentence.
    effect: String,
    /// The number of the message; absent with a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<u64>,
    /// Whether nothing was done.
    dry_run: bool,
}

/// The properties that say of a message who has let its schedule run, and why.
const RUN_BY: [&str; 2] = ["seriatim-run-by", "seriatim-run-reason"];

pub(crate) async fn run_schedule(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(request): Told<RunScheduleRequest>,
) -> Answer {
    let (queue, schedule) = (named.queue()?, named.text("schedule")?);
    let message = shared.host.scheduled_now(queue.name(), schedule)?;
    if request.dry_run {
        let effect = "the message of the schedule is sent now; its own ticks stay as they are".to_owned();
        return json(&RunScheduleAnswer { effect, sequence_number: None, dry_run: true });
    }
    let message = message.property(RUN_BY[0], caller.name());
    let why = match &request.reason {
        Some(reason) => format!("schedule {schedule}: {reason}"),
        None => format!("schedule {schedule}"),
    };
    let message = match request.reason {
        Some(reason) => message.property(RUN_BY[1], reason),
        None => message,
    };
    let client = acting_as(&shared.client, &caller, Some(&why))?;
    let receipt = client.queue(queue.name())?.run_schedule(message).await?;
    let sequence_number = receipt.sequence_number().map(SequenceNumber::get);
    let effect = match sequence_number {
        Some(number) => format!("sent as message {number}"),
        None => "sent".to_owned(),
    };
    json(&RunScheduleAnswer { effect, sequence_number, dry_run: false })
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
