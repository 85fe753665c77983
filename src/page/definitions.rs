//! Definitions: which file each queue has, when it was loaded, and why the files as they are now are not in use.

use maud::html;

use crate::api::DefinitionPage;
use crate::api::foreign_text::visible;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::labels;
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
    let mut page: DefinitionPage = visitor.api.get(&RequestPath::new("/v1/definitions")).await?;
    let part = ScreenPart::of(
        &mut page.definitions,
        |row| row.queue.clone(),
        RequestPath::new("definitions"),
        &fields,
    );
    let content = html! {
        (heading(html! { "Definitions" }, html! {
            @if visitor.may_manage_all() { (ActionPlan::new(PageAction::Reload).with("back", "definitions").button()) } }))
        @if let Some(problem) = &page.problem {
            div.notice.bad { p { strong { "The files as they are now are not in use. " } "The last valid set is." }
                pre tabindex="0" { (visible(problem, true)) } }
        }
        @if part.all == 0 { div.empty { p.big { "No definitions." } } }
        ul.rows aria-label="Definitions" {
            @for definition in part.rows {
                li.row.calm {
                    div.main {
                        p.title {
                            a href=(RequestPath::new("workflows").query("queue", Some(&definition.queue)).as_str()) {
                                bdi.id { (visible(&definition.queue, false)) } }
                            @if definition.paused { " " (labels::chip("warn", "\u{23f8}", "paused")) }
                        }
                        p { code { (visible(&definition.file, false)) } }
                        @if let Some(held) = &definition.held_back {
                            p.error { "Nothing is handed out until " (visitor.present.show(held.until))
                                @if let Some(reason) = &held.reason { ": " (visible(reason, false)) } }
                        }
                        @if let Some(problem) = definition.source.as_ref().and_then(|source| source.problem.as_ref()) {
                            p.error { (visible(problem, false)) }
                        }
                    }
                    dl.facts {
                        @if let Some(source) = &definition.source {
                            div { dt { "Copied from" } dd { code { (visible(&source.table, false)) }
                                @if let Some(row) = source.copied_through { " through row " (row) } } }
                            div { dt { "Rows behind" } dd { (source.rows_behind) @if source.more_behind { " or more" }
                                @if source.waits_for_transactions > 0 {
                                    ", held back by " (source.waits_for_transactions) " open transactions" } } }
                        }
                        div { dt { "Handlers" } dd { @if definition.handlers.is_empty() { "none" }
                            @else { (visible(&definition.handlers.join(", "), false)) } } }
                        div { dt { "Schedules" } dd { (definition.schedules) } }
                        div { dt { "Loaded" } dd { (visitor.present.show(definition.loaded_at)) } }
                    }
                }
            }
        }
        (more(part.next))
    };
    Ok(Screen::live(Tab::Definitions, "Definitions", content).into())
}
