//! Schedules: when each sends next, when it has sent last, and sending once now.

use maud::html;

use crate::api::SchedulePage;
use crate::api::foreign_text::visible;
use crate::api::views::ScheduleView;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::part::ScreenPart;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let mut page: SchedulePage = visitor.api.get(&RequestPath::new("/v1/schedules")).await?;
    let mut rows: Vec<(&ScheduleView, bool)> = Vec::new();
    // Names of queues have no line breaks, which come before all that they have: the order is that of queue and name.
    let name = |row: &ScheduleView| format!("{}\n{}", row.queue, row.name);
    let part = ScreenPart::of(&mut page.schedules, name, RequestPath::new("schedules"), &fields);
    for schedule in part.rows {
        rows.push((schedule, visitor.may_manage(&schedule.queue).await));
    }
    let content = html! {
        (heading(html! { "Schedules" }, html! { (part.all) }))
        @if part.all == 0 { div.empty { p.big { "No schedules." } p.quiet { "A definition file can have some." } } }
        ul.rows aria-label="Schedules" {
            @for (schedule, may) in &rows {
                li.row.calm {
                    div.main {
                        p.title { strong { (visible(&schedule.name, false)) } " "
                            span.quiet { "to " (visible(&schedule.queue, false)) } }
                        p { code { (visible(&schedule.cron, false)) } " " span.quiet { (visible(&schedule.time_zone, false)) } }
                    }
                    dl.facts {
                        div { dt { "Last" } dd { @match schedule.last { Some(last) => (visitor.present.show(last)), None => "never" } } }
                        div { dt { "Next" } dd { @match schedule.next.first() {
                            Some(next) => (visitor.present.show_both(*next)), None => "never" } } }
                    }
                    @if *may { div.buttons {
                        (ActionPlan::new(PageAction::RunNow).with("queue", &schedule.queue).with("schedule", &schedule.name)
                            .with("back", "schedules").button()) } }
                    details.wide {
                        summary { "The next " (schedule.next.len()) }
                        ol { @for next in &schedule.next { li { (visitor.present.show_both(*next)) } } }
                    }
                }
            }
        }
        (more(part.next))
    };
    Ok(Screen::live(Tab::Schedules, "Schedules", content).into())
}
