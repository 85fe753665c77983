//! Words for what a workflow or a message does, each with a colour and a sign, so that none depends on colour alone.

use maud::Markup;
use maud::html;

use crate::api::foreign_text::visible;
use crate::api::views::BlockedCause;
use crate::api::views::BlockedView;
use crate::api::views::EndingWord;
use crate::api::views::MessageWord;
use crate::api::views::NextAction;
use crate::api::views::WorkflowWord;
use crate::page::present::Present;
use crate::queue::HoldKind;
use crate::remote::RequestPath;

/// How urgent something is; the name of a colour in the stylesheet.
pub(crate) type Tone = &'static str;

/// A word in a coloured frame, with a sign.
pub(crate) fn chip(tone: Tone, sign: &str, word: &str) -> Markup {
    html! { span.chip.(tone) { span.sign aria-hidden="true" { (sign) } (word) } }
}

/// Tone, sign and word of why a workflow does not go on.
pub(crate) fn of_cause(cause: BlockedCause) -> (Tone, &'static str, &'static str) {
    match cause {
        BlockedCause::Retry => ("bad", "\u{21bb}", "retry"),
        BlockedCause::Deferred => ("calm", "\u{23f8}", "set aside"),
        BlockedCause::Gap => ("warn", "\u{25cc}", "gap"),
        BlockedCause::Held => ("bad", "\u{25a0}", "held"),
        BlockedCause::Locked => ("busy", "\u{25b6}", "locked"),
        BlockedCause::TooLarge => ("warn", "\u{2b06}", "too large"),
        BlockedCause::RateLimited => ("calm", "\u{2261}", "rate limited"),
        BlockedCause::PrefetchWindow => ("warn", "\u{2261}", "prefetch window"),
        BlockedCause::CannotStart => ("bad", "\u{2716}", "cannot start"),
    }
}

pub(crate) fn cause(cause: BlockedCause) -> Markup {
    let (tone, sign, word) = of_cause(cause);
    chip(tone, sign, word)
}

pub(crate) fn workflow(status: WorkflowWord) -> Markup {
    let (tone, sign, word) = match status {
        WorkflowWord::Ready => ("good", "\u{2192}", "ready"),
        WorkflowWord::Locked => ("busy", "\u{25b6}", "locked"),
        WorkflowWord::Blocked => ("bad", "\u{21bb}", "blocked"),
        WorkflowWord::Scheduled => ("calm", "\u{29d6}", "scheduled"),
        WorkflowWord::WaitingForPredecessor => ("warn", "\u{25cc}", "waiting for its predecessor"),
        WorkflowWord::Held => ("bad", "\u{25a0}", "held"),
        WorkflowWord::Idle => ("calm", "\u{2713}", "idle"),
        WorkflowWord::Ended => ("calm", "\u{2713}", "ended"),
    };
    chip(tone, sign, word)
}

/// Tone, sign and word of where a message is in its life.
pub(crate) fn of_message(status: MessageWord) -> (Tone, &'static str, &'static str) {
    match status {
        MessageWord::Ready => ("calm", "\u{2026}", "waits"),
        MessageWord::Locked => ("busy", "\u{25b6}", "being handled"),
        MessageWord::Early => ("warn", "\u{21e4}", "early"),
        MessageWord::Retry | MessageWord::Exhausted => ("bad", "\u{2716}", "failed"),
        MessageWord::ByConsumer => ("calm", "\u{23f8}", "set aside"),
        MessageWord::Scheduled => ("calm", "\u{29d6}", "scheduled"),
        MessageWord::DeadLettered => ("bad", "\u{2020}", "dead letter"),
        MessageWord::Ended => ("good", "\u{2713}", "ended"),
    }
}

/// Tone, sign and word of how a message has ended.
pub(crate) fn of_ending(ending: EndingWord) -> (Tone, &'static str, &'static str) {
    match ending {
        EndingWord::Completed => ("good", "\u{2713}", "completed"),
        EndingWord::Expired => ("warn", "\u{29d6}", "expired"),
        EndingWord::Cancelled => ("calm", "\u{2298}", "cancelled"),
        EndingWord::Purged => ("warn", "\u{2298}", "purged"),
        EndingWord::Redriven => ("calm", "\u{21bb}", "redriven"),
        _ => ("warn", "\u{25cc}", "given up"),
    }
}

pub(crate) fn hold(word: HoldKind) -> &'static str {
    match word {
        HoldKind::Operator => "an operator asked for it",
        HoldKind::Exhausted => "the retries are exhausted",
        HoldKind::Gap => "a predecessor has not come in time",
        HoldKind::Predecessor => "a predecessor was not completed",
        HoldKind::Quarantine => "quarantined: the retries of a message were exhausted",
        HoldKind::Redriving => "its dead letters are being put back",
    }
}

/// What happens next by itself, and when.
pub(crate) fn next(row: &BlockedView, present: Present) -> Markup {
    let what = match row.next_action {
        NextAction::Retry => "Tried again",
        NextAction::Hold => "Will be held",
        NextAction::SkipGap => "The gap is given up",
        NextAction::Alarm => "An alarm is raised",
        NextAction::Unlock => "The lock runs out",
        NextAction::HandOut => "Hand-out goes on",
        NextAction::Resume | NextAction::Nothing => return html! { (sentence(&row.next)) },
    };
    html! { (what) " " @match row.next_at {
        Some(at) => (present.show_both(at)),
        None => "when the workflow comes to it",
    } }
}

/// A sentence of the API, with a capital at its beginning.
pub(crate) fn sentence(text: &str) -> String {
    let text = visible(text, true);
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => text,
    }
}

/// The place of a workflow's screen.
pub(crate) fn workflow_place(queue: &str, id: &str) -> String {
    RequestPath::new("workflow").query("queue", Some(queue)).query("id", Some(id)).as_str().to_owned()
}

/// The place of a message's screen.
pub(crate) fn message_place(queue: &str, number: u64) -> String {
    RequestPath::new("message").query("queue", Some(queue)).query("number", Some(number)).as_str().to_owned()
}

/// A link to a workflow.
pub(crate) fn workflow_link(queue: &str, id: &str) -> Markup {
    html! { a href=(workflow_place(queue, id)) { bdi.id { (visible(id, false)) } } }
}

/// A link to a message.
pub(crate) fn message_link(queue: &str, number: u64) -> Markup {
    html! { a href=(message_place(queue, number)) { "#" (number) } }
}
