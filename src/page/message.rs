//! One message: its body, its headers, every attempt and what its handler wrote. Looking changes nothing.

use maud::Markup;
use maud::html;

use crate::api::AttemptEnvelope;
use crate::api::WireProperty;
use crate::api::foreign_text::visible;
use crate::api::views::MessageEnvelope;
use crate::api::views::MessageWord;
use crate::api::views::trace_id;
use crate::header::EDITED_AS;
use crate::header::ORIGINAL;
use crate::header::TRACE;
use crate::header::is_internal;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::body;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::present::Present;
use crate::page::present::lasted;
use crate::page::redact::BodyPreview;
use crate::page::redact::HIDDEN;
use crate::page::redact::Redaction;
use crate::page::text::cut;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let (queue, number) = fields.message();
    let message: MessageEnvelope =
        visitor.api.get(&RequestPath::queue(&queue).word("messages").data(number)).await?;
    let bytes = body::bytes_of(&message)?;
    let redaction = Redaction::of(&visitor, &queue).await?;
    let left = redaction.body(&bytes);
    let may = visitor.may_manage(&queue).await;
    let (tone, sign, word) = labels::of_message(message.status);
    let download = RequestPath::new("body").query("queue", Some(&queue)).query("number", Some(number));
    let content = html! {
        nav.crumbs aria-label="Where this is" {
            a href=(RequestPath::new("workflows").query("queue", Some(&queue)).as_str()) { (visible(&queue, false)) }
            @if let Some(id) = &message.workflow_id { (labels::workflow_link(&queue, id)) }
        }
        div.heading { h1 { "Message " (number) " " (labels::chip(tone, sign, word))
            @if let Some(until) = message.until { " " small { (visitor.present.show_both(until)) } } } }
        (dead(&message, visitor.present))
        (relation(&queue, &message))
        @if may { (buttons(&queue, &message, left == BodyPreview::All)) }
        @if message.ended.is_none() {
            section aria-labelledby="body" {
                div.heading { h2 #body { "Body" }
                    @if left == BodyPreview::All { div.buttons {
                        button.button type="button" data-copy-from="pre.body" hidden { "Copy" }
                        a.button href=(download.as_str()) download { "Download" } } } }
                @match &left {
                    BodyPreview::All => (body::block(&bytes, message.content_type.as_deref())),
                    BodyPreview::Some(left) => {
                        (body::block(left, message.content_type.as_deref()))
                        p.quiet { "Some of it is hidden, as the queue's definition says. The API hides nothing." }
                    }
                    BodyPreview::Nothing => p.quiet { "It is hidden: the queue's definition hides parts of its bodies, and this one is no JSON. \
                        The API hides nothing." },
                }
            }
        } @else { p.quiet { "It has ended; its headers and its body are gone." } }
        (attempts(&message.attempts, visitor.present))
        (headers(&visitor, &message, &redaction))
    };
    Ok(Screen::live(Tab::Workflows, format!("Message {number}"), content).into())
}

fn dead(message: &MessageEnvelope, present: Present) -> Markup {
    let Some(dead_letter) = &message.dead_letter else { return html! {} };
    html! {
        div.why.bad {
            p.lead { "Dead letter since " (present.show_both(dead_letter.at)) ": " strong { (visible(&dead_letter.reason, false)) } }
            @if !dead_letter.description.is_empty() { pre.error { (visible(&dead_letter.description, true)) } }
        }
    }
}

/// A message that is named by a property.
fn number_in(message: &MessageEnvelope, property: &str) -> Option<u64> {
    match message.properties.get(property) {
        Some(WireProperty::Integer(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn relation(queue: &str, message: &MessageEnvelope) -> Markup {
    let (edited, original) = (number_in(message, EDITED_AS), number_in(message, ORIGINAL));
    html! {
        @if let Some(edited) = edited.filter(|_| message.dead_letter.is_some()) {
            p { "It was edited and put back as message " (labels::message_link(queue, edited)) "; this is how it was." }
        }
        @if let Some(original) = original {
            p { "Its body was edited; the original is message " (labels::message_link(queue, original)) "." }
        }
    }
}

fn buttons(queue: &str, message: &MessageEnvelope, may_edit: bool) -> Markup {
    let plan = |act: PageAction| {
        let back = labels::message_place(queue, message.sequence_number);
        ActionPlan::new(act).with("queue", queue).with("number", message.sequence_number).with("back", back)
    };
    html! {
        @match message.status {
            MessageWord::DeadLettered => div.buttons role="group" aria-label="Actions" {
                @if number_in(message, EDITED_AS).is_none() {
                    (plan(PageAction::Redrive).button())
                    @if may_edit { @let place = RequestPath::new("edit").query("queue", Some(queue)).query("number", Some(message.sequence_number));
                    a.button href=(place.as_str()) { "Edit and redrive" } }
                } },
            MessageWord::Scheduled => div.buttons role="group" aria-label="Actions" {
                (plan(PageAction::Cancel).button()) (plan(PageAction::CancelAndVoid).button()) },
            _ => {}
        }
    }
}

fn attempts(attempts: &[AttemptEnvelope], present: Present) -> Markup {
    html! {
        section aria-labelledby="attempts" {
            h2 #attempts { "Failed attempts" }
            @if attempts.is_empty() { p.quiet { "None." } }
            ol.attempts {
                @for attempt in attempts.iter().rev() {
                    li.attempt {
                        p { strong { "Attempt " (attempt.delivery_count) } " " (present.show_both(attempt.at))
                            span.quiet { ", lasted " (lasted(attempt.lasted.0)) } }
                        pre.error { (visible(&attempt.reason, true)) }
                        @if !attempt.output.is_empty() { (output(attempt)) }
                    }
                }
            }
        }
    }
}

fn output(attempt: &AttemptEnvelope) -> Markup {
    let shown = visible(&attempt.output, true);
    let (text, is_whole) = cut(&shown, limits::SCREEN_OUTPUT_BYTES);
    html! {
        details open[attempt.output.len() < 400] {
            summary { "What its handler wrote"
                @if attempt.output_cut_bytes > 0 || !is_whole { span.quiet { ", its beginning" } } }
            pre.output tabindex="0" { (text) }
        }
    }
}

fn headers(visitor: &Visitor, message: &MessageEnvelope, redaction: &Redaction) -> Markup {
    let present = visitor.present;
    let texts = [
        ("Message ID", "message_id", &message.message_id),
        ("Follows", "after", &message.after),
        ("Subject", "subject", &message.subject),
        ("Content type", "content_type", &message.content_type),
        ("Correlation ID", "correlation_id", &message.correlation_id),
        ("Reply to", "reply_to", &message.reply_to),
    ];
    let trace = trace_of(visitor, message);
    html! {
        section aria-labelledby="headers" {
            h2 #headers { "Headers and properties" }
            dl.list {
                div { dt { "Accepted" } dd { (present.show_both(message.accepted_at)) } }
                @if let Some(position) = message.position { div { dt { "Position" } dd { (position) } } }
                div { dt { "Handed out" } dd { (message.delivery_count) " times" } }
                @if let Some(expires) = message.expires_at { div { dt { "Expires" } dd { (present.show_both(expires)) } } }
                @for (name, word, text) in texts {
                    @if let Some(text) = text { div { dt { (name) }
                        dd { @if redaction.hides_header(word) { (hidden()) } @else { (visible(text, false)) } } } }
                }
                @if let Some((id, place)) = trace {
                    div { dt { "Trace" } dd { a href=(place) rel="noreferrer" { (id) } } }
                }
                // What an endpoint keeps has in it again what the sender said, and so what is to be hidden.
                @for (name, value) in message.properties.iter().filter(|(name, _)| !is_internal(name)) {
                    div { dt { code { (visible(name, false)) } }
                        dd { @if redaction.hides_property(name) { (hidden()) } @else { (visible(&value.to_string(), true)) } } }
                }
            }
        }
    }
}

/// What stands for a value that is hidden.
fn hidden() -> Markup {
    html! { span.quiet title="hidden, as the definition of the queue says" { (HIDDEN) span.sr { " hidden" } } }
}

/// The ID of the message's trace, and where that can be looked at.
fn trace_of(visitor: &Visitor, message: &MessageEnvelope) -> Option<(String, String)> {
    let Some(WireProperty::Text(parent)) = message.properties.get(TRACE) else { return None };
    let place = visitor.status.trace_url.as_ref()?.of(parent)?;
    Some((trace_id(parent)?.to_owned(), place))
}
