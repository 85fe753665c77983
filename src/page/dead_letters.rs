//! Dead letters: in groups of the same reason and the same kind of error, to be put back or discarded together.

use maud::Markup;
use maud::html;

use crate::api::DeadLetterPage;
use crate::api::QueuePage;
use crate::api::foreign_text::visible;
use crate::api::views::DeadLetterEntry;
use crate::api::views::DeadLetterGroupView;
use crate::api::views::DeadLetterGroupsView;
use crate::api::views::QueueEnvelope;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::text::brief;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// The screen: the groups of every queue, or the letters of one group.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    match (fields.one("queue"), fields.one("reason")) {
        (Some(queue), Some(reason)) => dead_letters(&visitor, queue, reason, fields.one("after")).await,
        (queue, _) => groups(&visitor, queue, fields.text("after")).await,
    }
}

/// The queues of a screen, or the one that is asked for: of a page of the API, few may have dead letters, and more behind it.
async fn find(visitor: &Visitor, only: Option<&str>, after: Option<String>) -> Result<QueuePage, ApiRefusal> {
    let has_some = |queue: &QueueEnvelope| queue.counts.dead_lettered > 0;
    if let Some(only) = only {
        let queue: QueueEnvelope = visitor.api.get(&RequestPath::queue(only)).await?;
        return Ok(QueuePage { queues: Some(queue).into_iter().filter(has_some).collect(), after: None });
    }
    let mut page = QueuePage { queues: Vec::new(), after };
    for _ in 0..limits::SCREEN_LOOKS {
        let route = RequestPath::new("/v1/queues").query("after", page.after.as_deref());
        let next: QueuePage = visitor.api.get(&route.query("limit", Some(limits::PAGE_MAX))).await?;
        page.queues.extend(next.queues.into_iter().filter(has_some));
        page.after = next.after;
        if page.after.is_none() || page.queues.len() >= limits::SCREEN_ROWS {
            break;
        }
    }
    if page.queues.len() > limits::SCREEN_ROWS {
        page.queues.truncate(limits::SCREEN_ROWS);
        page.after = page.queues.last().map(|queue| queue.name.clone());
    }
    Ok(page)
}

async fn groups(visitor: &Visitor, only: Option<&str>, after: Option<String>) -> PageResult {
    let page = find(visitor, only, after).await?;
    let next = page
        .after
        .as_ref()
        .map(|after| RequestPath::new("dead-letters").query("after", Some(after)).as_str().to_owned());
    let mut shown = Vec::new();
    for queue in &page.queues {
        let route = RequestPath::queue(&queue.name).word("dead_letters").word("groups");
        let groups: DeadLetterGroupsView = visitor.api.get(&route).await?;
        let may = visitor.may_manage(&queue.name).await;
        shown.push(of_queue(visitor, &queue.name, queue.counts.dead_lettered, &groups, may));
    }
    let content = html! {
        (heading(html! { "Dead letters" }, html! { @if let Some(only) = only { "of " (visible(only, false)) " \u{b7} "
            a href="dead-letters" { "every queue" } } }))
        @if shown.is_empty() { div.empty {
            @if next.is_some() { p { "None in the queues looked at so far; there are more." } }
            @else { p.big { "No dead letters." } } } }
        @for queue in &shown { (queue) }
        (more(next))
    };
    Ok(Screen::live(Tab::DeadLetters, "Dead letters", content).into())
}

fn of_queue(visitor: &Visitor, queue: &str, all: u64, groups: &DeadLetterGroupsView, may: bool) -> Markup {
    let plan = |act: PageAction| ActionPlan::new(act).with("queue", queue).with("back", "dead-letters");
    html! {
        section.queue {
            div.heading {
                h2 { (visible(queue, false)) " " span.quiet { (all) } }
                @if may { div.buttons {
                    (plan(PageAction::RedriveMany).with("all", "true").button_named("Redrive all")) (plan(PageAction::PurgeDeadLetters).button()) } }
            }
            @if groups.is_cut { p.quiet { "There are more than were looked at; the numbers are of the first." } }
            ul.rows aria-label={ "Groups of " (visible(queue, false)) } {
                @for group in &groups.groups { (show_group(visitor, queue, group, may)) }
            }
        }
    }
}

fn show_group(visitor: &Visitor, queue: &str, group: &DeadLetterGroupView, may: bool) -> Markup {
    let place =
        RequestPath::new("dead-letters").query("queue", Some(queue)).query("reason", Some(&group.reason));
    let plan = ActionPlan::new(PageAction::RedriveMany)
        .with("queue", queue)
        .with("dead_letter_reason", &group.reason);
    html! {
        li.row.bad {
            div.main {
                p.title { a href=(place.as_str()) { (visible(&group.reason, false)) } }
                @if !group.error.is_empty() { p.error title=(visible(&group.error, true)) { (brief(&group.error, 200)) } }
            }
            dl.facts {
                div { dt { "Dead letters" } dd { (group.dead_letters) } }
                div { dt { "First" } dd { (visitor.present.show(group.first_at)) } }
                div { dt { "Last" } dd { (visitor.present.show(group.last_at)) } }
                div { dt { "Such as" } dd { (labels::message_link(queue, group.sample)) } }
            }
            @if may { div.buttons { (plan.with("back", "dead-letters").button_named("Redrive this reason")) } }
        }
    }
}

async fn dead_letters(visitor: &Visitor, queue: &str, reason: &str, after: Option<&str>) -> PageResult {
    let route =
        RequestPath::queue(queue).word("dead_letters").query("reason", Some(reason)).query("after", after);
    let page: DeadLetterPage = visitor.api.get(&route.query("limit", Some(limits::SCREEN_ROWS))).await?;
    let may = visitor.may_manage(queue).await;
    let here = RequestPath::new("dead-letters").query("queue", Some(queue)).query("reason", Some(reason));
    let next = page.after.as_ref().map(|after| here.clone().query("after", Some(after)).as_str().to_owned());
    let plan =
        ActionPlan::new(PageAction::RedriveMany).with("queue", queue).with("dead_letter_reason", reason);
    let content = html! {
        nav.crumbs aria-label="Where this is" { a href="dead-letters" { "Dead letters" }
            a href=(RequestPath::new("dead-letters").query("queue", Some(queue)).as_str()) { (visible(queue, false)) } }
        (heading(html! { (visible(reason, false)) }, html! {
            @if may { div.buttons { (plan.with("back", "dead-letters").button_named("Redrive all of them")) } } }))
        @if page.dead_letters.is_empty() { div.empty { p { "None any more." } } }
        ul.rows aria-label="Dead letters" { @for dead_letter in &page.dead_letters { (show(visitor, queue, dead_letter, here.as_str(), may)) } }
        (more(next))
    };
    Ok(Screen::live(Tab::DeadLetters, format!("Dead letters: {reason}"), content).into())
}

fn show(visitor: &Visitor, queue: &str, dead_letter: &DeadLetterEntry, here: &str, may: bool) -> Markup {
    let number = dead_letter.sequence_number;
    html! {
        li.row.bad {
            div.main {
                p.title { (labels::message_link(queue, number)) " "
                    @if let Some(id) = &dead_letter.workflow_id { (labels::workflow_link(queue, id)) } }
                @if !dead_letter.dead_letter.description.is_empty() { p.error { (brief(&dead_letter.dead_letter.description, 200)) } }
            }
            dl.facts {
                div { dt { "Since" } dd { (visitor.present.show(dead_letter.dead_letter.at)) } }
                div { dt { "Tried" } dd { (dead_letter.delivery_count) } }
            }
            @if may { div.buttons { (ActionPlan::new(PageAction::Redrive).with("queue", queue).with("number", number).with("back", here).button()) } }
        }
    }
}
