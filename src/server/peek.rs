//! Looking at messages, which changes nothing, and cancelling or rescheduling scheduled ones.

use crate::api::CancelQuery;
use crate::api::MessagePage;
use crate::api::MessageQuery;
use crate::api::MessagesQuery;
use crate::api::RescheduleRequest;
use crate::api::views::MessageEnvelope;
use crate::engine::MessageView;
use crate::id::SequenceNumber;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::answer::no_content;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::impersonation::Acting;
use crate::server::page::page_limit;
use crate::server::search::MessageCriteria;
use crate::server::search::search;

pub(crate) async fn list(extract: PathParams, QueryParams(query): QueryParams<MessagesQuery>) -> HttpResult {
    let wanted = MessageCriteria {
        property: query.property.as_deref().map(MessageCriteria::read_property).transpose()?,
        message_id: query.message_id,
        subject: query.subject,
        correlation_id: query.correlation_id,
    };
    if wanted.is_narrow() {
        let (views, next) = search(&extract.queue()?, query.from, page_limit(query.limit)?, &wanted).await?;
        return page(&views, next, query.raw);
    }
    let views = extract.queue()?.peek(SequenceNumber::new(query.from), page_limit(query.limit)?).await?;
    let next = views.last().map(|last| last.sequence_number.get() + 1);
    page(&views, next, query.raw)
}

fn page(views: &[MessageView], from: Option<u64>, raw: bool) -> HttpResult {
    let page = MessagePage::show(views, from);
    json(&if raw { page.with_raw_bodies(views) } else { page })
}

pub(crate) async fn look(extract: PathParams, QueryParams(query): QueryParams<MessageQuery>) -> HttpResult {
    let (queue, number) = (extract.queue()?, extract.number()?);
    let found = queue.peek(number, 1).await?;
    if let Some(view) = found.first().filter(|view| view.sequence_number == number) {
        let shown = MessageEnvelope::show(view);
        return json(&if query.raw { shown.with_raw_body(&view.body) } else { shown });
    }
    match queue.history_of(number).await? {
        Some(ended) => json(&MessageEnvelope::show_ended(&ended)),
        None => {
            let detail = format!("queue {} stores no message {number}", queue.name());
            Err(HttpRefusal::new("message_not_found", detail))
        }
    }
}

pub(crate) async fn cancel(
    Acting(client): Acting,
    extract: PathParams,
    QueryParams(query): QueryParams<CancelQuery>,
) -> HttpResult {
    let (queue, number) = (client.queue(extract.text("queue")?)?, extract.number()?);
    match query.void {
        true => queue.cancel_and_void(number).await?,
        false => queue.cancel(number).await?,
    }
    no_content()
}

pub(crate) async fn reschedule(
    Acting(client): Acting,
    extract: PathParams,
    JsonBody(request): JsonBody<RescheduleRequest>,
) -> HttpResult {
    client.queue(extract.text("queue")?)?.reschedule(extract.number()?, request.at.0).await?;
    no_content()
}
