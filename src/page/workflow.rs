//! One workflow: its line as a picture, its time as a picture, why it does not go on, and what may be done about it.

use maud::Markup;
use maud::html;

use crate::api::AuditPage;
use crate::api::HistoryPage;
use crate::api::MessagePage;
use crate::api::foreign_text::visible;
use crate::api::views::AuditView;
use crate::api::views::HistoryView;
use crate::api::views::MessageEnvelope;
use crate::api::views::WorkflowEnvelope;
use crate::api::views::WorkflowWord;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::blocked::helpful;
use crate::page::body;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::scrolling_table;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::present::Present;
use crate::page::redact::BodyPreview;
use crate::page::redact::Redaction;
use crate::page::strip;
use crate::page::text::brief;
use crate::page::timeline;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// What is known of a workflow.
struct WorkflowFacts {
    queue: String,
    id: String,
    workflow: WorkflowEnvelope,
    messages: Vec<MessageEnvelope>,
    ended: Vec<HistoryView>,
    state: Option<Vec<u8>>,
    /// What operators did to it lately, newest first.
    acts: Vec<AuditView>,
    redaction: Redaction,
    may: bool,
}

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let (queue, id) = (fields.text("queue").unwrap_or_default(), fields.text("id").unwrap_or_default());
    let known = look(&visitor, queue, id).await?;
    let title = visible(&known.id, false);
    Ok(Screen::live(Tab::Workflows, title, show(&visitor, &known)).into())
}

async fn look(visitor: &Visitor, queue: String, id: String) -> Result<WorkflowFacts, ApiRefusal> {
    let of = |word: &str| RequestPath::queue(&queue).word(word).query("id", Some(&id));
    let workflow: WorkflowEnvelope = visitor.api.get(&of("workflow")).await?;
    let line = RequestPath::queue(&queue).word("workflow").word("messages").query("id", Some(&id));
    let line = line.query("limit", Some(limits::SCREEN_PLACES));
    let messages = match workflow.status {
        WorkflowWord::Ended => MessagePage::default(),
        _ => visitor.api.get(&line).await?,
    };
    let history = RequestPath::queue(&queue).word("history").query("workflow", Some(&id));
    let history: HistoryPage = visitor.api.get(&history.query("limit", Some(limits::SCREEN_ENDED))).await?;
    let state = match workflow.has_state {
        true => {
            let route = RequestPath::queue(&queue).word("workflow").word("state").query("id", Some(&id));
            visitor.api.bytes(&route).await.ok().map(|bytes| bytes.to_vec())
        }
        false => None,
    };
    let may = visitor.may_manage(&queue).await;
    let audit = RequestPath::queue(&queue).word("workflow").word("audit").query("id", Some(&id));
    let acts: AuditPage = match may {
        true => match visitor.api.get(&audit.query("limit", Some(limits::SCREEN_ENDED))).await {
            // On a cluster each partition has an audit of its own, and a workflow is shown without it.
            Err(problem) if problem.code == "unsupported" => AuditPage::default(),
            acts => acts?,
        },
        // Who did what is for those who may do it.
        false => AuditPage::default(),
    };
    let redaction = Redaction::of(visitor, &queue).await?;
    let (messages, ended, acts) = (messages.messages, history.history, acts.actions);
    Ok(WorkflowFacts { queue, id, workflow, messages, ended, state, acts, redaction, may })
}

fn show(visitor: &Visitor, known: &WorkflowFacts) -> Markup {
    let (workflow, present) = (&known.workflow, visitor.present);
    let cells = strip::cells(workflow, &known.messages, &known.ended, present);
    let rest = workflow.messages.saturating_sub(known.messages.len() as u64);
    html! {
        nav.crumbs aria-label="Where this is" {
            a href={ "workflows?queue=" (known.queue) } { (visible(&known.queue, false)) }
        }
        div.heading { h1 { bdi.id { (visible(&known.id, false)) } " " (labels::workflow(workflow.status)) } }
        (why(visitor, known))
        @if known.may { (buttons(known)) }
        section aria-labelledby="line" {
            h2 #line { "Line" }
            @if cells.is_empty() { p.quiet { "Nothing stands in it." } } @else { (strip::show(&known.queue, &cells, rest)) }
        }
        section aria-labelledby="time" {
            h2 #time { "Time" }
            (timeline::show(workflow, &known.messages, &known.ended, &known.acts, present))
        }
        (counts(workflow))
        @if !known.messages.is_empty() { (waiting(known, present)) }
        @if !known.ended.is_empty() { (history(known, present)) }
        @if !known.acts.is_empty() { (acts(known, present)) }
        @if let Some(state) = &known.state {
            section aria-labelledby="state" { h2 #state { "State" }
                @if let Some(at) = workflow.state_set_at { p.quiet { "Set " (present.show(at)) } }
                @match known.redaction.body(state) {
                    BodyPreview::All => (body::block(state, Some("application/json"))),
                    BodyPreview::Some(left) => { (body::block(&left, Some("application/json"))) p.quiet { "Some of it is hidden, as the queue's definition says." } }
                    BodyPreview::Nothing => p.quiet { "It is hidden: it is no JSON, and the queue's definition hides parts." },
                } }
        }
    }
}

/// Why it does not go on, and what comes next: the answer one has come for.
fn why(visitor: &Visitor, known: &WorkflowFacts) -> Markup {
    let Some(row) = &known.workflow.blocked else {
        return html! {
            @if let Some(ended) = &known.workflow.ended {
                p.lead { "Nothing is stored of it any more. It last ended " (visitor.present.show(ended.at)) ": "
                    (labels::of_ending(ended.ending).2) "." }
            }
        };
    };
    let (tone, ..) = labels::of_cause(row.cause);
    html! {
        div.why.(tone) {
            p.lead { (labels::cause(row.cause))
                @if let Some(since) = row.since { " since " (visitor.present.show_both(since)) } }
            @if let Some(error) = row.last_error.as_ref().or(row.hold_reason.as_ref()) {
                pre.error { (visible(error, true)) }
            }
            @for hold in &row.holds {
                p { "Held " (visitor.present.show(hold.since)) ": " (labels::hold(hold.cause))
                    @if !hold.reason.is_empty() { " \u{2013} " q { (brief(&hold.reason, 200)) } } }
            }
            dl.facts.wide {
                div { dt { "Next, by itself" } dd { (labels::next(row, visitor.present)) } }
                div { dt { "Waiting" } dd { (row.waiting) } }
                @if let Some(number) = row.sequence_number {
                    div { dt { "Message" } dd { (labels::message_link(&known.queue, number)) } }
                }
                @if let Some(missing) = row.first_missing {
                    div { dt { "Missing" } dd { (missing) @if let Some(waiting) = row.first_waiting.filter(|waiting| *waiting > missing + 1) {
                        "\u{2013}" (waiting - 1) } } }
                }
            }
        }
    }
}

fn buttons(known: &WorkflowFacts) -> Markup {
    let workflow = &known.workflow;
    let plan = |act: PageAction| {
        let back = labels::workflow_place(&known.queue, &known.id);
        ActionPlan::new(act).with("queue", &known.queue).with("id", &known.id).with("back", back)
    };
    let cause = workflow.blocked.as_ref().map(|row| row.cause);
    let mut acts: Vec<PageAction> = cause.map(|cause| helpful(cause).to_vec()).unwrap_or_default();
    let is_held = !workflow.holds.is_empty();
    if is_held && workflow.dead_letters > 0 {
        acts.insert(0, PageAction::ResumeAndRedrive);
    }
    if workflow.status == WorkflowWord::Locked && !acts.contains(&PageAction::ReleaseLock) {
        acts.push(PageAction::ReleaseLock);
    }
    if !is_held && !acts.contains(&PageAction::Hold) {
        acts.push(PageAction::Hold);
    }
    let void = workflow.gap.as_ref().and_then(|gap| gap.first_missing.zip(gap.first_waiting));
    html! {
        div.buttons role="group" aria-label="Actions" {
            @for act in acts {
                @match (act, void) {
                    (PageAction::Void, Some((from, waiting))) =>
                        (plan(act).with("from", from).with("to", waiting - 1).button_named("Void what is missing")),
                    _ => (plan(act).button()),
                }
            }
            @if workflow.status != WorkflowWord::Ended { (plan(PageAction::Purge).button()) }
        }
    }
}

fn counts(workflow: &WorkflowEnvelope) -> Markup {
    html! {
        dl.facts.wide {
            div { dt { "In its line" } dd { (workflow.messages) } }
            div { dt { "Early" } dd { (workflow.early) } }
            div { dt { "Set aside" } dd { (workflow.set_aside) } }
            div { dt { "Dead letters" } dd { (workflow.dead_letters) } }
            @if let Some(next) = workflow.next_position { div { dt { "Next position" } dd { (next) } } }
        }
    }
}

/// The messages of the line as a table, for those who read pictures badly.
fn waiting(known: &WorkflowFacts, present: Present) -> Markup {
    html! {
        section aria-labelledby="messages" {
            h2 #messages { "Messages" }
            (scrolling_table("Messages, as a table", &html! {
                th scope="col" { "Place" } th scope="col" { "Message" } th scope="col" { "Status" }
                th scope="col" { "Came" } th.number scope="col" { "Tried" } th scope="col" { "Last error" }
            }, &html! {
                @for message in &known.messages {
                    @let (tone, sign, word) = labels::of_message(message.status);
                    tr {
                        td { @match message.position { Some(position) => (position), None => "\u{2013}" } }
                        td { (labels::message_link(&known.queue, message.sequence_number)) }
                        td { (labels::chip(tone, sign, word)) @if let Some(until) = message.until { " " (present.show(until)) } }
                        td { (present.show(message.accepted_at)) }
                        td.number { (message.delivery_count) }
                        td { @if let Some(last) = message.attempts.last() { (brief(&last.reason, 100)) } }
                    }
                }
            }))
        }
    }
}

fn history(known: &WorkflowFacts, present: Present) -> Markup {
    html! {
        section aria-labelledby="history" {
            h2 #history { "History" }
            (scrolling_table("History, as a table", &html! {
                th scope="col" { "Place" } th scope="col" { "Message" } th scope="col" { "How it ended" }
                th scope="col" { "When" } th.number scope="col" { "Tried" } th scope="col" { "Why" }
            }, &html! {
                @for entry in &known.ended {
                    @let (tone, sign, word) = labels::of_ending(entry.ending);
                    tr {
                        td { @match entry.positions {
                            Some((first, last)) if first == last => (first),
                            Some((first, last)) => { (first) "\u{2013}" (last) }
                            None => "\u{2013}",
                        } }
                        td { @if let Some(number) = entry.sequence_number { (labels::message_link(&known.queue, number)) } }
                        td { (labels::chip(tone, sign, word)) }
                        td { (present.show(entry.at)) }
                        td.number { (entry.delivery_count) }
                        td { @if let Some(reason) = &entry.reason { (brief(reason, 100)) } }
                    }
                }
            }))
        }
    }
}

/// What operators did to it.
fn acts(known: &WorkflowFacts, present: Present) -> Markup {
    html! {
        section aria-labelledby="acts" {
            h2 #acts { "What operators did" }
            (scrolling_table("What operators did, as a table", &html! {
                th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" }
                th scope="col" { "Message" } th scope="col" { "Why" }
            }, &html! {
                @for act in &known.acts {
                    tr {
                        td { (present.show(act.at)) }
                        td { (visible(&act.actor, false)) }
                        td { code { (act.verb) }
                            @if act.refusal.is_some() { " " (labels::chip("warn", "\u{2298}", "refused")) } }
                        td { @match act.sequence_number {
                            Some(number) => (labels::message_link(&known.queue, number)), None => "\u{2013}" } }
                        td { @if let Some(why) = act.refusal.as_ref().or(act.reason.as_ref()) { (brief(why, 100)) } }
                    }
                }
            }))
        }
    }
}
