//! Doing what was reviewed: by the very calls of the API that `curl` would make. Bulk work goes slice by slice, so that it
//! can be watched, interrupted, and begun again where it stopped.

use http::Method;
use maud::Markup;
use maud::html;
use serde_json::Value;

use crate::api::BulkResponse;
use crate::api::OperateResponse;
use crate::api::PurgeResponse;
use crate::api::RedriveManyResponse;
use crate::api::RedriveResponse;
use crate::api::plural::counted;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::cluster;
use crate::page::fields::FormFields;
use crate::page::labels::sentence;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::response::go_to;
use crate::page::response::with_notice;
use crate::page::review;
use crate::page::review::refusals;
use crate::page::review::target;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// What was done.
#[derive(Default)]
struct ActionResult {
    /// What was done, in a sentence; empty for a slice of a bulk action.
    effect: String,
    done: u64,
    refused: Vec<(String, String)>,
    /// Where to go on: there is more.
    after: Option<String>,
}

impl ActionResult {
    fn of(effect: impl Into<String>) -> ActionResult {
        ActionResult { effect: effect.into(), done: 1, ..ActionResult::default() }
    }
}

/// Carries out a plan.
pub(crate) async fn carry_out(visitor: Visit, form: FormFields) -> PageResult {
    let plan = ActionPlan::read(&form)?;
    let reason = form.one("reason").map(str::trim).filter(|reason| !reason.is_empty());
    let done = perform(&visitor, &plan, reason).await?;
    let is_slice = plan.is_bulk() && (done.after.is_some() || form.number("sum").is_some());
    if is_slice || !done.refused.is_empty() {
        let so_far = form.number("sum").unwrap_or_default() + done.done;
        let refused_so_far = form.number("refused").unwrap_or_default() + done.refused.len() as u64;
        let content = progress(&visitor, &plan, reason, &done, (so_far, refused_so_far));
        return Ok(Screen::still(Tab::Blocked, plan.act.name(), content).into());
    }
    let notice = match plan.is_bulk() {
        true => format!("{}: {}", plan.act.name(), counted(done.done, "done")),
        false => format!("{}, {}: {}", plan.act.name(), target(&plan), done.effect),
    };
    let place = match plan.act {
        PageAction::Purge if plan.one("id").is_some() => "./",
        _ => plan.back(),
    };
    Ok(with_notice(go_to(place), &visitor.cookies, &notice).into())
}

async fn perform(
    visitor: &Visitor,
    plan: &ActionPlan,
    reason: Option<&str>,
) -> Result<ActionResult, ApiRefusal> {
    let api = &visitor.api;
    match plan.act {
        act if act.is_of_workflows() => match plan.is_bulk() {
            true => {
                let route = RequestPath::queue(plan.queue()).word("operate");
                let outcome: BulkResponse = api.post(&route, &review::bulk(plan, reason, false)).await?;
                let refused = outcome.refused.into_iter().map(|row| (row.workflow_id, row.error.detail));
                Ok(ActionResult {
                    done: outcome.done,
                    refused: refused.collect(),
                    after: outcome.after,
                    ..ActionResult::default()
                })
            }
            false => one_by_one(visitor, plan, reason).await,
        },
        PageAction::Redrive | PageAction::Edit => {
            let request = review::redrive(plan, reason, false);
            let outcome: RedriveResponse = api.post(&review::dead_letter_route(plan), &request).await?;
            Ok(ActionResult::of(review::redriven(&outcome)))
        }
        PageAction::RedriveMany => {
            let request = review::redrive_many(plan, reason, false);
            let outcome: RedriveManyResponse = api.post(&review::dead_letters_route(plan), &request).await?;
            let name = |number: u64| format!("message {number}");
            let refused =
                outcome.refused.into_iter().map(|row| (name(row.sequence_number), row.error.detail));
            let done = outcome.in_place + outcome.as_new;
            Ok(ActionResult {
                done,
                refused: refused.collect(),
                after: outcome.after,
                ..ActionResult::default()
            })
        }
        PageAction::PurgeDeadLetters | PageAction::PurgeQueue => {
            let request = serde_json::json!({ "reason": reason });
            let outcome: PurgeResponse = api.post(&review::purge_route(plan), &request).await?;
            Ok(ActionResult::of(format!("{} removed", counted(outcome.purged, "message"))))
        }
        PageAction::RunNow => {
            let request = serde_json::json!({ "reason": reason });
            let outcome: Value = api.post(&review::run_route(plan), &request).await?;
            Ok(ActionResult::of(outcome["effect"].as_str().unwrap_or_default()))
        }
        act if act.is_of_cluster() => Ok(ActionResult::of(cluster::carry_out(visitor, plan).await?)),
        act => without_body(visitor, plan, act).await,
    }
}

/// What the API takes without a body, and answers with nothing.
async fn without_body(
    visitor: &Visitor,
    plan: &ActionPlan,
    act: PageAction,
) -> Result<ActionResult, ApiRefusal> {
    let (api, queue) = (&visitor.api, RequestPath::queue(plan.queue()));
    let message = || queue.clone().word("messages").data(plan.number("number").unwrap_or_default());
    let (method, route, effect) = match act {
        PageAction::Cancel => (Method::DELETE, message(), "cancelled"),
        PageAction::CancelAndVoid => {
            (Method::DELETE, message().query("void", Some(true)), "cancelled, its place is void")
        }
        PageAction::Pause => (Method::POST, queue.clone().word("pause"), "paused"),
        PageAction::Unpause => (Method::POST, queue.clone().word("resume"), "the handlers go on"),
        _ => (Method::POST, RequestPath::new("/v1/definitions/reload"), "in use as they are now"),
    };
    api.send(method, &route).await?;
    Ok(ActionResult::of(effect))
}

async fn one_by_one(
    visitor: &Visitor,
    plan: &ActionPlan,
    reason: Option<&str>,
) -> Result<ActionResult, ApiRefusal> {
    let mut done = ActionResult::default();
    let workflows = review::workflows(plan);
    for (queue, id) in &workflows {
        let request = review::operation(plan, (queue, id), reason, false);
        let route = review::workflow_route(plan, queue, id);
        match visitor.api.post::<OperateResponse>(&route, &request).await {
            Ok(outcome) => {
                done.done += 1;
                done.effect = outcome.effect;
            }
            // Of one that was named, the refusal is the answer.
            Err(problem) if problem.status < 500 && workflows.len() > 1 => {
                done.refused.push((id.clone(), problem.detail));
            }
            Err(problem) => return Err(problem),
        }
    }
    if workflows.len() > 1 {
        done.effect = counted(done.done, "workflow");
    }
    Ok(done)
}

/// How far it has come, and how it goes on: by itself with the script, by a button without it.
fn progress(
    visitor: &Visitor,
    plan: &ActionPlan,
    reason: Option<&str>,
    done: &ActionResult,
    (so_far, refused_so_far): (u64, u64),
) -> Markup {
    let is_over = done.after.is_none();
    html! {
        div.review #progress {
            h1 { (plan.act.name()) @if is_over { ": done" } @else { ": at work" } }
            p.target { (sentence(&target(plan))) }
            div.card role="status" {
                p.big { span #so-far { (so_far) } " done, " (refused_so_far) " refused" }
                @if !is_over { progress.wide aria-label="At work" {} }
                (refusals(&done.refused))
            }
            @if let Some(after) = &done.after {
                form.card method="post" action="act" data-go-on {
                    input type="hidden" name="form_token" value=(visitor.form_token);
                    input type="hidden" name="sum" value=(so_far);
                    input type="hidden" name="refused" value=(refused_so_far);
                    @if let Some(reason) = reason { input type="hidden" name="reason" value=(reason); }
                    (plan.hidden([("after", after.as_str())]))
                    p.quiet { "There is more. What is done is done; stopping here loses nothing, and beginning again goes on with \
                        what is left." }
                    div.buttons {
                        button.primary type="submit" { "Go on" }
                        a.button #stop href=(plan.back()) { "Stop here" }
                    }
                }
            } @else {
                p { a.button.primary href=(plan.back()) { "Back" } }
            }
        }
    }
}
