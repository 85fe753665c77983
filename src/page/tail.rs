//! The live tail: the newest messages of a queue, and what happens from now on.

use maud::html;

use crate::api::foreign_text::visible;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let queue = fields.one("queue");
    let queues = visitor.queue_names(queue).await?;
    let stream = RequestPath::new("events").query("queue", queue);
    let content = html! {
        (heading(html! { "Live tail" }, html! { "what happens from now on" }))
        form.filter method="get" action="tail" {
            label for="queue" { "Queue" }
            select #queue name="queue" {
                option value="" { "every queue" }
                @for known in &queues {
                    option value=(known) selected[queue == Some(known.as_str())] { (visible(known, false)) } }
            }
            button.button type="submit" { "Listen" }
            button.button type="button" data-pause hidden { "Pause" }
        }
        noscript { p.notice.warn { "The live tail needs JavaScript; every other screen does without." } }
        div.scroll tabindex="0" role="region" aria-label="Events" {
            table {
                thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Queue" }
                    th scope="col" { "Workflow" } th scope="col" { "Message" } th scope="col" { "Why" } } }
                tbody #tail data-tail=(stream.as_str()) aria-live="off" {}
            }
        }
        p.quiet #tail-state role="status" { "Nothing yet." }
    };
    Ok(Screen::still(Tab::Tail, "Live tail", content).into())
}
