//! The workflows of a queue, found by the beginning of their ID and by what they do.

use maud::html;

use crate::api::WorkflowPage;
use crate::api::foreign_text::visible;
use crate::limits;
use crate::own_queues::kept_in;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::layout::scrolling_table;
use crate::page::messages;
use crate::page::text::brief;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// What workflows can do.
const STATUSES: [&str; 7] =
    ["ready", "locked", "blocked", "held", "waiting_for_predecessor", "scheduled", "idle"];

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let queues = visitor.queue_names(fields.one("queue")).await?;
    let first = queues.iter().find(|name| kept_in(name).is_none());
    let queue = fields.text("queue").or_else(|| first.cloned());
    let (prefix, status) = (fields.one("prefix"), fields.one("status"));
    let mut page = WorkflowPage { workflows: Vec::new(), after: fields.text("after") };
    if let Some(queue) = &queue {
        for _ in 0..limits::SCREEN_LOOKS {
            let left = limits::SCREEN_ROWS - page.workflows.len();
            let route =
                RequestPath::queue(queue).word("workflows").query("prefix", prefix).query("status", status);
            let route = route.query("after", page.after.as_deref()).query("limit", Some(left));
            let next: WorkflowPage = visitor.api.get(&route).await?;
            page.workflows.extend(next.workflows);
            page.after = next.after;
            if page.after.is_none() || page.workflows.len() >= limits::SCREEN_ROWS {
                break;
            }
        }
    }
    let name = queue.as_deref().unwrap_or_default();
    let next = page.after.as_ref().map(|after| {
        let route = RequestPath::new("workflows").query("queue", queue.as_deref()).query("prefix", prefix);
        route.query("status", status).query("after", Some(after)).as_str().to_owned()
    });
    let content = html! {
        (heading(html! { "Workflows" }, html! { (page.workflows.len()) @if next.is_some() { " on this page" } }))
        form.filter method="get" action="workflows" role="search" {
            label for="queue" { "Queue" }
            select #queue name="queue" { @for known in &queues {
                option value=(known) selected[known == name] { (visible(known, false)) } } }
            label for="prefix" { "ID begins with" }
            input #prefix type="search" name="prefix" value=[prefix] data-key="/";
            label for="status" { "Status" }
            select #status name="status" {
                option value="" { "any" }
                @for known in STATUSES { option value=(known) selected[status == Some(known)] { (known.replace('_', " ")) } }
            }
            button.button type="submit" { "Find" }
        }
        @if !name.is_empty() { (messages::empty_form(name)) }
        @if page.workflows.is_empty() {
            div.empty { p { @if next.is_some() { "None among those looked at so far; there are more." }
                @else { "There is no such workflow." } } }
        } @else {
            (scrolling_table("Workflows", &html! {
                th scope="col" { "Workflow" } th scope="col" { "Status" } th.number scope="col" { "Messages" }
                th.number scope="col" { "Dead" } th scope="col" { "Why" }
            }, &html! {
                @for workflow in &page.workflows {
                    tr {
                        td { @if let Some(id) = &workflow.workflow_id { (labels::workflow_link(name, id)) } }
                        td { (labels::workflow(workflow.status))
                            @if let Some(until) = workflow.until { " " (visitor.present.show(until)) } }
                        td.number { (workflow.messages) }
                        td.number { (workflow.dead_letters) }
                        td { @if let Some(reason) = &workflow.reason { (brief(reason, 90)) } }
                    }
                }
            }))
        }
        (more(next))
    };
    Ok(Screen::live(Tab::Workflows, "Workflows", content).into())
}
