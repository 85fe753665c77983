//! The messages of a queue, found by a property or a header.

use maud::Markup;
use maud::html;

use crate::api::MessagePage;
use crate::api::foreign_text::visible;
use crate::api::views::MessageEnvelope;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::layout::scrolling_table;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// Headers by which a message is found, each with its name in the API and for people.
const HEADERS: [(&str, &str); 3] =
    [("message_id", "Message ID"), ("subject", "Subject"), ("correlation_id", "Correlation ID")];

/// What is looked for.
#[derive(Default)]
struct Sought<'a> {
    queue: &'a str,
    /// A header of the table, or nothing for a property.
    by: &'a str,
    name: &'a str,
    value: &'a str,
}

impl<'a> Sought<'a> {
    fn read(fields: &'a FormFields) -> Sought<'a> {
        let text = |name: &str| fields.one(name).unwrap_or_default();
        Sought { queue: text("queue"), by: text("by"), name: text("name"), value: text("value") }
    }

    /// Whether there is something to look for.
    fn is_whole(&self) -> bool {
        !self.queue.is_empty() && (self.is_by_header() || !self.name.is_empty())
    }

    fn is_by_header(&self) -> bool {
        HEADERS.iter().any(|(word, _)| *word == self.by)
    }

    fn route(&self, from: Option<u64>) -> RequestPath {
        let route = RequestPath::queue(self.queue).word("messages").query("from", from);
        match HEADERS.iter().find(|(word, _)| *word == self.by) {
            Some((word, _)) => route.query(word, Some(self.value)),
            None => route.query("property", Some(format!("{}={}", self.name, self.value))),
        }
    }

    fn place(&self, from: u64) -> String {
        let route = RequestPath::new("messages").query("queue", Some(self.queue)).query("by", Some(self.by));
        let route = route.query("name", Some(self.name)).query("value", Some(self.value));
        route.query("from", Some(from)).as_str().to_owned()
    }
}

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let sought = Sought::read(&fields);
    let mut page = MessagePage { from: fields.number("from"), ..MessagePage::default() };
    if sought.is_whole() {
        for _ in 0..limits::SCREEN_LOOKS {
            let left = limits::SCREEN_ROWS - page.messages.len();
            let next: MessagePage =
                visitor.api.get(&sought.route(page.from).query("limit", Some(left))).await?;
            page.messages.extend(next.messages);
            page.from = next.from;
            if page.from.is_none() || page.messages.len() >= limits::SCREEN_ROWS {
                break;
            }
        }
    }
    let next = page.from.filter(|_| sought.is_whole());
    let content = html! {
        nav.crumbs aria-label="Where this is" {
            a href=(RequestPath::new("workflows").query("queue", Some(sought.queue)).as_str()) { (visible(sought.queue, false)) } }
        (heading(html! { "Messages" }, html! { (page.messages.len()) @if next.is_some() { " on this page" } }))
        (form(sought.queue, &sought))
        @if page.messages.is_empty() {
            div.empty { p { @if next.is_some() { "None among those looked at so far; there are more." }
                @else { "There is no such message." } } }
        } @else { (table(&visitor, sought.queue, &page.messages)) }
        (more(next.map(|from| sought.place(from))))
    };
    Ok(Screen::still(Tab::Workflows, "Messages", content).into())
}

/// The form with which messages of a queue are looked for.
pub(crate) fn empty_form(queue: &str) -> Markup {
    form(queue, &Sought::default())
}

fn form(queue: &str, sought: &Sought<'_>) -> Markup {
    html! {
        form.filter method="get" action="messages" role="search" aria-label="Messages" {
            input type="hidden" name="queue" value=(queue);
            label for="by" { "Messages with" }
            select #by name="by" {
                option value="" { "the property" }
                @for (word, name) in HEADERS { option value=(word) selected[sought.by == word] { (name) } }
            }
            label for="name" { span.sr { "Name of the property" } }
            input #name type="search" name="name" value=(sought.name) placeholder="name of a property";
            label for="value" { "is" }
            input #value type="search" name="value" value=(sought.value);
            button.button type="submit" { "Find" }
        }
    }
}

fn table(visitor: &Visitor, queue: &str, messages: &[MessageEnvelope]) -> Markup {
    html! {
        (scrolling_table("Messages", &html! {
            th scope="col" { "Message" } th scope="col" { "Workflow" } th scope="col" { "Status" }
            th scope="col" { "Came" } th.number scope="col" { "Tried" }
        }, &html! {
            @for message in messages {
                @let (tone, sign, word) = labels::of_message(message.status);
                tr {
                    td { (labels::message_link(queue, message.sequence_number)) }
                    td { @if let Some(id) = &message.workflow_id { (labels::workflow_link(queue, id)) } }
                    td { (labels::chip(tone, sign, word)) }
                    td { (visitor.present.show(message.accepted_at)) }
                    td.number { (message.delivery_count) }
                }
            }
        }))
    }
}
