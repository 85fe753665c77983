//! What is stuck: each workflow that does not go on, why, since when, what waits behind it, and what happens next.

use maud::Markup;
use maud::html;

use crate::api::BlockedPage;
use crate::api::foreign_text::visible;
use crate::api::views::BlockedCause;
use crate::api::views::BlockedView;
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
use crate::page::plan::pick_field;
use crate::page::text::brief;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// What is asked for: it stands in the URL, so that it can be sent to somebody.
struct BlockedFilter {
    queue: Option<String>,
    cause: Option<String>,
    text: Option<String>,
    after: Option<String>,
}

impl BlockedFilter {
    fn read(fields: &FormFields) -> BlockedFilter {
        let text = |name| fields.text(name);
        BlockedFilter { queue: text("queue"), cause: text("cause"), text: text("text"), after: text("after") }
    }

    /// The place of this screen, with another page or another cause.
    fn place(&self, cause: Option<&str>, after: Option<&str>) -> String {
        let route = RequestPath::new("blocked").query("queue", self.queue.as_deref()).query("cause", cause);
        route.query("text", self.text.as_deref()).query("after", after).as_str().to_owned()
    }

    fn here(&self) -> String {
        self.place(self.cause.as_deref(), self.after.as_deref())
    }

    fn is_narrow(&self) -> bool {
        self.queue.is_some() || self.cause.is_some() || self.text.is_some()
    }
}

/// The causes by which one can filter.
const CAUSES: [BlockedCause; 5] = [
    BlockedCause::Retry,
    BlockedCause::Held,
    BlockedCause::Gap,
    BlockedCause::Deferred,
    BlockedCause::Locked,
];

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let filter = BlockedFilter::read(&fields);
    let found = find(&visitor, &filter).await?;
    let queues = visitor.queue_names(filter.queue.as_deref()).await?;
    let mut manages = Vec::new();
    for row in &found.blocked {
        if !manages.iter().any(|(queue, _)| *queue == row.queue) {
            manages.push((row.queue.clone(), visitor.may_manage(&row.queue).await));
        }
    }
    let may = |queue: &str| manages.iter().any(|(known, may)| known == queue && *may);
    let content = html! {
        (heading(html! { "Blocked" }, html! { (how_many(&visitor, &filter, &found)) }))
        (filters(&filter, &queues))
        @if found.blocked.is_empty() { (nothing(&filter, found.after.is_some())) }
        @else { (rows(&visitor, &filter, &found.blocked, &may)) }
        (more(found.after.as_deref().map(|after| filter.place(filter.cause.as_deref(), Some(after)))))
    };
    Ok(Screen::live(Tab::Blocked, "Blocked", content).into())
}

/// The rows of a screen: where few of many workflows are stuck, a page of the API may be empty with more behind it.
async fn find(visitor: &Visitor, filter: &BlockedFilter) -> Result<BlockedPage, ApiRefusal> {
    let mut page = BlockedPage { blocked: Vec::new(), after: filter.after.clone() };
    for _ in 0..limits::SCREEN_LOOKS {
        let route = RequestPath::new("/v1/blocked").query("queue", filter.queue.as_deref());
        let route = route.query("cause", filter.cause.as_deref()).query("reason", filter.text.as_deref());
        let left = limits::SCREEN_ROWS - page.blocked.len();
        let route = route.query("after", page.after.as_deref()).query("limit", Some(left));
        let next: BlockedPage = visitor.api.get(&route).await?;
        page.blocked.extend(next.blocked);
        page.after = next.after;
        if page.after.is_none() || page.blocked.len() >= limits::SCREEN_ROWS {
            break;
        }
    }
    Ok(page)
}

fn how_many(visitor: &Visitor, filter: &BlockedFilter, found: &BlockedPage) -> Markup {
    let (shown, all) = (found.blocked.len() as u64, visitor.blocked());
    let is_all = filter.after.is_none() && found.after.is_none();
    html! {
        @if is_all { (shown) " here" } @else if !filter.is_narrow() && all > shown { (shown) " of " (all) }
        @else { (shown) " on this page" }
    }
}

fn filters(filter: &BlockedFilter, queues: &[String]) -> Markup {
    html! {
        nav.tabs aria-label="Cause" {
            a href=(filter.place(None, None)) aria-current=[filter.cause.is_none().then_some("true")] { "All" }
            @for cause in CAUSES {
                @let is_here = filter.cause.as_deref() == Some(cause.as_str());
                a href=(filter.place(Some(cause.as_str()), None)) aria-current=[is_here.then_some("true")] {
                    (labels::of_cause(cause).2)
                }
            }
        }
        form.filter method="get" action="blocked" role="search" {
            @if let Some(cause) = &filter.cause { input type="hidden" name="cause" value=(cause); }
            label for="queue" { "Queue" }
            select #queue name="queue" {
                option value="" { "every queue" }
                @for queue in queues {
                    option value=(queue) selected[filter.queue.as_ref() == Some(queue)] { (visible(queue, false)) }
                }
            }
            label for="text" { "Error" }
            input #text type="search" name="text" value=[filter.text.as_deref()] placeholder="text in the last error" data-key="/";
            button.button type="submit" { "Filter" }
        }
    }
}

fn nothing(filter: &BlockedFilter, is_more: bool) -> Markup {
    html! {
        div.empty {
            @if is_more { p { "Nothing among the workflows looked at so far; there are more." } }
            @else if filter.is_narrow() || filter.after.is_some() {
                p { "Nothing stands still that this finds." } p { a href="blocked" { "See everything" } }
            }
            @else { p.big { "Nothing is stuck." } p.quiet { "Every workflow goes on. What gets stuck is here within a second." } }
        }
    }
}

fn rows(
    visitor: &Visitor,
    filter: &BlockedFilter,
    rows: &[BlockedView],
    may: &dyn Fn(&str) -> bool,
) -> Markup {
    let is_manager = rows.iter().any(|row| may(&row.queue));
    html! {
        form #selection method="post" action="review" {
            input type="hidden" name="form_token" value=(visitor.form_token);
            input type="hidden" name="back" value=(filter.here());
            @if is_manager { (selection_bar(filter, may)) }
            ul.rows.blocked aria-label="Workflows that do not go on" {
                @for row in rows { (show(visitor, filter, row, may(&row.queue))) }
            }
        }
    }
}

/// What can be done to the selected rows, and to all that the filter finds.
fn selection_bar(filter: &BlockedFilter, may: &dyn Fn(&str) -> bool) -> Markup {
    let acts = [
        PageAction::Retry,
        PageAction::Resume,
        PageAction::Skip,
        PageAction::SkipGap,
        PageAction::Hold,
        PageAction::ReleaseLock,
    ];
    html! {
        div.bulk role="group" aria-label="Actions" {
            label.check { input type="checkbox" data-all="pick"; " All on this page" }
            span.quiet data-picked { "Selected:" }
            @for act in acts {
                button.button.loss[act.is_loss()] type="submit" name="do" value=(act.word()) { (act.name()) }
            }
        }
        @if let Some(queue) = filter.queue.as_deref().filter(|queue| may(queue)) {
            div.bulk role="group" aria-label="Actions on everything the filter finds" {
                span.quiet { "Everything the filter finds in " (visible(queue, false)) ":" }
                @for act in acts { @if is_of_cause(act, filter.cause.as_deref()) { (whole(act, queue, filter).button()) } }
            }
        }
    }
}

/// Whether an act helps against a cause.
fn is_of_cause(act: PageAction, cause: Option<&str>) -> bool {
    match cause {
        None => act != PageAction::ReleaseLock,
        Some(cause) => act.causes().iter().any(|known| known.as_str() == cause),
    }
}

fn whole(act: PageAction, queue: &str, filter: &BlockedFilter) -> ActionPlan {
    let mut plan = ActionPlan::new(act).with("queue", queue);
    for (name, value) in [("cause", &filter.cause), ("text", &filter.text)] {
        if let Some(value) = value {
            plan = plan.with(name, value);
        }
    }
    plan.with("back", filter.place(filter.cause.as_deref(), None))
}

fn show(visitor: &Visitor, filter: &BlockedFilter, row: &BlockedView, may: bool) -> Markup {
    let (tone, ..) = labels::of_cause(row.cause);
    html! {
        li.row.(tone) id=(row_id(row)) {
            @if let Some(id) = &row.workflow_id {
                @if may {
                    label.check { input type="checkbox" name="pick" value=(pick_field(&row.queue, id));
                        span.sr { "Select " (visible(id, false)) } }
                }
            }
            div.main {
                p.title {
                    @match &row.workflow_id {
                        Some(id) => (labels::workflow_link(&row.queue, id)),
                        None => span.id { "messages without a workflow" },
                    }
                    " " (labels::cause(row.cause)) " "
                    span.quiet { "in " (visible(&row.queue, false)) }
                }
                @if let Some(error) = error(row) { p.error title=(visible(error, true)) { (brief(error, 200)) } }
                p.next { (labels::next(row, visitor.present)) }
            }
            dl.facts {
                div { dt { "Since" } dd { @match row.since { Some(since) => (visitor.present.show(since)), None => "\u{2013}" } } }
                div { dt { "Waiting" } dd { (row.waiting) } }
                @if let Some(number) = row.sequence_number {
                    div { dt { "Message" } dd { (labels::message_link(&row.queue, number))
                        @if let Some(count) = row.delivery_count.filter(|count| *count > 0) { span.quiet { " \u{d7}" (count) } } } }
                }
                @if let Some(missing) = row.first_missing { div { dt { "Missing" } dd { (missing) } } }
            }
            @if let Some(id) = row.workflow_id.as_deref().filter(|_| may) {
                div.buttons { @for act in helpful(row.cause) {
                    (single(*act, row, id).with("back", filter.here()).button())
                } }
            }
        }
    }
}

/// An act on the workflow of a row; what is missing is known, so that nobody has to type it.
fn single(act: PageAction, row: &BlockedView, id: &str) -> ActionPlan {
    let plan = ActionPlan::new(act).with("queue", &row.queue).with("id", id);
    match (act, row.first_missing, row.first_waiting) {
        (PageAction::Void, Some(from), Some(waiting)) => plan.with("from", from).with("to", waiting - 1),
        _ => plan,
    }
}

/// What keeps a row the same when the list is drawn again.
fn row_id(row: &BlockedView) -> String {
    let text = format!("{}/{}", row.queue, row.workflow_id.as_deref().unwrap_or_default());
    let characters = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("_{other:02x}"),
    });
    format!("row-{}", characters.collect::<String>())
}

fn error(row: &BlockedView) -> Option<&str> {
    row.last_error.as_deref().or(row.hold_reason.as_deref()).filter(|error| !error.is_empty())
}

/// What helps against a cause, the most likely first.
pub(crate) fn helpful(cause: BlockedCause) -> &'static [PageAction] {
    match cause {
        BlockedCause::Retry | BlockedCause::Deferred => {
            &[PageAction::Retry, PageAction::Skip, PageAction::Hold]
        }
        BlockedCause::Held => &[PageAction::Resume, PageAction::Skip],
        BlockedCause::Gap => &[PageAction::SkipGap, PageAction::Void, PageAction::Hold],
        BlockedCause::Locked => &[PageAction::ReleaseLock, PageAction::Hold],
        BlockedCause::TooLarge => &[PageAction::Skip],
        _ => &[PageAction::Hold],
    }
}
