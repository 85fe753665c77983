//! What an operator does to many workflows at once: all that a filter finds, a limited number in one request.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::WorkflowView;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::behalf::acting_as;
use crate::server::blocked::held_or_failed_because;
use crate::server::caller::Caller;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::operate::OperateRequest;
use crate::server::operate::Order;
use crate::server::operate::Verb;
use crate::server::operate::id_of;
use crate::server::page::page_limit;
use crate::server::queues::check_not_own;
use crate::server::shared::Shared;
use crate::server::walk::Walk;
use crate::wire::Problem;
use crate::wire::views::BlockedCause;
use crate::wire::views::HoldWord;
use crate::wire::views::WorkflowWord;

/// What is done, and to which workflows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkRequest {
    /// What is done; anything but `void`.
    verb: Verb,
    /// To which workflows.
    filter: Filter,
    /// Why; required for `skip`, `skip_gap` and `purge`.
    #[serde(default)]
    reason: Option<String>,
    /// With `resume`: puts dead letters back in place before.
    #[serde(default)]
    redrive: bool,
    /// With `resume`: lifts only this cause of a hold.
    #[serde(default)]
    cause: Option<HoldWord>,
    /// Only says what would be done.
    #[serde(default)]
    dry_run: bool,
    /// Where the request before ended.
    #[serde(default)]
    after: Option<String>,
    /// How many workflows at most: 100 if it is not given, 1,000 at most.
    #[serde(default)]
    limit: Option<usize>,
}

/// Which workflows; each field that is given narrows it. One has to be given: `all` if all are meant.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    /// Every workflow of the queue.
    all: bool,
    /// Those with one of these statuses.
    status: Vec<WorkflowWord>,
    /// Those whose ID begins so.
    prefix: Option<String>,
    /// Those that do not get on for one of these causes.
    cause: Vec<BlockedCause>,
    /// Those that are held for one of these causes.
    hold_cause: Vec<HoldWord>,
    /// Those whose last error or hold reason has this text in it.
    reason: Option<String>,
}

impl Filter {
    fn check(&self) -> Result<(), Refused> {
        let narrows = !self.status.is_empty()
            || !self.cause.is_empty()
            || !self.hold_cause.is_empty()
            || self.prefix.as_ref().is_some_and(|prefix| !prefix.is_empty())
            || self.reason.is_some();
        if self.cause.contains(&BlockedCause::PrefetchWindow) {
            let what = "has the cause prefetch_window, which is known of queues, not of workflows";
            return Err(Refused::misuse("filter", what));
        }
        if self.cause.contains(&BlockedCause::TooLarge) {
            let what =
                "has the cause too_large, which is known of messages, not of workflows; name the workflow";
            return Err(Refused::misuse("filter", what));
        }
        match (narrows, self.all) {
            (true, false) | (false, true) => Ok(()),
            (true, true) => Err(Refused::misuse("filter", "says `all` and something else")),
            (false, false) => Err(Refused::misuse("filter", "is empty; say `all` if all are meant")),
        }
    }

    fn matches(&self, view: &WorkflowView) -> bool {
        let mut causes = view.holds.iter().map(|hold| HoldWord::show(&hold.cause).0);
        let says = |text: &String| held_or_failed_because(view).any(|reason| reason.contains(text.as_str()));
        let cause = || BlockedCause::of(view).is_some_and(|cause| self.cause.contains(&cause));
        (self.status.is_empty() || self.status.contains(&WorkflowWord::show(&view.status)))
            && (self.cause.is_empty() || cause())
            && (self.hold_cause.is_empty() || causes.any(|cause| self.hold_cause.contains(&cause)))
            && self.reason.as_ref().is_none_or(says)
    }
}

/// What was done, and where to go on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BulkAnswer {
    /// How many workflows the filter found.
    matched: usize,
    /// To how many of them it was done, or would be.
    done: usize,
    /// Which refused it, and why.
    refused: Vec<RefusedWorkflow>,
    /// With a dry run: the workflows to which it would be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    workflow_ids: Vec<String>,
    /// With `purge`: how many messages were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    purged: Option<u64>,
    /// With `redrive`: how many dead letters are back in their places.
    #[serde(skip_serializing_if = "Option::is_none")]
    put_back: Option<u64>,
    /// With `redrive`: how many stayed dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    stayed: Option<u64>,
    /// Whether nothing was done.
    dry_run: bool,
    /// Where to go on: there may be more. Absent when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// A workflow that refused.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RefusedWorkflow {
    /// Its ID.
    workflow_id: String,
    /// Why.
    error: Problem,
}

pub(crate) async fn bulk(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(request): Told<BulkRequest>,
) -> Answer {
    let BulkRequest { verb, filter, reason, redrive, cause, dry_run, after, limit } = request;
    filter.check()?;
    if verb == Verb::Void {
        return Err(Refused::misuse("verb", "is void, which is for one workflow: its positions are its own"));
    }
    let client = acting_as(&shared.client, &caller, reason.as_deref())?;
    let client = if dry_run { client.dry_run() } else { client };
    let request = OperateRequest { reason, dry_run, redrive, cause, ..Default::default() };
    let order = Order { verb, request };
    order.check()?;
    let queue = client.queue(named.text("queue")?)?;
    if verb == Verb::Purge {
        check_not_own(&shared, queue.name())?;
    }
    let mut walk = Walk::new(after, filter.prefix.clone())?;
    let found = walk.next(&queue, page_limit(limit)?, |view| filter.matches(view)).await?;
    let mut answer = BulkAnswer {
        matched: found.views.len(),
        done: 0,
        refused: Vec::new(),
        workflow_ids: Vec::new(),
        purged: (verb == Verb::Purge && !dry_run).then_some(0),
        put_back: (redrive && !dry_run).then_some(0),
        stayed: (redrive && !dry_run).then_some(0),
        dry_run,
        after: None,
    };
    for view in &found.views {
        let workflow_id = id_of(view);
        match order.carry_out(&queue.workflow(&workflow_id)?).await {
            Ok(done) => {
                answer.done += 1;
                answer.purged = answer.purged.map(|sum| sum + done.purged.unwrap_or_default());
                let (redriven, stayed) = done.redrive.map_or((0, 0), |done| (done.redriven, done.stayed));
                answer.put_back = answer.put_back.map(|sum| sum + redriven);
                answer.stayed = answer.stayed.map(|sum| sum + stayed);
                if dry_run {
                    answer.workflow_ids.push(workflow_id);
                }
            }
            // Without an engine nothing more can be done, and what was done is known to the audit.
            Err(Refused(error)) if error.status >= 500 => return Err(Refused(error)),
            Err(Refused(error)) => answer.refused.push(RefusedWorkflow { workflow_id, error: *error }),
        }
    }
    answer.after = walk.rest(found.is_last);
    json(&answer)
}
