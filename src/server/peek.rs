//! Looking at messages, which changes nothing, and cancelling or rescheduling scheduled ones.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::MessageView;
use crate::id::SequenceNumber;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::answer::no_content;
use crate::server::behalf::acting_as;
use crate::server::caller::Caller;
use crate::server::named::Asked;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::page::page_limit;
use crate::server::search::Wanted;
use crate::server::search::search;
use crate::server::shared::Shared;
use crate::wire::WireTime;
use crate::wire::views::MessageEnvelope;

/// Which messages.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PeekQuery {
    /// The first sequence number; from the start if it is not given.
    from: u64,
    /// How many messages at most: 100 if it is not given, 1,000 at most.
    limit: Option<usize>,
    /// Only those with this property: `name=value`. A number or a boolean is meant as it is written.
    property: Option<String>,
    /// Only those with this message ID.
    message_id: Option<String>,
    /// Only those with this subject.
    subject: Option<String>,
    /// Only those with this correlation ID.
    correlation_id: Option<String>,
}

/// Messages, and where to look next.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessagesAnswer {
    /// The messages in order.
    messages: Vec<MessageEnvelope>,
    /// Where the next page begins; absent on an empty one. Where only some are asked for, a page may be empty and still have one
    /// behind it: no request looks at more than 2,000 messages. It is absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
}

impl MessagesAnswer {
    pub(crate) fn show(views: &[MessageView], from: Option<u64>) -> MessagesAnswer {
        MessagesAnswer { messages: views.iter().map(MessageEnvelope::show).collect(), from }
    }
}

pub(crate) async fn list(named: Named, Asked(query): Asked<PeekQuery>) -> Answer {
    let wanted = Wanted {
        property: query.property.as_deref().map(Wanted::read_property).transpose()?,
        message_id: query.message_id,
        subject: query.subject,
        correlation_id: query.correlation_id,
    };
    if wanted.is_narrow() {
        let (views, next) = search(&named.queue()?, query.from, page_limit(query.limit)?, &wanted).await?;
        return json(&MessagesAnswer::show(&views, next));
    }
    let views = named.queue()?.peek(SequenceNumber::new(query.from), page_limit(query.limit)?).await?;
    let next = views.last().map(|last| last.sequence_number.get() + 1);
    json(&MessagesAnswer::show(&views, next))
}

pub(crate) async fn look(named: Named) -> Answer {
    let (queue, number) = (named.queue()?, named.number()?);
    let found = queue.peek(number, 1).await?;
    if let Some(view) = found.first().filter(|view| view.sequence_number == number) {
        return json(&MessageEnvelope::show(view));
    }
    match queue.history_of(number).await? {
        Some(ended) => json(&MessageEnvelope::show_ended(&ended)),
        None => {
            let detail = format!("queue {} stores no message {number}", queue.name());
            Err(Refused::new("message_not_found", detail))
        }
    }
}

/// What becomes of a cancelled message's place.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CancelQuery {
    /// Declares the place void, instead of giving it back: what waits behind it goes on.
    void: bool,
}

/// When a scheduled message is to come.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RescheduleRequest {
    /// Its new instant; one that has passed makes it ready at once.
    at: WireTime,
}

pub(crate) async fn cancel(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Asked(query): Asked<CancelQuery>,
) -> Answer {
    let client = acting_as(&shared.client, &caller, None)?;
    let (queue, number) = (client.queue(named.text("queue")?)?, named.number()?);
    match query.void {
        true => queue.cancel_and_void(number).await?,
        false => queue.cancel(number).await?,
    }
    no_content()
}

pub(crate) async fn reschedule(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(request): Told<RescheduleRequest>,
) -> Answer {
    let client = acting_as(&shared.client, &caller, None)?;
    client.queue(named.text("queue")?)?.reschedule(named.number()?, request.at.0).await?;
    no_content()
}
