//! One message: its body, its headers, every attempt and what its handler wrote. Looking changes nothing.

use maud::Markup;
use maud::html;

use crate::limits;
use crate::page::body;
use crate::page::fields::Fields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::plan::Act;
use crate::page::plan::Plan;
use crate::page::present::Present;
use crate::page::present::lasted;
use crate::page::routes::Seen;
use crate::page::text::cut;
use crate::page::text::visible;
use crate::page::visitor::Visit;
use crate::remote::Route;
use crate::wire::AttemptEnvelope;
use crate::wire::WireProperty;
use crate::wire::views::MessageEnvelope;
use crate::wire::views::MessageWord;

/// The screen.
pub(crate) async fn screen(visitor: Visit, fields: Fields) -> Seen {
    let (queue, number) =
        (fields.text("queue").unwrap_or_default(), fields.number("number").unwrap_or_default());
    let message: MessageEnvelope =
        visitor.api.get(&Route::queue(&queue).word("messages").data(number)).await?;
    let bytes = body::bytes_of(&message)?;
    let may = visitor.may_manage(&queue).await;
    let (tone, sign, word) = labels::of_message(message.status);
    let download = Route::new("body").query("queue", Some(&queue)).query("number", Some(number));
    let content = html! {
        nav.crumbs aria-label="Where this is" {
            a href=(Route::new("workflows").query("queue", Some(&queue)).as_str()) { (visible(&queue, false)) }
            @if let Some(id) = &message.workflow_id { (labels::workflow_link(&queue, id)) }
        }
        div.heading { h1 { "Message " (number) " " (labels::chip(tone, sign, word))
            @if let Some(until) = message.until { " " small { (visitor.present.show_both(until)) } } } }
        (dead(&message, visitor.present))
        @if may { (buttons(&queue, &message)) }
        @if message.ended.is_none() {
            section aria-labelledby="body" {
                div.heading { h2 #body { "Body" }
                    div.buttons { button.button type="button" data-copy-from="pre.body" hidden { "Copy" }
                        a.button href=(download.as_str()) download { "Download" } } }
                (body::block(&bytes, message.content_type.as_deref()))
            }
        } @else { p.quiet { "It has ended; its headers and its body are gone." } }
        (attempts(&message.attempts, visitor.present))
        (headers(&message, visitor.present))
    };
    Ok(Screen::live(Tab::Workflows, format!("Message {number}"), content).into())
}

fn dead(message: &MessageEnvelope, present: Present) -> Markup {
    let Some(letter) = &message.dead_letter else { return html! {} };
    html! {
        div.why.bad {
            p.lead { "Dead letter since " (present.show_both(letter.at)) ": " strong { (visible(&letter.reason, false)) } }
            @if !letter.description.is_empty() { pre.error { (visible(&letter.description, true)) } }
        }
    }
}

fn buttons(queue: &str, message: &MessageEnvelope) -> Markup {
    let plan = |act: Act| {
        let back = labels::message_place(queue, message.sequence_number);
        Plan::new(act).with("queue", queue).with("number", message.sequence_number).with("back", back)
    };
    html! {
        @match message.status {
            MessageWord::DeadLettered => div.buttons role="group" aria-label="Actions" { (plan(Act::Redrive).button()) },
            MessageWord::Scheduled => div.buttons role="group" aria-label="Actions" {
                (plan(Act::Cancel).button()) (plan(Act::CancelAndVoid).button()) },
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

fn headers(message: &MessageEnvelope, present: Present) -> Markup {
    let texts = [
        ("Message ID", &message.message_id),
        ("Follows", &message.after),
        ("Subject", &message.subject),
        ("Content type", &message.content_type),
        ("Correlation ID", &message.correlation_id),
        ("Reply to", &message.reply_to),
    ];
    html! {
        section aria-labelledby="headers" {
            h2 #headers { "Headers and properties" }
            dl.list {
                div { dt { "Accepted" } dd { (present.show_both(message.accepted_at)) } }
                @if let Some(position) = message.position { div { dt { "Position" } dd { (position) } } }
                div { dt { "Handed out" } dd { (message.delivery_count) " times" } }
                @if let Some(expires) = message.expires_at { div { dt { "Expires" } dd { (present.show_both(expires)) } } }
                @for (name, text) in texts {
                    @if let Some(text) = text { div { dt { (name) } dd { (visible(text, false)) } } }
                }
                @for (name, value) in &message.properties {
                    div { dt { code { (visible(name, false)) } } dd { (visible(&property(value), true)) } }
                }
            }
        }
    }
}

fn property(value: &WireProperty) -> String {
    match value {
        WireProperty::Boolean(value) => value.to_string(),
        WireProperty::Integer(value) => value.to_string(),
        WireProperty::Float(value) => value.to_string(),
        WireProperty::Text(value) => value.clone(),
        WireProperty::Binary { base64 } => format!("bytes, as base64: {base64}"),
    }
}
