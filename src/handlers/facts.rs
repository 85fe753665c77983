//! What whoever handles a message is told of it beside its body, its properties and its trace.

use crate::api::WireTime;
use crate::engine::ReceivedMessage;
use crate::processor::Context;

/// What is known of a message: the variable of a program and the header of a post that say it, and its text.
/// `by_position` says whether its queue is ordered by position.
pub(crate) fn facts(
    context: &Context,
    by_position: bool,
) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let message = context.message();
    let headers = &message.headers;
    let facts = [
        ("SERIATIM_QUEUE", "seriatim-queue", Some(context.queue().name().to_string())),
        ("SERIATIM_WORKFLOW", "seriatim-workflow-id", message.workflow_id.as_ref().map(ToString::to_string)),
        (
            "SERIATIM_POSITION",
            "seriatim-position",
            (by_position && message.has_workflow()).then(|| message.rank.to_string()),
        ),
        ("SERIATIM_SEQUENCE_NUMBER", "seriatim-sequence-number", Some(message.sequence_number.to_string())),
        ("SERIATIM_MESSAGE_ID", "seriatim-message-id", message.message_id.as_ref().map(ToString::to_string)),
        ("SERIATIM_SUBJECT", "seriatim-subject", headers.subject.clone()),
        ("SERIATIM_CORRELATION_ID", "seriatim-correlation-id", headers.correlation_id.clone()),
        ("SERIATIM_REPLY_TO", "seriatim-reply-to", headers.reply_to.clone()),
        ("SERIATIM_DELIVERY_COUNT", "seriatim-delivery-count", Some(message.delivery_count.to_string())),
        ("SERIATIM_ACCEPTED_AT", "seriatim-accepted-at", Some(WireTime(message.accepted_at).to_string())),
        ("SERIATIM_LOCK_TOKEN", "seriatim-lock-token", Some(context.lock_token().to_string())),
    ];
    facts.into_iter().filter_map(|(variable, header, text)| Some((variable, header, text?)))
}

/// The number of a message, and when it was accepted: after a backup was restored, another message may have the number.
pub(crate) fn lasting_number(message: &ReceivedMessage) -> String {
    format!("{}_{}", message.sequence_number, message.accepted_at.as_millis())
}
