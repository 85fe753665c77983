//! Sending: the body is the message, or one message a line.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::Request;
use axum::extract::State;
use bytes::Bytes;
use http::HeaderMap;
use http::StatusCode;
use hyper::body::Body as HttpBody;
use serde_json::value::RawValue;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::task::AbortOnDropHandle;

use crate::api::ReceiptStatus;
use crate::api::ReceiptView;
use crate::api::SendQuery;
use crate::engine::Queue;
use crate::error::Misuse;
use crate::id::IdempotencyKey;
use crate::inbound::browser::bytes_as;
use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json_as;
use crate::server::answer_writer::outbox;
use crate::server::batch::Batch;
use crate::server::batch::BatchLines;
use crate::server::batch::read_line;
use crate::server::batch::write_receipt;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::check_not_encoded;
use crate::server::extract::media_type;
use crate::server::headers::message_of;
use crate::server::impersonation::Acting;
use crate::server::shared::SharedServer;
use crate::task;

/// The media types of bodies with one message a line.
pub(crate) const LINES: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

/// The header that makes a request safe to repeat.
pub(crate) const ONCE: &str = "idempotency-key";

pub(crate) async fn send(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
    QueryParams(query): QueryParams<SendQuery>,
    request: Request,
) -> HttpResult {
    let queue = client.queue(extract.text("queue")?)?;
    let (parts, body) = request.into_parts();
    check_not_encoded(&parts.headers)?;
    let has_lines = has_lines(&parts.headers);
    let key = once_key(&parts.headers)?;
    match (has_lines, query.atomic) {
        (true, true) => send_together(shared, queue, &parts.headers, body, key).await,
        (true, false) if key.is_some() => {
            Err(HttpRefusal::misuse(ONCE, "goes with one message, or with ?atomic=true"))
        }
        (true, false) => send_lines(shared, queue, body, query.in_order).await,
        (false, _) if query.in_order => {
            Err(HttpRefusal::misuse("in_order", "goes with Content-Type: application/x-ndjson"))
        }
        (false, true) => Err(HttpRefusal::misuse("atomic", "goes with Content-Type: application/x-ndjson")),
        (false, false) => send_one(shared, queue, &parts.headers, body, key).await,
    }
}

/// Whether each line of a body is a message.
pub(crate) fn has_lines(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|found| LINES.iter().any(|line| line.eq_ignore_ascii_case(found)))
}

pub(crate) fn once_key(headers: &HeaderMap) -> Result<Option<String>, HttpRefusal> {
    let mut values = headers.get_all(ONCE).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match value.to_str() {
        _ if values.next().is_some() => Err(HttpRefusal::misuse(ONCE, "is there more than once")),
        Ok(key) if !key.is_empty() && key.len() <= limits::HEADER_BYTES_MAX => Ok(Some(key.to_owned())),
        _ => Err(HttpRefusal::misuse(ONCE, "is empty, too long or not ASCII")),
    }
}

async fn send_one(
    shared: SharedServer,
    queue: Queue,
    headers: &HeaderMap,
    body: Body,
    key: Option<String>,
) -> HttpResult {
    let announced = body.size_hint().upper();
    let bytes_max = bytes_max(&queue, announced).await?;
    let (body, _room) = Inflow::new(&shared.reading, body, bytes_max).all().await?;
    let once = once(key, headers, &body)?;
    let message = message_of(headers, Message::new(body))?;
    let message = shared.place.place(queue.name(), message)?;
    let receipt = match once {
        Some(key) => {
            let receipts = queue.send_batch_once(key, [message]).await?;
            receipts
                .into_iter()
                .next()
                .ok_or_else(|| HttpRefusal::new("fault", "a message has no receipt"))?
        }
        None => queue.send(message).await?,
    };
    let answer = ReceiptView::show(receipt);
    let status = match answer.status {
        ReceiptStatus::Accepted | ReceiptStatus::DeadLettered => StatusCode::CREATED,
        ReceiptStatus::Duplicate | ReceiptStatus::AlreadySettled => StatusCode::OK,
    };
    Ok(json_as(status, &answer))
}

/// How many bytes of a body are read: what its queue takes. A body that is known to be small is read first, because most
/// are, and looking the queue up takes longer.
async fn bytes_max(queue: &Queue, announced: Option<u64>) -> Result<usize, HttpRefusal> {
    match announced {
        Some(bytes) if bytes <= limits::HTTP_BODY_SMALL_BYTES => Ok(limits::HTTP_MESSAGES_BYTES_MAX),
        _ => Ok(queue.options().await?.body_bytes_max),
    }
}

/// Of a request that names a key, what the engine knows it by when it comes again; without a key, nothing is computed.
pub(crate) fn once(
    key: Option<String>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Option<IdempotencyKey>, Misuse> {
    let Some(key) = key else { return Ok(None) };
    let digest = if has_lines(headers) { digest_of_lines(body) } else { digest_of(headers, body) };
    let (first, _) = digest.split_first_chunk().expect("a digest has more than eight bytes");
    IdempotencyKey::new(key, u64::from_be_bytes(*first)).map(Some)
}

/// What makes two requests the same: the body and every header that says something of the message, except those of the
/// trace, which differ when it is sent again.
fn digest_of(headers: &HeaderMap, body: &[u8]) -> [u8; 32] {
    let says_something =
        |name: &str| name == "content-type" || name.starts_with("ce-") || name.starts_with("seriatim-");
    let mut given: Vec<(&str, &[u8])> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    given.retain(|(name, _)| says_something(name));
    given.sort_unstable();
    let mut digest = Sha256::new();
    for (name, value) in given {
        digest.update(name);
        digest.update((value.len() as u64).to_le_bytes());
        digest.update(value);
    }
    digest.update(body);
    digest.finalize().into()
}

/// What makes two requests with lines the same: every byte, but for how long each message lives. Who sends a message on says the
/// rest of its time, and that is less when it sends it again.
fn digest_of_lines(body: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        match without_time_to_live(line) {
            Some(line) => digest.update(line),
            None => digest.update(line),
        }
    }
    digest.finalize().into()
}

/// A line without its time to live, if it has one.
fn without_time_to_live(line: &[u8]) -> Option<Vec<u8>> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(line).ok()?;
    fields.remove("time_to_live")?;
    serde_json::to_vec(&fields).ok()
}

/// Sends line by line, each accepted or refused for itself.
async fn send_lines(shared: SharedServer, queue: Queue, body: Body, in_order: bool) -> HttpResult {
    // A queue that is not there would be the answer to every line.
    let order = queue.options().await?.order;
    let in_order = in_order && order == Order::Arrival;
    let (outbox, answers) = outbox();
    let inflow = Inflow::new(&shared.reading, body, limits::HTTP_MESSAGES_BYTES_MAX);
    let batch = Batch::new(shared, queue, inflow, outbox, in_order);
    let batch = AbortOnDropHandle::new(task::spawn(batch.run()));
    let body = answers.into_body(batch).await?;
    Ok(bytes_as(StatusCode::OK, LINES[0], body))
}

/// The messages of a body with one a line, or what is wrong with the first that is none.
pub(crate) fn messages_of(
    shared: &SharedServer,
    body: Bytes,
    read: impl Fn(&[u8]) -> Result<Message, HttpRefusal>,
) -> Result<Vec<Message>, HttpRefusal> {
    let mut lines = BatchLines::new(shared);
    lines.add(body)?;
    let mut messages = Vec::new();
    while let Some(line) = lines.next(true) {
        if messages.len() >= limits::SEND_BATCH_MAX {
            let problem = format!("has more than {} lines", limits::SEND_BATCH_MAX);
            return Err(HttpRefusal::misuse("batch", problem));
        }
        let message = read(&line).map_err(|HttpRefusal(mut problem)| {
            problem.detail = format!("line {}: {}", messages.len() + 1, problem.detail);
            HttpRefusal(problem)
        })?;
        messages.push(message);
    }
    Ok(messages)
}

/// Sends all lines or none.
async fn send_together(
    shared: SharedServer,
    queue: Queue,
    headers: &HeaderMap,
    body: Body,
    key: Option<String>,
) -> HttpResult {
    let (body, _room) = Inflow::new(&shared.reading, body, limits::HTTP_MESSAGES_BYTES_MAX).all().await?;
    let once = once(key, headers, &body)?;
    let messages = messages_of(&shared, body, |line| read_line(&shared, &queue, line))?;
    let receipts = match once {
        Some(key) => queue.send_batch_once(key, messages).await?,
        None => queue.send_batch(messages).await?,
    };
    let mut answers = Vec::with_capacity(48 * receipts.len());
    receipts.into_iter().for_each(|receipt| write_receipt(&mut answers, receipt));
    Ok(bytes_as(StatusCode::CREATED, LINES[0], answers))
}
