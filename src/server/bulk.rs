//! What an operator does to many workflows at once: all that a filter finds, a limited number in one request.

use axum::extract::State;

use crate::api::BulkRequest;
use crate::api::BulkResponse;
use crate::api::OperateRequest;
use crate::api::RefusedWorkflow;
use crate::api::Verb;
use crate::api::WorkflowFilter;
use crate::api::views::BlockedCause;
use crate::api::views::WorkflowWord;
use crate::engine::WorkflowView;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::authorize::refuse_own;
use crate::server::blocked_reason::held_or_failed_because;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::impersonation::acting_as;
use crate::server::operate::OperatedCount;
use crate::server::operate::OperatorOrder;
use crate::server::operate::id_of;
use crate::server::page::page_limit;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;
use crate::server::walk::WorkflowWalk;

impl WorkflowFilter {
    fn check(&self) -> Result<(), HttpRefusal> {
        let narrows = !self.status.is_empty()
            || !self.cause.is_empty()
            || !self.hold_cause.is_empty()
            || self.prefix.as_ref().is_some_and(|prefix| !prefix.is_empty())
            || self.reason.is_some();
        if self.cause.contains(&BlockedCause::PrefetchWindow) {
            let what = "has the cause prefetch_window, which is known of queues, not of workflows";
            return Err(HttpRefusal::misuse("filter", what));
        }
        if self.cause.contains(&BlockedCause::TooLarge) {
            let what =
                "has the cause too_large, which is known of messages, not of workflows; name the workflow";
            return Err(HttpRefusal::misuse("filter", what));
        }
        if self.cause.contains(&BlockedCause::CannotStart) {
            let what = "has the cause cannot_start, which is known of handlers, not of workflows; \
                        say the status ready";
            return Err(HttpRefusal::misuse("filter", what));
        }
        match (narrows, self.all) {
            (true, false) | (false, true) => Ok(()),
            (true, true) => Err(HttpRefusal::misuse("filter", "says `all` and something else")),
            (false, false) => Err(HttpRefusal::misuse("filter", "is empty; say `all` if all are meant")),
        }
    }

    fn matches(&self, view: &WorkflowView) -> bool {
        let mut causes = view.holds.iter().map(|hold| hold.cause.kind());
        let says = |text: &String| held_or_failed_because(view).any(|reason| reason.contains(text.as_str()));
        let cause = || BlockedCause::of(view).is_some_and(|cause| self.cause.contains(&cause));
        (self.status.is_empty() || self.status.contains(&WorkflowWord::show(&view.status)))
            && (self.cause.is_empty() || cause())
            && (self.hold_cause.is_empty() || causes.any(|cause| self.hold_cause.contains(&cause)))
            && self.reason.as_ref().is_none_or(says)
    }
}

pub(crate) async fn bulk(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<BulkRequest>,
) -> HttpResult {
    let BulkRequest { verb, filter, reason, redrive, cause, dry_run, after, limit } = request;
    filter.check()?;
    if verb == Verb::Void {
        return Err(HttpRefusal::misuse(
            "verb",
            "is void, which is for one workflow: its positions are its own",
        ));
    }
    let client = acting_as(&shared.client, &principal, reason.as_deref())?;
    let client = if dry_run { client.dry_run() } else { client };
    let request = OperateRequest { reason, dry_run, redrive, cause, ..Default::default() };
    let order = OperatorOrder { verb, request };
    order.check()?;
    let queue = client.queue(extract.text("queue")?)?;
    if verb != Verb::Resume {
        refuse_own(&shared, queue.name())?;
    }
    let mut walk = WorkflowWalk::new(after, filter.prefix.clone())?;
    let found = walk.next(&queue, page_limit(limit)?, |view| filter.matches(view)).await?;
    let mut answer = BulkResponse {
        matched: found.views.len() as u64,
        done: 0,
        refused: Vec::new(),
        workflow_ids: Vec::new(),
        purged: (verb == Verb::Purge && !dry_run).then_some(0),
        put_back: (redrive && !dry_run).then_some(0),
        stayed: (redrive && !dry_run).then_some(0),
        dry_run,
        after: None,
    };
    answer.after = walk.rest(found.is_last);
    for (at, view) in found.views.iter().enumerate() {
        let workflow_id = id_of(view);
        match order.carry_out_as_seen(&queue.workflow(&workflow_id)?, view).await {
            Ok(done) => answer.count(&done, workflow_id),
            Err(refused) if refused.is_of_server() && at == 0 => return Err(refused),
            Err(refused) => {
                let is_over = refused.is_of_server();
                answer.refused.push(RefusedWorkflow { workflow_id: workflow_id.clone(), error: *refused.0 });
                if is_over {
                    // Who is answered with it alone would do again what is done.
                    (answer.matched, answer.after) = (at as u64 + 1, Some(workflow_id));
                    break;
                }
            }
        }
    }
    json(&answer)
}

impl BulkResponse {
    /// Counts a workflow to which it was done, or would be.
    fn count(&mut self, done: &OperatedCount, workflow_id: String) {
        self.done += 1;
        self.purged = self.purged.map(|sum| sum + done.purged.unwrap_or_default());
        let (redriven, stayed) = done.redrive.map_or((0, 0), |done| (done.redriven, done.stayed));
        self.put_back = self.put_back.map(|sum| sum + redriven);
        self.stayed = self.stayed.map(|sum| sum + stayed);
        if self.dry_run {
            self.workflow_ids.push(workflow_id);
        }
    }
}
