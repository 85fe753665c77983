//! The audit: who did what, to what, why, and how much it changed; newest first.

use maud::html;

use crate::api::AuditPage;
use crate::api::foreign_text::visible;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::layout::scrolling_table;
use crate::page::text::brief;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let route = RequestPath::new("/v1/audit").query("newest", Some(true)).query("after", fields.one("after"));
    let page: AuditPage = visitor.api.get(&route.query("limit", Some(limits::SCREEN_ROWS))).await?;
    let next = page
        .after
        .as_ref()
        .map(|after| RequestPath::new("audit").query("after", Some(after)).as_str().to_owned());
    let content = html! {
        (heading(html! { "Audit" }, html! { "newest first" }))
        @if page.actions.is_empty() { div.empty { p.big { "Nobody has done anything yet." } } }
        @else {
            (scrolling_table("What operators did", &html! {
                th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" }
                th scope="col" { "To what" } th.number scope="col" { "How many" } th scope="col" { "Why" }
            }, &html! {
                @for action in &page.actions {
                    tr {
                        td { (visitor.present.show(action.at)) }
                        td { (visible(&action.actor, false)) }
                        td { code { (action.verb) }
                            @if let Some(refusal) = &action.refusal { " " (labels::chip("warn", "\u{2298}", "refused"))
                                " " span.quiet { (brief(refusal, 100)) } } }
                        td { (visible(&action.queue, false))
                            @if let Some(id) = &action.workflow_id { " " (labels::workflow_link(&action.queue, id)) }
                            @if let Some(number) = action.sequence_number { " " (labels::message_link(&action.queue, number)) } }
                        td.number { (action.count) }
                        td { @if let Some(reason) = &action.reason { (brief(reason, 160)) } }
                    }
                }
            }))
        }
        (more(next))
    };
    Ok(Screen::live(Tab::Audit, "Audit", content).into())
}
