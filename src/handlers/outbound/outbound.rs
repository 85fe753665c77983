//! Posts to one address.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;
use http::Method;
use http::Request;
use http::StatusCode;
use http::header;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioTimer;

use crate::api::WireDuration;
use crate::clock::Timestamp;
use crate::definition::WebhookDefinition;
use crate::engine::Output;
use crate::error::Misuse;
use crate::error::root_cause;
use crate::handlers::answer::legible;
use crate::handlers::outbound::connector::OutboundConnector;
use crate::handlers::outbound::retry_after::retry_after;
use crate::handlers::outbound::target::TargetUrl;
use crate::limits;
use crate::processor::Failure;

/// Where to post, and how.
#[derive(Clone, Debug)]
pub(crate) struct OutboundOptions {
    pub(crate) address: WebhookDefinition,
    /// How long one post may take, from the connection to the end of the answer.
    pub(crate) timeout: Duration,
}

/// Posts to one address, over connections that are kept for the next post.
///
/// It follows no redirect and knows no proxy: nothing but the address of the definition is reached.
pub(crate) struct Outbound {
    client: Client<OutboundConnector, Full<Bytes>>,
    target: Arc<TargetUrl>,
    timeout: Duration,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether the body broke off, or is longer than what is read of it.
    pub(crate) is_cut: bool,
}

impl Outbound {
    /// Checks the address; nothing is connected yet.
    ///
    /// # Errors
    /// [`Misuse`] says what is wrong with it.
    pub(crate) fn new(options: OutboundOptions) -> Result<Outbound, Misuse> {
        let OutboundOptions { address, timeout } = options;
        let target = Arc::new(TargetUrl::parse(&address.url, address.allow_private)?);
        let connector = OutboundConnector::new(target.clone(), address.ca_file.as_deref(), timeout)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits::OUTBOUND_IDLE_MAX)
            .build(connector);
        Ok(Outbound { client, target, timeout })
    }

    /// Posts a body.
    ///
    /// # Errors
    /// Says why nothing was answered.
    pub(crate) async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<HttpReply, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.uri().clone();
        *request.headers_mut() = headers;
        let agent = header::HeaderValue::from_static(concat!("seriatim/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(header::USER_AGENT, agent);
        let posting = async {
            let response = self.client.request(request).await;
            let (head, body) = response.map_err(|error| Failure::new(root_cause(&error)))?.into_parts();
            let (body, is_cut) = read(body).await;
            Ok(HttpReply { status: head.status, headers: head.headers, body, is_cut })
        };
        let timed_out = || Failure::new(format!("timed out after {}", WireDuration(self.timeout)));
        tokio::time::timeout(self.timeout, posting).await.unwrap_or_else(|_| Err(timed_out()))
    }
}

impl HttpReply {
    /// An answer that is no success, as a failure; with the delay it asks for, if it is one that may.
    pub(crate) fn failure(&self, now: Timestamp) -> Failure {
        let failure = Failure::new(self.describe()).output(self.written());
        let may_ask = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        match retry_after(&self.headers, now).filter(|_| may_ask) {
            Some(delay) => failure.retry_after(delay),
            None => failure,
        }
    }

    /// The beginning of the body.
    pub(crate) fn written(&self) -> Output {
        Output::start_of(String::from_utf8_lossy(&self.body))
    }

    /// The status and the first line of the body.
    pub(crate) fn describe(&self) -> String {
        let code = self.status.as_u16();
        if self.status.is_redirection() {
            return format!("HTTP {code}: redirects are not followed");
        }
        let mut lines = self.body.split(|byte| *byte == b'\n');
        match lines.find(|line| !line.trim_ascii().is_empty()) {
            Some(line) => format!("HTTP {code}: {}", legible(line)),
            None => format!("HTTP {code}"),
        }
    }

    /// Whether the content type of the body is this one.
    pub(crate) fn is(&self, content_type: &str) -> bool {
        let value = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = value.unwrap_or_default().split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case(content_type)
    }
}

/// Reads a body as far as it is wanted.
async fn read(mut body: Incoming) -> (Bytes, bool) {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (all.freeze(), true) };
        if let Ok(data) = frame.into_data() {
            all.extend_from_slice(&data);
        }
        if all.len() > limits::ANSWER_BYTES_MAX {
            return (all.freeze(), true);
        }
    }
    (all.freeze(), false)
}
