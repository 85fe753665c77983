//! Before anything is done: what would be done, and to how much. The engine tries it and takes it back.

use maud::Markup;
use maud::html;
use serde_json::Value;
use serde_json::json;

use crate::api::BulkResponse;
use crate::api::OperateResponse;
use crate::api::PurgeResponse;
use crate::api::RedriveManyResponse;
use crate::api::RedriveResponse;
use crate::api::RedrivenWord;
use crate::api::foreign_text::visible;
use crate::api::plural::counted;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::cluster;
use crate::page::edit;
use crate::page::fields::FormFields;
use crate::page::labels::sentence;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::plan::ReasonRule;
use crate::page::plan::head_field;
use crate::page::preview::Preview;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// The review of a plan.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let plan = ActionPlan::read(&fields)?;
    if plan.act == PageAction::MovePartition && plan.one("node").is_none() {
        let form = cluster::ask_for_node(&visitor, &plan).await?;
        return Ok(Screen::still(Tab::Cluster, "Move a partition", form).into());
    }
    if plan.act == PageAction::Void && plan.number("from").is_none() {
        return Ok(Screen::still(Tab::Blocked, "Void a gap", ask_for_range(&plan)).into());
    }
    let preview = match preview(&visitor, &plan).await {
        Ok(preview) => preview,
        Err(problem) if problem.status < 500 => {
            Preview { refused: vec![(target(&plan), problem.detail)], ..Preview::default() }
        }
        Err(problem) => return Err(problem),
    };
    let tab = if plan.act.is_of_cluster() { Tab::Cluster } else { Tab::Blocked };
    Ok(Screen::still(tab, plan.act.name(), show(&visitor, &plan, &preview)).into())
}

/// What is meant, in a few words.
pub(crate) fn target(plan: &ActionPlan) -> String {
    let queue = plan.queue();
    if plan.act.is_of_cluster() {
        return cluster::target(plan);
    }
    if let Some(id) = plan.one("id") {
        return format!("workflow {id} of {queue}");
    }
    if let Some(number) = plan.one("number") {
        return format!("message {number} of {queue}");
    }
    match plan.act {
        PageAction::RunNow => format!("schedule {} of {queue}", plan.one("schedule").unwrap_or_default()),
        PageAction::Reload => "the definition files".to_owned(),
        _ if plan.one("pick").is_some() => counted(plan.picks().count() as u64, "workflow"),
        _ if plan.is_bulk() => format!("everything of {queue} that the filter finds"),
        _ => format!("queue {queue}"),
    }
}

async fn preview(visitor: &Visitor, plan: &ActionPlan) -> Result<Preview, ApiRefusal> {
    match plan.act {
        act if act.is_of_workflows() => match plan.is_bulk() {
            true => of_filter(visitor, plan).await,
            false => of_workflows(visitor, plan).await,
        },
        PageAction::Redrive | PageAction::Edit => of_dead_letter(visitor, plan).await,
        PageAction::RedriveMany => of_dead_letters(visitor, plan).await,
        PageAction::PurgeDeadLetters | PageAction::PurgeQueue => {
            let outcome: PurgeResponse =
                visitor.api.post(&purge_route(plan), &json!({ "dry_run": true })).await?;
            Ok(Preview::of(format!("removed for good: {}", counted(outcome.purged, "message"))))
        }
        PageAction::RunNow => {
            let request = json!({ "dry_run": true });
            let outcome: Value = visitor.api.post(&run_route(plan), &request).await?;
            Ok(Preview::of(outcome["effect"].as_str().unwrap_or_default()))
        }
        act if act.is_of_cluster() => cluster::preview(visitor, plan).await,
        PageAction::Cancel => Ok(Preview::of("the message is removed, and its place is free again")),
        PageAction::CancelAndVoid => {
            Ok(Preview::of("the message is removed, and its place is void: what waits behind it goes on"))
        }
        PageAction::Pause => Ok(Preview::of(
            "the handlers of the queue are handed nothing more until they are let go on; messages are accepted and wait",
        )),
        PageAction::Unpause => Ok(Preview::of("the handlers of the queue go on")),
        _ => Ok(Preview::of(
            "all definition files are read again: a whole valid set takes effect, or nothing changes",
        )),
    }
}

/// The request for an act on one workflow.
pub(crate) fn operation(
    plan: &ActionPlan,
    (queue, id): (&str, &str),
    reason: Option<&str>,
    dry_run: bool,
) -> Value {
    let (_, redrive) = plan.act.verb();
    let mut request = json!({ "dry_run": dry_run });
    if let Some(reason) = reason {
        request["reason"] = reason.into();
    }
    if redrive {
        request["redrive"] = true.into();
    }
    if let (PageAction::Void, Some(from)) = (plan.act, plan.number("from")) {
        request["from"] = from.into();
        request["to"] = plan.number("to").unwrap_or(from).into();
    }
    if let Some(number) = plan.head(queue, id) {
        request["sequence_number"] = number.into();
    }
    request
}

/// The workflows that are meant one by one, each with its queue.
pub(crate) fn workflows(plan: &ActionPlan) -> Vec<(String, String)> {
    let owned = |(queue, id): (&str, &str)| (queue.to_owned(), id.to_owned());
    match plan.one("id") {
        Some(id) => vec![owned((plan.queue(), id))],
        None => plan.picks().map(owned).collect(),
    }
}

pub(crate) fn workflow_route(plan: &ActionPlan, queue: &str, id: &str) -> RequestPath {
    RequestPath::queue(queue).word("workflow").word(plan.act.verb().0).query("id", Some(id))
}

pub(crate) fn purge_route(plan: &ActionPlan) -> RequestPath {
    match plan.act {
        PageAction::PurgeDeadLetters => RequestPath::queue(plan.queue()).word("dead_letters").word("purge"),
        _ => RequestPath::queue(plan.queue()).word("purge"),
    }
}

pub(crate) fn run_route(plan: &ActionPlan) -> RequestPath {
    RequestPath::queue(plan.queue())
        .word("schedules")
        .data(plan.one("schedule").unwrap_or_default())
        .word("run")
}

async fn of_workflows(visitor: &Visitor, plan: &ActionPlan) -> Result<Preview, ApiRefusal> {
    let mut preview = Preview::default();
    let workflows = workflows(plan);
    for (queue, id) in &workflows {
        let request = operation(plan, (queue, id), None, true);
        let outcome = visitor.api.post::<OperateResponse>(&workflow_route(plan, queue, id), &request).await;
        match outcome {
            Ok(outcome) => {
                preview.is_possible = true;
                preview.heads.extend(outcome.sequence_number.map(|number| head_field(number, queue, id)));
                preview.effects.push(match workflows.len() {
                    1 => sentence(&outcome.effect),
                    _ => format!("{id}: {}", outcome.effect),
                });
            }
            Err(problem) if problem.status < 500 => preview.refused.push((id.clone(), problem.detail)),
            Err(problem) => return Err(problem),
        }
    }
    Ok(preview)
}

/// The request for an act on all workflows that a filter finds.
pub(crate) fn bulk(plan: &ActionPlan, reason: Option<&str>, dry_run: bool) -> Value {
    let (verb, redrive) = plan.act.verb();
    let causes: Vec<String> = match plan.one("cause") {
        Some(cause) => vec![cause.to_owned()],
        None => plan.act.causes().iter().map(|cause| cause.as_str().to_owned()).collect(),
    };
    let mut filter = json!({ "cause": causes });
    if let Some(text) = plan.one("text") {
        filter["reason"] = text.into();
    }
    let limit = if dry_run { limits::PAGE_MAX } else { limits::SCREEN_SLICE };
    let mut request = json!({ "verb": verb, "filter": filter, "dry_run": dry_run, "limit": limit });
    for (name, value) in [("reason", reason), ("after", plan.one("after").filter(|_| !dry_run))] {
        if let Some(value) = value {
            request[name] = value.into();
        }
    }
    if redrive {
        request["redrive"] = true.into();
    }
    request
}

async fn of_filter(visitor: &Visitor, plan: &ActionPlan) -> Result<Preview, ApiRefusal> {
    let route = RequestPath::queue(plan.queue()).word("operate");
    let outcome: BulkResponse = visitor.api.post(&route, &bulk(plan, None, true)).await?;
    let more = if outcome.after.is_some() { " at least" } else { "" };
    let effect = format!("{}: {}{more}", plan.act.name().to_lowercase(), counted(outcome.done, "workflow"));
    Ok(Preview {
        effects: vec![sentence(&effect)],
        sample: outcome.workflow_ids.into_iter().take(10).collect(),
        refused: outcome.refused.into_iter().map(|row| (row.workflow_id, row.error.detail)).collect(),
        is_possible: outcome.done > 0 || outcome.after.is_some(),
        ..Preview::default()
    })
}

/// The request for putting back one dead letter.
pub(crate) fn redrive(plan: &ActionPlan, reason: Option<&str>, dry_run: bool) -> Value {
    let mut request = json!({ "dry_run": dry_run });
    if let Some(position) = plan.number("position") {
        request["position"] = position.into();
    }
    if let Some(reason) = reason {
        request["reason"] = reason.into();
    }
    if plan.act == PageAction::Edit {
        request["body_text"] = edit::new_body(plan).into();
    }
    request
}

pub(crate) fn dead_letter_route(plan: &ActionPlan) -> RequestPath {
    let number = plan.number("number").unwrap_or_default();
    RequestPath::queue(plan.queue()).word("dead_letters").data(number).word("redrive")
}

async fn of_dead_letter(visitor: &Visitor, plan: &ActionPlan) -> Result<Preview, ApiRefusal> {
    let outcome: RedriveResponse =
        visitor.api.post(&dead_letter_route(plan), &redrive(plan, None, true)).await?;
    let preview = Preview::of(redriven(&outcome));
    if plan.act != PageAction::Edit {
        return Ok(preview);
    }
    let mut effects = preview.effects.clone();
    effects.push(
        "The original stays a dead letter, with the reason \"edited\" and a number of its own".to_owned(),
    );
    Ok(Preview { effects, details: Some(edit::changes(visitor, plan).await?), ..preview })
}

/// How a dead letter comes back, in a sentence.
pub(crate) fn redriven(outcome: &RedriveResponse) -> String {
    match outcome.redriven {
        RedrivenWord::InPlace => "it returns to its own place, under its own number".to_owned(),
        RedrivenWord::AsNew => format!("it is sent again as message {}", outcome.sequence_number),
    }
}

/// The request for putting back many dead letters.
pub(crate) fn redrive_many(plan: &ActionPlan, reason: Option<&str>, dry_run: bool) -> Value {
    let limit = if dry_run { limits::PAGE_MAX } else { limits::SCREEN_SLICE };
    let mut request = json!({ "dry_run": dry_run, "limit": limit });
    let given = [
        ("dead_letter_reason", plan.one("dead_letter_reason")),
        ("workflow_id", plan.one("id")),
        ("reason", reason),
        ("after", plan.one("after").filter(|_| !dry_run)),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            request[name] = value.into();
        }
    }
    if plan.one("dead_letter_reason").is_none() && plan.one("id").is_none() {
        request["all"] = true.into();
    }
    request
}

pub(crate) fn dead_letters_route(plan: &ActionPlan) -> RequestPath {
    RequestPath::queue(plan.queue()).word("dead_letters").word("redrive")
}

async fn of_dead_letters(visitor: &Visitor, plan: &ActionPlan) -> Result<Preview, ApiRefusal> {
    let request = redrive_many(plan, None, true);
    let outcome: RedriveManyResponse = visitor.api.post(&dead_letters_route(plan), &request).await?;
    let more = if outcome.after.is_some() { " at least" } else { "" };
    let (in_place, as_new) = (outcome.in_place, outcome.as_new);
    let mut effects = Vec::new();
    if in_place > 0 {
        effects.push(format!("{}{more} return to their own places", counted(in_place, "dead letter")));
    }
    if as_new > 0 {
        effects.push(format!("{}{more} are sent again as new messages", counted(as_new, "dead letter")));
    }
    let refused = outcome.refused.into_iter();
    Ok(Preview {
        is_possible: in_place + as_new > 0 || outcome.after.is_some(),
        effects,
        refused: refused.map(|row| (format!("message {}", row.sequence_number), row.error.detail)).collect(),
        ..Preview::default()
    })
}

fn show(visitor: &Visitor, plan: &ActionPlan, preview: &Preview) -> Markup {
    let act = plan.act;
    html! {
        div.review {
            h1 { (act.name()) }
            p.target { (sentence(&target(plan))) }
            div.card {
                h2 { @if preview.is_possible { "What would be done" } @else { "Nothing can be done" } }
                @if !preview.effects.is_empty() {
                    ul.effects { @for effect in preview.effects.iter().take(20) { li { (visible(effect, true)) } }
                        @if preview.effects.len() > 20 { li { "and " (preview.effects.len() - 20) " more" } } }
                }
                @if !preview.sample.is_empty() {
                    p.quiet { "Among them: "
                        @for (at, id) in preview.sample.iter().enumerate() { @if at > 0 { ", " } bdi.id { (visible(id, false)) } } }
                }
                (refusals(&preview.refused))
            }
            @if let Some(details) = &preview.details { (details) }
            @if preview.is_possible { (form(visitor, plan, &preview.heads)) }
            @else { p { a.button href=(plan.back()) { "Back" } } }
        }
    }
}

/// What refuses, and why.
pub(crate) fn refusals(refused: &[(String, String)]) -> Markup {
    html! {
        @if !refused.is_empty() {
            h3 { (counted(refused.len() as u64, "refusal")) }
            ul.refused {
                @for (what, why) in refused.iter().take(20) {
                    li { bdi.id { (visible(what, false)) } ": " (visible(why, false)) }
                }
                @if refused.len() > 20 { li { "and " (refused.len() - 20) " more" } }
            }
        }
    }
}

fn form(visitor: &Visitor, plan: &ActionPlan, heads: &[String]) -> Markup {
    let (act, reason) = (plan.act, plan.act.reason());
    html! {
        form.card method="post" action="act" {
            input type="hidden" name="form_token" value=(visitor.form_token);
            (plan.hidden(heads.iter().map(|head| ("head", head.as_str()))))
            @if reason != ReasonRule::No {
                label for="reason" { "Why" @if reason == ReasonRule::May { span.quiet { " (optional)" } } }
                input #reason type="text" name="reason" maxlength="500" autocomplete="off"
                    autofocus required[reason == ReasonRule::Must] aria-describedby="about-reason";
            }
            @let book = if act.is_of_cluster() { "the log of the daemon" } else { "the audit" };
            p.quiet #about-reason { "It is written to " (book) " as done by " strong { (visible(&visitor.key.name, false)) } "." }
            div.buttons {
                button.primary.loss[act.is_loss()] type="submit" { (act.name()) }
                a.button href=(plan.back()) { "Leave it" }
            }
        }
    }
}

fn ask_for_range(plan: &ActionPlan) -> Markup {
    html! {
        div.review {
            h1 { "Void a gap" }
            p.target { (sentence(&target(plan))) }
            form.card method="get" action="review" {
                (plan.hidden([]))
                p { "Positions that will never come. What comes there after all is dead-lettered." }
                label for="from" { "First position" }
                input #from type="number" min="0" name="from" required autofocus;
                label for="to" { "Last position " span.quiet { "(the first, if empty)" } }
                input #to type="number" min="0" name="to";
                div.buttons {
                    button.primary type="submit" { "See what would be done" }
                    a.button href=(plan.back()) { "Leave it" }
                }
            }
        }
    }
}
