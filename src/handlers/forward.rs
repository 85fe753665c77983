//! Another queue to which each message goes: of the same store, or of another daemon.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use serde::Deserialize;
use sha2::Digest;
use sha2::Sha256;

use crate::api::Problem;
use crate::api::SendEnvelope;
use crate::definition::bearer;
use crate::engine::Completion;
use crate::engine::ReceivedMessage;
use crate::error::Misuse;
use crate::handlers::answer::legible;
use crate::handlers::ending::cut_short;
use crate::handlers::facts::lasting_number;
use crate::handlers::outbound::outbound::HttpReply;
use crate::handlers::outbound::outbound::Outbound;
use crate::handlers::outbound::outbound::OutboundOptions;
use crate::handlers::site::Site;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;

/// Where messages go.
#[derive(Clone, Debug)]
pub(crate) struct ForwardOptions {
    /// The queue.
    pub(crate) to: ForwardTo,
    /// Whether a message keeps its position, which only a queue ordered by position takes.
    pub(crate) keep_position: bool,
}

/// Which queue messages go to.
#[derive(Clone, Debug)]
pub(crate) enum ForwardTo {
    /// One of the same store.
    Local(QueueName),
    /// One of another daemon.
    Remote(RemoteQueue),
}

/// A queue of another daemon.
#[derive(Clone)]
pub(crate) struct RemoteQueue {
    /// The queue as `http://host:7700/queue`; the timeout is that of one attempt.
    pub(crate) outbound: OutboundOptions,
    /// The key that may send there.
    pub(crate) key: Option<String>,
}

impl std::fmt::Debug for RemoteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.as_ref().map(|_| "..");
        f.debug_struct("RemoteQueue").field("outbound", &self.outbound).field("key", &key).finish()
    }
}

/// Sends each message on. Within a store that is one transaction with its completion; to another daemon it goes under
/// a key by which a repetition is recognised.
pub(crate) struct Forward {
    way: Way,
    keep_position: bool,
    site: Site,
}

enum Way {
    Local(QueueName),
    Remote(Box<RemoteForward>),
}

struct RemoteForward {
    outbound: Outbound,
    headers: HeaderMap,
}

/// A line of the other daemon's answer.
#[derive(Deserialize)]
struct AnswerLine {
    sequence_number: Option<u64>,
    status: Option<String>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ErrorBody {
    title: Option<String>,
    detail: Option<String>,
}

impl Forward {
    /// Checks where messages go.
    ///
    /// # Errors
    /// [`Misuse`] says what is wrong with it.
    pub(crate) fn new(options: ForwardOptions, site: Site) -> Result<Forward, Misuse> {
        let way = match options.to {
            ForwardTo::Local(queue) => Way::Local(queue),
            ForwardTo::Remote(remote) => Way::Remote(Box::new(RemoteForward::new(remote)?)),
        };
        Ok(Forward { way, keep_position: options.keep_position, site })
    }

    /// The message as it is sent on: it keeps its headers and properties.
    fn message(&self, context: &Context) -> Message {
        let received = context.message();
        let mut message = received.sent_on(context.queue().client().wall_now());
        let has_position = self.site.by_position && received.has_workflow() && self.keep_position;
        message.position = has_position.then_some(received.rank);
        message
    }
}

impl RemoteForward {
    fn new(queue: RemoteQueue) -> Result<RemoteForward, Misuse> {
        let RemoteQueue { mut outbound, key } = queue;
        outbound.address.url = messages_url(&outbound.address.url)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        if let Some(key) = key {
            headers.insert(header::AUTHORIZATION, bearer(&key)?);
        }
        Ok(RemoteForward { outbound: Outbound::new(outbound)?, headers })
    }

    async fn send(&self, context: &Context, message: &Message, site: &Site) -> Result<Outcome, Failure> {
        let mut line = serde_json::to_vec(&SendEnvelope::show(message))?;
        line.push(b'\n');
        let mut headers = self.headers.clone();
        let key = key_of(&site.sender_id, context.queue().name(), context.message());
        headers.insert(HeaderName::from_static("idempotency-key"), HeaderValue::from_str(&key)?);
        let reply = tokio::select! {
            reply = self.outbound.post(headers, Bytes::from(line)) => reply?,
            failure = cut_short(context) => return Err(failure),
        };
        match reply.status {
            status if status.is_success() => receipt(&reply),
            // Not when its `Retry-After` says, which is a second however long it will be full.
            _ if is_for_now(&reply) => Err(Failure::postponed(format!(
                "the other daemon has no room for it, or is not ready, so that the attempt is not counted: {}",
                reply.describe()
            ))),
            _ => Err(reply.failure(site.clock.now())),
        }
    }
}

/// Whether a daemon is there and cannot take it now. A proxy that reaches none says no problem of a daemon.
fn is_for_now(reply: &HttpReply) -> bool {
    matches!(
        reply.status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE
    ) && serde_json::from_slice::<Problem>(&reply.body).is_ok()
}

impl Handler<Raw> for Forward {
    async fn handle(&self, context: Context, _body: Raw) -> Result<Outcome, Failure> {
        let message = self.message(&context);
        match &self.way {
            Way::Local(queue) => {
                let message = (self.site.place)(queue.as_str(), message)?;
                Ok(Outcome::CompleteWith(Completion::new().send(queue.as_str(), message)))
            }
            Way::Remote(remote) => remote.send(&context, &message, &self.site).await,
        }
    }
}

/// The key of a message, the same at every attempt. Queues of the same name in different stores, or clusters, count for themselves.
fn key_of(sender_id: &str, queue: &QueueName, message: &ReceivedMessage) -> String {
    let origin = format!("{sender_id}_{queue}");
    let of_message = lasting_number(message);
    let key = format!("{origin}_{of_message}");
    match key.len() {
        0..=limits::IDEMPOTENCY_KEY_BYTES_MAX => key,
        _ => format!("{}_{of_message}", BASE64.encode(Sha256::digest(origin))),
    }
}

/// Whether the other daemon has the message.
fn receipt(reply: &HttpReply) -> Result<Outcome, Failure> {
    let line = reply.body.trim_ascii();
    let code = reply.status.as_u16();
    match serde_json::from_slice::<AnswerLine>(line) {
        Ok(AnswerLine { error: Some(error), .. }) => {
            let described = error.detail.or(error.title).unwrap_or_default();
            Err(Failure::new(format!("HTTP {code}: {}", legible(described.as_bytes()))))
        }
        Ok(AnswerLine { status: Some(_), .. } | AnswerLine { sequence_number: Some(_), .. }) => {
            Ok(Outcome::Complete)
        }
        _ => Err(Failure::new(format!("HTTP {code} without a receipt: {}", legible(line)))),
    }
}

/// `http://host:7700/queue` as the address of that queue's messages.
fn messages_url(url: &str) -> Result<String, Misuse> {
    let wrong = || Misuse::new("forward", format!("{url:?} is not like http://host:7700/queue"));
    let (base, queue) = url.trim_end_matches('/').rsplit_once('/').ok_or_else(wrong)?;
    let queue = QueueName::new(queue).map_err(|_| wrong())?;
    // What is left of `http://host` without a queue is no address.
    if base.ends_with('/') || base.ends_with(':') {
        return Err(wrong());
    }
    Ok(format!("{base}/v1/queues/{queue}/messages?atomic=true"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::definition::WebhookDefinition;

    #[test]
    fn the_queue_is_the_last_part_of_the_url() {
        let url = messages_url("http://host:7700/orders").unwrap();
        assert_eq!(url, "http://host:7700/v1/queues/orders/messages?atomic=true");
        let url = messages_url("https://host/seriatim/orders.v2/").unwrap();
        assert_eq!(url, "https://host/seriatim/v1/queues/orders.v2/messages?atomic=true");
        for wrong in ["http://host:7700", "http://host/", "orders", "http://host/a b", "http://host/?a=b"] {
            assert!(messages_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_daemon_says_that_it_cannot_take_it_now() {
        let says = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let body = Bytes::copy_from_slice(body.as_bytes());
            is_for_now(&HttpReply { status, headers: HeaderMap::new(), body, is_cut: false })
        };
        let problem = serde_json::to_string(&Problem::new("queue_full", "there is no room")).unwrap();
        assert!(says(429, &problem));
        assert!(!says(503, "no healthy upstream"), "a proxy without anything behind it");
        assert!(!says(422, &problem), "what is wrong stays wrong");
    }

    #[test]
    fn a_key_is_not_shown() {
        let url = "http://host/q".to_owned();
        let address = WebhookDefinition { url, allow_private: false, ca_file: None };
        let outbound = OutboundOptions { address, timeout: Duration::from_secs(1) };
        let shown = format!("{:?}", RemoteQueue { outbound, key: Some("hidden".to_owned()) });
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
