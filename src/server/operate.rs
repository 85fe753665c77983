//! What an operator does to one workflow.

use axum::extract::State;

use crate::api::OperateRequest;
use crate::api::OperateResponse;
use crate::api::Verb;
use crate::api::WorkflowQuery;
use crate::api::plural::counted;
use crate::api::plural::spanned;
use crate::api::views::WorkflowEnvelope;
use crate::engine::Gap;
use crate::engine::Hold;
use crate::engine::HoldCause;
use crate::engine::Queue;
use crate::engine::Workflow;
use crate::engine::WorkflowRedrive;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::required;
use crate::server::impersonation::acting_as;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;
use crate::server::workflows::shown;
use crate::server::workflows::view;

pub(crate) async fn operate(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    QueryParams(query): QueryParams<WorkflowQuery>,
    JsonBody(request): JsonBody<OperateRequest>,
) -> HttpResult {
    let verb = verb(&extract)?;
    let order = OperatorOrder { verb, request };
    order.check()?;
    let dry_run = order.request.dry_run;
    let client = acting_as(&shared.client, &principal, order.request.reason.as_deref())?;
    let client = if dry_run { client.dry_run() } else { client };
    let queue = client.queue(extract.text("queue")?)?;
    let workflow = queue.workflow(&query.id)?;
    let before = match verb {
        // Holding a workflow of which nothing is stored is how to stop one before it begins.
        Verb::Hold => workflow.view().await?,
        _ => Some(view(&queue, &workflow).await?),
    };
    let sequence_number = order.message_to_skip(&workflow, before.as_ref()).await?;
    // A dry run is judged by the engine as well, which takes everything back then.
    let done = order.carry_out(&workflow, sequence_number).await;
    let done = done.map_err(|refused| explained(refused, verb, before.as_ref()))?;
    // It is done: a look that fails now is no reason to say that it was not, as then it would be done again.
    let workflow = shown_after(&queue, &workflow).await.unwrap_or_default();
    let done = if dry_run { OperatedCount::default() } else { done };
    let effect = match done.redrive {
        Some(redrive) => redriven(redrive),
        None => order.effect(before.as_ref(), sequence_number),
    };
    let (put_back, stayed) = done.redrive.map(|redrive| (redrive.redriven, redrive.stayed)).unzip();
    let (purged, sequence_number) = (done.purged, sequence_number.map(SequenceNumber::get));
    json(&OperateResponse { effect, dry_run, sequence_number, purged, put_back, stayed, workflow })
}

/// What a verb has left of a workflow; nothing if nothing is stored of it any more.
async fn shown_after(queue: &Queue, workflow: &Workflow) -> Result<Option<WorkflowEnvelope>, HttpRefusal> {
    match workflow.view().await? {
        Some(view) => shown(queue, &view).await.map(Some),
        None => Ok(None),
    }
}

/// What was looked at says more precisely why there is nothing to do: somebody may be at work on it, or a message is missing.
fn explained(refused: HttpRefusal, verb: Verb, before: Option<&WorkflowView>) -> HttpRefusal {
    let is_locked = before.is_some_and(|view| matches!(view.status, WorkflowStatus::Locked { .. }));
    match (refused.0.code.as_str(), verb) {
        ("nothing_waits", _) if is_locked => {
            HttpRefusal::new("workflow_locked", "retry: its message is being handled at this moment")
        }
        ("no_head", Verb::SkipGap) => {
            HttpRefusal::new("no_head", "the workflow has no gap that a message waits behind")
        }
        ("no_head", _) => match before.and_then(|view| view.gap.as_ref()) {
            Some(gap) => HttpRefusal::new("no_head", waits_for(gap)),
            None => refused,
        },
        _ => refused,
    }
}

/// Why there is no head to skip before a gap, and what helps then; only positions can be declared void.
fn waits_for(gap: &Gap) -> &'static str {
    match gap.first_missing {
        Some(_) => {
            "cannot skip: the workflow waits for a message that is missing; `gap skip` (skip_gap) goes on behind the gap, and \
             `gap void` (void) declares positions void"
        }
        None => {
            "cannot skip: the workflow waits for a message that is missing; `gap skip` (skip_gap) goes on behind the gap"
        }
    }
}

fn verb(extract: &PathParams) -> Result<Verb, HttpRefusal> {
    let text = extract.text("verb")?;
    let unknown = || {
        let known = "hold, resume, retry, skip, release_lock, void, skip_gap and purge";
        HttpRefusal::new("route_not_found", format!("{text:?} is not one of {known}"))
    };
    serde_json::from_value(serde_json::Value::from(text)).map_err(|_| unknown())
}

/// A verb, and how it is meant.
pub(crate) struct OperatorOrder {
    pub(crate) verb: Verb,
    pub(crate) request: OperateRequest,
}

impl OperatorOrder {
    pub(crate) fn check(&self) -> Result<(), HttpRefusal> {
        let OperateRequest { reason, dry_run, redrive, cause, from, to, sequence_number } = &self.request;
        if self.verb.needs_reason() && !dry_run {
            required("reason", reason.clone())?;
        }
        if *redrive && self.verb != Verb::Resume {
            return Err(HttpRefusal::misuse("redrive", "goes with resume only"));
        }
        if cause.is_some() && (self.verb != Verb::Resume || *redrive) {
            return Err(HttpRefusal::misuse("cause", "goes with resume only, and not with redrive"));
        }
        if sequence_number.is_some() && self.verb != Verb::Skip {
            return Err(HttpRefusal::misuse("sequence_number", "goes with skip only"));
        }
        match (self.verb, from, to) {
            (Verb::Void, None, _) => Err(HttpRefusal::misuse("from", "is required")),
            (Verb::Void, Some(from), Some(to)) if from > to => {
                Err(HttpRefusal::misuse("to", "is before the first position"))
            }
            (Verb::Void, ..) | (_, None, None) => Ok(()),
            _ => Err(HttpRefusal::misuse("from", "goes with void only")),
        }
    }

    /// What the verb leads to, in a sentence, as far as a look before it can tell.
    fn effect(&self, before: Option<&WorkflowView>, to_skip: Option<SequenceNumber>) -> String {
        let Some(view) = before else {
            return "nothing of the workflow is offered until it is resumed".to_owned();
        };
        let waiting = view.messages;
        let behind = behind(waiting.saturating_sub(1));
        match (self.verb, &view.status) {
            (Verb::Hold, _) => {
                let waits = waits(waiting);
                format!("nothing of the workflow is offered until it is resumed; {waits}")
            }
            (Verb::Resume, WorkflowStatus::Held(_)) => self.resumed(view),
            (Verb::Resume, _) => "the workflow is resumed".to_owned(),
            (Verb::Retry, WorkflowStatus::Blocked { sequence_number, .. }) => {
                format!("message {sequence_number} is tried again now")
            }
            (Verb::Retry, _) => "the message at the head is tried again now".to_owned(),
            (Verb::Skip, _) => match to_skip {
                Some(number) => format!("message {number} is dead-lettered; {behind}"),
                None => format!("the message at the head is dead-lettered; {behind}"),
            },
            (Verb::ReleaseLock, _) => {
                "the holder loses the workflow, and what it has out counts as failed".to_owned()
            }
            (Verb::Void, _) => {
                let (from, to) = self.positions();
                let positions = spanned("position", from, to);
                format!("{positions} will never be waited for; what comes there is dead-lettered")
            }
            (Verb::SkipGap, _) => gap_skipped(view),
            (Verb::Purge, _) => {
                let (aside, dead_letters) = (view.set_aside, counted(view.dead_letters, "dead letter"));
                let waiting = counted(waiting, "message");
                format!("up to {waiting}, {aside} set aside and {dead_letters} are removed")
            }
        }
    }

    fn resumed(&self, view: &WorkflowView) -> String {
        let dead_letters = counted(view.dead_letters, "dead letter");
        if self.request.redrive {
            return format!("up to {dead_letters} put back in place, then the workflow is resumed");
        }
        let wanted = self.request.cause;
        let is_lifted = |hold: &&Hold| wanted.is_none_or(|kind| hold.cause.kind() == kind);
        let (lifted, stay): (Vec<&Hold>, Vec<&Hold>) = view.holds.iter().partition(is_lifted);
        if !stay.is_empty() {
            let causes: Vec<&str> = stay.iter().map(|hold| hold.cause.kind().as_str()).collect();
            return format!("this cause is lifted; the workflow stays held: {}", causes.join(", "));
        }
        let exhausted = lifted.iter().find_map(|hold| match hold.cause {
            HoldCause::Exhausted(number) => Some(number),
            _ => None,
        });
        match exhausted {
            Some(number) => {
                let behind = behind(view.messages.saturating_sub(1));
                format!("message {number} is tried again; {behind}")
            }
            None => format!("the workflow is resumed; {}", waits(view.messages)),
        }
    }

    /// The message that is skipped: the one that is asked for, or that was seen at the head. Whatever has come there since has nothing to
    /// do with it.
    pub(crate) async fn message_to_skip(
        &self,
        workflow: &Workflow,
        before: Option<&WorkflowView>,
    ) -> Result<Option<SequenceNumber>, HttpRefusal> {
        if self.verb != Verb::Skip {
            return Ok(None);
        }
        if let Some(asked) = self.request.sequence_number {
            return Ok(Some(SequenceNumber::new(asked)));
        }
        Ok(match before.map(|view| &view.status) {
            Some(WorkflowStatus::Blocked { sequence_number, .. }) => Some(*sequence_number),
            _ => workflow.messages(0, 1).await?.first().map(|head| head.sequence_number),
        })
    }

    /// With `void`: the first and the last position.
    fn positions(&self) -> (u64, u64) {
        let from = self.request.from.unwrap_or_default();
        (from, self.request.to.unwrap_or(from))
    }

    /// Does it to a workflow that was found to be so.
    pub(crate) async fn carry_out_as_seen(
        &self,
        workflow: &Workflow,
        view: &WorkflowView,
    ) -> Result<OperatedCount, HttpRefusal> {
        let to_skip = self.message_to_skip(workflow, Some(view)).await?;
        self.carry_out(workflow, to_skip).await
    }

    /// Does it.
    async fn carry_out(
        &self,
        workflow: &Workflow,
        to_skip: Option<SequenceNumber>,
    ) -> Result<OperatedCount, HttpRefusal> {
        let OperateRequest { reason, redrive, cause, .. } = &self.request;
        let reason = || reason.clone().unwrap_or_default();
        match self.verb {
            Verb::Hold => workflow.hold(reason()).await?,
            Verb::Resume if *redrive => {
                let redrive = Some(workflow.resume_and_redrive().await?);
                return Ok(OperatedCount { redrive, ..OperatedCount::default() });
            }
            Verb::Resume => match cause {
                Some(cause) => workflow.resume_for(*cause).await?,
                None => workflow.resume().await?,
            },
            Verb::Retry => workflow.retry_now().await?,
            Verb::Skip => match to_skip {
                Some(number) => workflow.skip_message(number, reason()).await?,
                None => workflow.skip_head(reason()).await?,
            },
            Verb::ReleaseLock => workflow.release_lock().await?,
            Verb::Void => {
                let (from, to) = self.positions();
                workflow.declare_void(from, to).await?;
            }
            Verb::SkipGap => workflow.skip_gap().await?,
            Verb::Purge => {
                let purged = Some(workflow.purge().await?);
                return Ok(OperatedCount { purged, ..OperatedCount::default() });
            }
        }
        Ok(OperatedCount::default())
    }
}

/// How much was done, where that is more than one thing.
#[derive(Default)]
pub(crate) struct OperatedCount {
    /// How many messages were removed.
    pub(crate) purged: Option<u64>,
    /// What became of the dead letters.
    pub(crate) redrive: Option<WorkflowRedrive>,
}

fn redriven(redrive: WorkflowRedrive) -> String {
    let WorkflowRedrive { redriven, stayed, .. } = redrive;
    let are = if redriven == 1 { "is" } else { "are" };
    let back =
        format!("{} {are} back in place, and the workflow is resumed", counted(redriven, "dead letter"));
    match stayed {
        0 => back,
        1 => format!("{back}; 1 stays a dead letter, because its place is passed or there is no room"),
        _ => {
            format!("{back}; {stayed} stay dead letters, because their places are passed or there is no room")
        }
    }
}

fn waits(count: u64) -> String {
    match count {
        1 => "1 message waits".to_owned(),
        _ => format!("{count} messages wait"),
    }
}

fn behind(count: u64) -> String {
    match count {
        0 => "none waits behind it".to_owned(),
        1 => "1 waits behind it".to_owned(),
        _ => format!("{count} wait behind it"),
    }
}

fn gap_skipped(view: &WorkflowView) -> String {
    match view.gap.as_ref().and_then(|gap| gap.first_missing.zip(gap.first_waiting)) {
        Some((missing, waiting)) => {
            let (positions, last) = (spanned("position", missing, waiting - 1), waiting - 1);
            let are = if missing == last { "is" } else { "are" };
            format!("{positions} {are} given up; what comes there is dead-lettered")
        }
        None => "what is missing is given up".to_owned(),
    }
}

/// The ID of a workflow in a listing.
pub(crate) fn id_of(view: &WorkflowView) -> String {
    view.workflow_id.as_ref().map(WorkflowId::to_string).unwrap_or_default()
}
