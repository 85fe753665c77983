//! What an operator does to one workflow.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::HoldCause;
use crate::engine::Workflow;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::id::WorkflowId;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::behalf::acting_as;
use crate::server::caller::Caller;
use crate::server::named::Asked;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::named::required;
use crate::server::shared::Shared;
use crate::server::workflows::WorkflowQuery;
use crate::server::workflows::view;
use crate::wire::views::WorkflowEnvelope;

/// What an operator can do to a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verb {
    /// Holds it: nothing of it is offered until it is resumed.
    Hold,
    /// Resumes it; a spent message at its head is tried again.
    Resume,
    /// Tries the failed message at its head again now.
    Retry,
    /// Dead-letters the message at its head and goes on with the next.
    Skip,
    /// Takes it from its holder; what that has out counts as failed.
    ReleaseLock,
    /// Declares that missing positions will never come.
    Void,
    /// Gives up everything that is missing before the lowest waiting message.
    SkipGap,
    /// Removes its messages for good, dead letters included.
    Purge,
}

impl Verb {
    /// Whether messages or places are given up: then somebody has to say why.
    fn needs_reason(self) -> bool {
        matches!(self, Verb::Skip | Verb::Void | Verb::SkipGap | Verb::Purge)
    }
}

/// How an operator wants it done.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OperateRequest {
    /// Why; required for `skip`, `void`, `skip_gap` and `purge`.
    pub(crate) reason: Option<String>,
    /// Only says whether it would be done, and what it would lead to.
    pub(crate) dry_run: bool,
    /// With `resume`: puts its dead letters whose places are ahead back in place before.
    pub(crate) redrive: bool,
    /// With `void`: the first missing position.
    pub(crate) from: Option<u64>,
    /// With `void`: the last missing position; the first if it is not given.
    pub(crate) to: Option<u64>,
}

/// What was done, and what the workflow does now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OperateAnswer {
    /// What was done, or would be, in a sentence.
    effect: String,
    /// Whether nothing was done.
    dry_run: bool,
    /// With `purge`: how many messages were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    purged: Option<u64>,
    /// The workflow as it is now; absent when nothing is stored of it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<WorkflowEnvelope>,
}

pub(crate) async fn operate(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Asked(query): Asked<WorkflowQuery>,
    Told(request): Told<OperateRequest>,
) -> Answer {
    let verb = verb(&named)?;
    let order = Order { verb, request };
    order.check()?;
    let client = acting_as(&shared.client, &caller, order.request.reason.as_deref())?;
    let queue = client.queue(named.text("queue")?)?;
    let workflow = queue.workflow(&query.id)?;
    let now = match verb {
        // Holding a workflow of which nothing is stored is how to stop one before it begins.
        Verb::Hold => workflow.view().await?,
        _ => Some(view(&queue, &workflow).await?),
    };
    let foreseen = order.foresee(now.as_ref());
    let dry_run = order.request.dry_run;
    let (effect, purged) = match dry_run {
        true => (foreseen?, None),
        // The engine judges by what is then, not by what was looked at.
        false => {
            // What was looked at says more precisely why nothing waits: somebody may be at work on it.
            let done = order.carry_out(&workflow).await;
            let purged = match (done, &foreseen) {
                (Err(Refused(problem)), Err(_)) if problem.code == "nothing_waits" => {
                    return foreseen.and(Err(Refused(problem)));
                }
                (done, _) => done?,
            };
            (foreseen.unwrap_or_else(|_| "it was done".to_owned()), purged)
        }
    };
    let workflow = workflow.view().await?.as_ref().map(WorkflowEnvelope::show);
    json(&OperateAnswer { effect, dry_run, purged, workflow })
}

fn verb(named: &Named) -> Result<Verb, Refused> {
    let text = named.text("verb")?;
    let unknown = || {
        let known = "hold, resume, retry, skip, release_lock, void, skip_gap and purge";
        Refused::new("route_not_found", format!("{text:?} is not one of {known}"))
    };
    serde_json::from_value(serde_json::Value::from(text)).map_err(|_| unknown())
}

/// A verb, and how it is meant.
pub(crate) struct Order {
    pub(crate) verb: Verb,
    pub(crate) request: OperateRequest,
}

impl Order {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        let OperateRequest { reason, dry_run, redrive, from, to } = &self.request;
        if self.verb.needs_reason() && !dry_run {
            required("reason", reason.clone())?;
        }
        if *redrive && self.verb != Verb::Resume {
            return Err(Refused::misuse("redrive", "goes with resume only"));
        }
        match (self.verb, from, to) {
            (Verb::Void, None, _) => Err(Refused::misuse("from", "is required")),
            (Verb::Void, Some(from), Some(to)) if from > to => {
                Err(Refused::misuse("to", "is before the first position"))
            }
            (Verb::Void, ..) | (_, None, None) => Ok(()),
            _ => Err(Refused::misuse("from", "goes with void only")),
        }
    }

    /// What the verb would lead to, or why it would be refused, as far as a look can tell: what is not asked for in a
    /// dry run is judged again when it is done.
    pub(crate) fn foresee(&self, view: Option<&WorkflowView>) -> Result<String, Refused> {
        let Some(view) = view else {
            return Ok("nothing of the workflow is offered until it is resumed".to_owned());
        };
        let waiting = view.messages;
        let refused = |code, detail: &str| Err(Refused::new(code, detail));
        let is_locked = matches!(view.status, WorkflowStatus::Locked { .. });
        Ok(match (self.verb, &view.status) {
            (Verb::Hold, _) => {
                format!("nothing of the workflow is offered until it is resumed; {waiting} messages wait")
            }
            (Verb::Resume, WorkflowStatus::Held(hold)) => self.resumed(view, &hold.cause),
            (Verb::Resume, _) => return refused("not_held", "resume: the workflow is not held"),
            (Verb::Retry, WorkflowStatus::Blocked { sequence_number, .. }) => {
                format!("message {sequence_number} is tried again now")
            }
            (Verb::Retry, WorkflowStatus::Held(_)) if waiting > view.early => {
                "if the message at the head has failed, it is tried again now".to_owned()
            }
            (Verb::Retry, _) if is_locked => {
                return refused("workflow_locked", "retry: its message is being handled at this moment");
            }
            (Verb::Retry, _) => {
                return refused("nothing_waits", "retry: no message waits for a retry at the head");
            }
            (Verb::Skip, _) if is_locked => {
                return refused("workflow_locked", "skip: the workflow is locked by a holder");
            }
            (Verb::Skip, _) if waiting == view.early => {
                return refused("no_head", "skip: the workflow has no message at its head");
            }
            (Verb::Skip, WorkflowStatus::Blocked { sequence_number, .. }) => {
                format!("message {sequence_number} is dead-lettered; {} wait behind it", waiting - 1)
            }
            (Verb::Skip, _) => format!("the head is dead-lettered; {} wait behind it", waiting - 1),
            (Verb::ReleaseLock, _) if is_locked => {
                "the holder loses the workflow, and what it has out counts as failed".to_owned()
            }
            (Verb::ReleaseLock, WorkflowStatus::Held(_)) => {
                "if somebody has something of the held workflow out, that counts as failed".to_owned()
            }
            (Verb::ReleaseLock, _) => return refused("not_locked", "release: the workflow is not locked"),
            (Verb::Void, _) => return self.voided(view),
            (Verb::SkipGap, _) if view.early == 0 => {
                return refused("no_head", "skip the gap: nothing waits behind a gap");
            }
            (Verb::SkipGap, _) => gap_skipped(view),
            (Verb::Purge, _) => {
                let (aside, dead) = (view.set_aside, view.dead_letters);
                format!("up to {waiting} messages, {aside} set aside and {dead} dead letters are removed")
            }
        })
    }

    fn resumed(&self, view: &WorkflowView, cause: &HoldCause) -> String {
        let dead = view.dead_letters;
        match (self.request.redrive, cause) {
            (true, _) => format!("up to {dead} dead letters return to their places, then it is resumed"),
            (false, HoldCause::Spent(number)) => {
                format!("message {number} is tried again, then the {} behind it", view.messages - 1)
            }
            (false, _) => format!("it is resumed; {} messages wait", view.messages),
        }
    }

    fn voided(&self, view: &WorkflowView) -> Result<String, Refused> {
        let Some(next) = view.next_position else {
            return Err(Refused::new("no_positions", "declare a gap void: the queue has no positions"));
        };
        let from = self.request.from.unwrap_or_default();
        let to = self.request.to.unwrap_or(from);
        if from < next {
            let detail = format!("declare position {from} void: it is not missing");
            return Err(Refused::new("not_missing", detail));
        }
        Ok(format!("positions {from} to {to} will never be waited for; what comes for them is dead-lettered"))
    }

    /// Does it. Answers how many messages were purged.
    pub(crate) async fn carry_out(&self, workflow: &Workflow) -> Result<Option<u64>, Refused> {
        let OperateRequest { reason, redrive, from, to, .. } = &self.request;
        let reason = || reason.clone().unwrap_or_default();
        match self.verb {
            Verb::Hold => workflow.hold(reason()).await?,
            Verb::Resume if *redrive => workflow.resume_and_redrive().await?,
            Verb::Resume => workflow.resume().await?,
            Verb::Retry => workflow.retry_now().await?,
            Verb::Skip => workflow.skip_head(reason()).await?,
            Verb::ReleaseLock => workflow.release_lock().await?,
            Verb::Void => {
                let from = from.unwrap_or_default();
                workflow.declare_void(from, to.unwrap_or(from)).await?;
            }
            Verb::SkipGap => workflow.skip_gap().await?,
            Verb::Purge => return Ok(Some(workflow.purge().await?)),
        }
        Ok(None)
    }
}

fn gap_skipped(view: &WorkflowView) -> String {
    let gap = view.gap.and_then(|gap| gap.first_missing.zip(gap.first_waiting));
    match gap {
        Some((missing, waiting)) => {
            format!(
                "positions {missing} to {} are given up; what comes for them is dead-lettered",
                waiting - 1
            )
        }
        None => "what is missing is given up".to_owned(),
    }
}

/// The ID of a workflow in a listing.
pub(crate) fn id_of(view: &WorkflowView) -> String {
    view.workflow_id.as_ref().map(WorkflowId::to_string).unwrap_or_default()
}
