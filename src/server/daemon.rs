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
use crate::wire::views::AuditView;
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
    let message = match request.reason {
        Some(reason) => message.property(RUN_BY[1], reason),
        None => message,
    };
    let receipt = queue.send(message).await?;
    let sequence_number = receipt.sequence_number().map(SequenceNumber::get);
    let effect = match sequence_number {
        Some(number) => format!("sent as message {number}"),
        None => "sent".to_owned(),
    };
    json(&RunScheduleAnswer { effect, sequence_number, dry_run: false })
}

/// Which part of what operators did.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditQuery {
    /// Where the page before ended; as answered there.
    after: Option<String>,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    limit: Option<usize>,
    /// Begins with the newest and goes back in time.
    newest: bool,
}

/// What operators did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditAnswer {
    /// In the order in which it was done, or newest first.
    actions: Vec<AuditView>,
    /// Where the next page begins after; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

pub(crate) async fn audit(
    State(shared): State<Shared>,
    caller: Caller,
    Asked(page): Asked<AuditQuery>,
) -> Answer {
    let after: Option<u64> = page.after.as_deref().map(str::parse).transpose().map_err(|_| wrong_entry())?;
    let limit = page_limit(page.limit)?;
    if page.newest {
        return newest_first(&shared, &caller, after, limit).await;
    }
    let after = after.unwrap_or_default();
    let entries = shared.client.audit(after, limit).await?;
    let is_full = entries.len() == limit;
    let after = entries.last().filter(|_| is_full).map(|entry| entry.number.to_string());
    let mut actions: Vec<AuditView> = entries.into_iter().map(AuditView::show).collect();
    actions.retain(|action| caller.reaches(&action.queue));
    json(&AuditAnswer { actions, after })
}

fn wrong_entry() -> Refused {
    Refused::misuse("after", "is not the number of an entry")
}

/// A page of the audit that goes back in time from the newest entry, or from the one before `before`.
async fn newest_first(shared: &Shared, caller: &Caller, before: Option<u64>, limit: usize) -> Answer {
    let end = match before {
        Some(before) => before,
        None => newest_entry(shared).await? + 1,
    };
    let begin = end.saturating_sub(limit as u64 + 1);
    let mut entries = shared.client.audit(begin, limit).await?;
    entries.retain(|entry| entry.number < end);
    let after = entries.first().map(|entry| entry.number).filter(|number| *number > 1);
    // What is not kept any more is not asked for.
    let after = match after {
        Some(number)
            if !shared
                .client
                .audit(number.saturating_sub(2), 1)
                .await?
                .iter()
                .any(|entry| entry.number < number) =>
        {
            None
        }
        after => after.map(|number| number.to_string()),
    };
    let mut actions: Vec<AuditView> = entries.into_iter().rev().map(AuditView::show).collect();
    actions.retain(|action| caller.reaches(&action.queue));
    json(&AuditAnswer { actions, after })
}

/// The number of the newest entry; entries are numbered one after the other.
async fn newest_entry(shared: &Shared) -> Result<u64, Refused> {
    let Some(first) = shared.client.audit(0, 1).await?.first().map(|entry| entry.number) else {
        return Ok(0);
    };
    let (mut known, mut beyond) = (first, first + limits::AUDIT_KEPT + 1);
    while known + 1 < beyond {
        let middle = known + (beyond - known) / 2;
        match shared.client.audit(middle - 1, 1).await?.is_empty() {
            true => beyond = middle,
            false => known = middle,
        }
    }
    Ok(known)
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
