//! The overview: every queue with what came and went in the last hour, what waits, what is stuck, what is dead.

use maud::Markup;
use maud::html;

use crate::api::QueuePage;
use crate::api::foreign_text::visible;
use crate::api::plural::size;
use crate::api::views::BlockedCause;
use crate::api::views::QueueEnvelope;
use crate::api::views::QueueRatesView;
use crate::api::views::RatesView;
use crate::limits;
use crate::own_queues::kept_in;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::count;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let route = RequestPath::new("/v1/queues").query("after", fields.one("after"));
    let page: QueuePage = visitor.api.get(&route.query("limit", Some(limits::SCREEN_ROWS))).await?;
    let rates: RatesView = visitor.api.get(&RequestPath::new("/v1/rates")).await?;
    let mut rows = Vec::new();
    for queue in &page.queues {
        let of_queue = rates.queues.iter().find(|rates| rates.queue == queue.name);
        // What the daemon keeps for itself is not paused by hand.
        let may = kept_in(&queue.name).is_none() && visitor.may_manage(&queue.name).await;
        rows.push(row(&visitor, queue, of_queue, may));
    }
    let next = page.after.as_ref().map(|after| RequestPath::new("overview").query("after", Some(after)));
    let content = html! {
        (heading(html! { "Overview" }, count(page.queues.len(), "queues", &fields, next.is_some())))
        (figures(&visitor, &rates))
        @if rows.is_empty() {
            div.empty { p.big { "No queue yet." }
                p.quiet { "A queue comes with a definition file, or with " code { "PUT /v1/queues/{name}" } "." } }
        }
        ul.rows.queues aria-label="Queues" { @for row in &rows { (row) } }
        (more(next.map(|route| route.as_str().to_owned())))
    };
    Ok(Screen::live(Tab::Overview, "Overview", content).into())
}

fn figures(visitor: &Visitor, rates: &RatesView) -> Markup {
    let status = &visitor.status;
    html! {
        dl.figures {
            div.bad[visitor.blocked() > 0] { dt { "Blocked" } dd { a href="blocked" { (visitor.blocked()) } } }
            @for cause in [BlockedCause::Retry, BlockedCause::Held, BlockedCause::Gap] {
                div { dt { (labels::of_cause(cause).2) } dd { (visitor.status.blocked_for(None, Some(cause))) } }
            }
            div { dt { "Handlers at work" } dd { (status.handlers_running) } }
            @if let Some(commit) = rates.commit_ms_mean { div { dt { "Commit" } dd { (commit_time(commit)) } } }
            @if let Some(bytes) = status.file_bytes { div { dt { "Store" } dd { (size(bytes)) } } }
            @if let Some(free) = status.storage_free_bytes { div { dt { "Disk free" } dd { (size(free)) } } }
        }
    }
}

fn commit_time(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

fn row(visitor: &Visitor, queue: &QueueEnvelope, rates: Option<&QueueRatesView>, may: bool) -> Markup {
    let counts = &queue.counts;
    let blocked = visitor.status.blocked_for(Some(&queue.name), None);
    let place = |name: &str| RequestPath::new(name).query("queue", Some(&queue.name)).as_str().to_owned();
    let plan = |act: PageAction| ActionPlan::new(act).with("queue", &queue.name).with("back", "overview");
    html! {
        li.row.bad[blocked > 0] {
            div.main {
                p.title {
                    a href=(place("workflows")) { bdi.id { (visible(&queue.name, false)) } }
                    @if !queue.missing_partitions.is_empty() { " " (labels::chip("warn", "!", "partitions missing")) }
                    @if queue.paused == Some(true) { " " (labels::chip("warn", "\u{23f8}", "handlers paused")) }
                }
                @if let Some(rates) = rates { (spark(rates)) }
            }
            dl.facts {
                div { dt { "Waiting" } dd { (counts.waiting()) } }
                div { dt { "At work" } dd { (counts.locked) } }
                div.bad[blocked > 0] { dt { "Blocked" } dd { a href=(place("blocked")) { (blocked) } } }
                div { dt { "Deferred" } dd { (counts.deferred()) } }
                div.bad[counts.dead_lettered > 0] { dt { "Dead" } dd { a href=(place("dead-letters")) { (counts.dead_lettered) } } }
                div { dt { "Completed" } dd { (counts.completed) } }
            }
            @if may {
                div.buttons {
                    @match queue.paused {
                        Some(true) => (plan(PageAction::Unpause).button()),
                        Some(false) => (plan(PageAction::Pause).button()),
                        None => {}
                    }
                    a.button href=(place("tail")) { "Live tail" }
                    (plan(PageAction::PurgeQueue).button())
                }
            }
        }
    }
}

/// The last hour as two curves: what came, and what was completed.
fn spark(rates: &QueueRatesView) -> Markup {
    let max = rates.accepted.iter().chain(&rates.completed).copied().max().unwrap_or_default().max(1);
    let curve = |values: &[u64]| {
        let last = (values.len().max(2) - 1) as u64;
        let point =
            |(at, value): (usize, &u64)| format!("{},{}", at as u64 * 240 / last, 30 - value * 28 / max);
        values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
    };
    let (came, done): (u64, u64) = (rates.accepted.iter().sum(), rates.completed.iter().sum());
    let says = format!("Last hour: {came} came, {done} completed; at most {max} a minute");
    html! {
        div.spark {
            svg viewBox="0 0 240 32" preserveAspectRatio="none" role="img" aria-label=(says) {
                polyline.in points=(curve(&rates.accepted)) {}
                polyline.out points=(curve(&rates.completed)) {}
            }
            p.quiet { "last hour: " span.in { (came) " in" } ", " span.out { (done) " done" } }
        }
    }
}
