//! Messages: put, got, peeked, updated and deleted.

use std::time::Duration;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::StatusCode;

use crate::clock::Timestamp;
use crate::engine::Claim;
use crate::engine::Hidden;
use crate::engine::MessageView;
use crate::engine::Queue;
use crate::engine::Receipt;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::storage_queue::answer;
use crate::storage_queue::names::message_id;
use crate::storage_queue::names::pop_receipt;
use crate::storage_queue::names::read_message_id;
use crate::storage_queue::names::read_pop_receipt;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::request::whole;
use crate::storage_queue::shared::SharedStorage;
use crate::storage_queue::times;
use crate::storage_queue::xml;
use crate::xml::Xml;

/// A message as it is shown: what every answer has, and what only some have.
struct MessageElement<'a> {
    number: SequenceNumber,
    accepted_at: Timestamp,
    expires_at: Option<Timestamp>,
    claim: Option<(Claim, Timestamp)>,
    seen: Option<(u32, &'a Bytes)>,
}

impl<'a> MessageElement<'a> {
    fn got(hidden: &'a Hidden) -> MessageElement<'a> {
        MessageElement {
            number: hidden.claim.sequence_number,
            accepted_at: hidden.accepted_at,
            expires_at: hidden.expires_at,
            claim: Some((hidden.claim, hidden.until)),
            seen: Some((hidden.claim.delivery_count, &hidden.body)),
        }
    }

    fn peeked(view: &'a MessageView) -> MessageElement<'a> {
        MessageElement {
            number: view.sequence_number,
            accepted_at: view.accepted_at,
            expires_at: view.expires_at,
            claim: None,
            seen: Some((view.delivery_count, &view.body)),
        }
    }

    fn write(&self, xml: &mut Xml) {
        xml.within("QueueMessage", |xml| {
            xml.leaf("MessageId", &message_id(self.number));
            xml.leaf("InsertionTime", &times::date(self.accepted_at));
            xml.leaf("ExpirationTime", &times::expiry(self.expires_at));
            if let Some((claim, visible_at)) = self.claim {
                xml.leaf("PopReceipt", &pop_receipt(claim));
                xml.leaf("TimeNextVisible", &times::date_not_before(visible_at));
            }
            if let Some((count, body)) = self.seen {
                xml.leaf("DequeueCount", &count.to_string());
                xml.leaf("MessageText", &text_of(body));
            }
        });
    }
}

/// The text of a message. What another endpoint sent, and XML cannot hold, is written in base64.
fn text_of(body: &Bytes) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if crate::xml::can_be_written(text) => text.to_owned(),
        _ => BASE64.encode(body),
    }
}

fn listed(status: StatusCode, messages: &[MessageElement<'_>]) -> StorageResult {
    let mut xml = Xml::new();
    xml.within("QueueMessagesList", |xml| messages.iter().for_each(|message| message.write(xml)));
    Ok(answer::xml(status, xml))
}

pub(crate) async fn put(
    shared: &SharedStorage,
    request: &QueueRequest,
    body: Body,
    name: &str,
) -> StorageResult {
    let queue = shared.queue(name)?;
    let lasts = time_to_live(request)?;
    let hidden = hidden_for(request, 0)?.unwrap_or_default();
    if lasts.is_some_and(|lasts| hidden >= lasts) {
        return Err(StorageRefusal::out_of_range("visibilitytimeout"));
    }
    let body = whole(&shared.reading, body).await?;
    let text = xml::read_message(&body)?
        .ok_or_else(|| StorageRefusal::bad("InvalidXmlDocument", "the body has no message"))?;
    let mut message = Message::new(checked(text)?);
    if let Some(lasts) = lasts {
        // A scheduled message lives from its instant on, one of a storage queue from when it was put.
        message = message.time_to_live(lasts - hidden);
    }
    if !hidden.is_zero() {
        message = message.delay(hidden);
    }
    let receipts = shared.intake.send(queue.name(), vec![message]).await?;
    put_answer(shared, &queue, receipts.first(), hidden).await
}

/// The answer about a message that was put. It may be gone by now, and a look that fails is no reason to say that it was not put:
/// then it would be put again.
async fn put_answer(
    shared: &SharedStorage,
    queue: &Queue,
    receipt: Option<&Receipt>,
    hidden: Duration,
) -> StorageResult {
    let number = receipt.and_then(Receipt::sequence_number).unwrap_or(SequenceNumber::new(0));
    let found = queue.peek(number, 1).await.unwrap_or_default();
    let found = found.first().filter(|view| view.sequence_number == number);
    let accepted_at = found.map_or_else(|| shared.client().wall_now(), |view| view.accepted_at);
    let message = MessageElement {
        number,
        accepted_at,
        expires_at: found.and_then(|view| view.expires_at),
        claim: Some((Claim::of_sender(number, accepted_at), accepted_at + hidden)),
        seen: None,
    };
    listed(StatusCode::CREATED, &[message])
}

pub(crate) async fn get(shared: &SharedStorage, request: &QueueRequest, name: &str) -> StorageResult {
    let lasts = hidden_for(request, 1)?.unwrap_or(limits::STORAGE_HIDDEN_DEFAULT);
    let hidden = shared.queue(name)?.receive_hidden(how_many(request)?, lasts).await?;
    let messages: Vec<MessageElement<'_>> = hidden.iter().map(MessageElement::got).collect();
    listed(StatusCode::OK, &messages)
}

pub(crate) async fn peek(shared: &SharedStorage, request: &QueueRequest, name: &str) -> StorageResult {
    let views: Vec<MessageView> = shared.queue(name)?.peek_offered(how_many(request)?).await?;
    let messages: Vec<MessageElement<'_>> = views.iter().map(MessageElement::peeked).collect();
    listed(StatusCode::OK, &messages)
}

pub(crate) async fn update(
    shared: &SharedStorage,
    request: &QueueRequest,
    body: Body,
    (name, id): (&str, &str),
) -> StorageResult {
    let queue = shared.queue(name)?;
    let lasts = hidden_for(request, 0)?.ok_or_else(|| missing("visibilitytimeout"))?;
    let receipt = request.field("popreceipt").ok_or_else(|| missing("popreceipt"))?.to_owned();
    let body = whole(&shared.reading, body).await?;
    let text = xml::read_message(&body)?.map(checked).transpose()?;
    let claim = claim(&queue, id, &receipt).await?;
    let found = queue.peek(claim.sequence_number, 1).await?;
    let found = found.first().filter(|view| view.sequence_number == claim.sequence_number);
    let expires_at = found.and_then(|view| view.expires_at);
    if expires_at.is_some_and(|at| at < shared.client().wall_now() + lasts) {
        return Err(StorageRefusal::out_of_range("visibilitytimeout"));
    }
    let hidden = queue.hide_again(claim, lasts, text.map(Bytes::from)).await?;
    Ok(answer::headed(
        answer::empty(StatusCode::NO_CONTENT),
        [
            ("x-ms-popreceipt", pop_receipt(hidden.claim)),
            ("x-ms-time-next-visible", times::date_not_before(hidden.until)),
        ],
    ))
}

pub(crate) async fn delete(
    shared: &SharedStorage,
    request: &QueueRequest,
    (name, id): (&str, &str),
) -> StorageResult {
    let queue = shared.queue(name)?;
    let receipt = request.field("popreceipt").ok_or_else(|| missing("popreceipt"))?;
    queue.end_hidden(claim(&queue, id, receipt).await?).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// The claim of a pop receipt. One that no message can have had is told from one for a message that is gone.
async fn claim(queue: &Queue, id: &str, receipt: &str) -> Result<Claim, StorageRefusal> {
    let number = read_message_id(id).ok_or_else(StorageRefusal::no_message)?;
    if let Some(claim) = read_pop_receipt(receipt, number) {
        return Ok(claim);
    }
    let found = queue.peek(number, 1).await?;
    match found.first().is_some_and(|view| view.sequence_number == number) {
        true => Err(StorageRefusal::stale_receipt()),
        false => Err(StorageRefusal::no_message()),
    }
}

fn checked(text: String) -> Result<String, StorageRefusal> {
    if text.len() > limits::STORAGE_TEXT_BYTES_MAX { Err(StorageRefusal::too_large()) } else { Ok(text) }
}

fn missing(name: &str) -> StorageRefusal {
    StorageRefusal::bad("MissingRequiredQueryParameter", format!("{name} is missing"))
}

/// For how long a message is to be hidden, if the request says so.
fn hidden_for(request: &QueueRequest, shortest: u64) -> Result<Option<Duration>, StorageRefusal> {
    let Some(text) = request.field("visibilitytimeout") else { return Ok(None) };
    let lasts = times::seconds_within(text, shortest, limits::STORAGE_WEEK);
    lasts.map(Some).ok_or_else(|| StorageRefusal::out_of_range("visibilitytimeout"))
}

/// How long a message lives; `None` is for ever. There is no longest time: what is longer than the engine counts is for ever.
fn time_to_live(request: &QueueRequest) -> Result<Option<Duration>, StorageRefusal> {
    match request.field("messagettl") {
        None => Ok(Some(limits::STORAGE_WEEK)),
        Some("-1") => Ok(None),
        Some(text) => {
            let lasts =
                times::seconds_from(text, 1).ok_or_else(|| StorageRefusal::out_of_range("messagettl"))?;
            Ok(Some(lasts).filter(|lasts| *lasts <= limits::DURATION_MAX))
        }
    }
}

fn how_many(request: &QueueRequest) -> Result<usize, StorageRefusal> {
    let Some(text) = request.field("numofmessages") else { return Ok(1) };
    let count = text.parse().ok().filter(|count| (1..=limits::STORAGE_MESSAGES_MAX).contains(count));
    count.ok_or_else(|| StorageRefusal::out_of_range("numofmessages"))
}
