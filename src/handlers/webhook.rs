//! An address to which each message is posted.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;
use http::header;

use crate::error::Misuse;
use crate::handlers::answer;
use crate::handlers::ending::cut_short;
use crate::handlers::outbound::headers::HeaderSource;
use crate::handlers::outbound::outbound::HttpReply;
use crate::handlers::outbound::outbound::Outbound;
use crate::handlers::outbound::outbound::OutboundOptions;
use crate::handlers::outbound::signature::SigningSecret;
use crate::handlers::outbound::signature::signatures;
use crate::handlers::site::Site;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;

/// Content type of an answer that says how it ended.
const OUTCOME_TYPE: &str = "application/vnd.seriatim.outcome+json";

/// Where messages are posted, and how.
#[derive(Clone, Debug)]
pub(crate) struct WebhookOptions {
    /// The address.
    pub(crate) outbound: OutboundOptions,
    /// What posts are signed with; with several, receivers can change from one to the other. With none, they are not
    /// signed.
    pub(crate) secrets: Vec<SigningSecret>,
}

/// Posts each message, signed; any answer of success completes it.
pub(crate) struct Webhook {
    outbound: Outbound,
    secrets: Vec<SigningSecret>,
    site: Site,
}

impl Webhook {
    /// Checks the address.
    ///
    /// # Errors
    /// [`Misuse`] says what is wrong with it.
    pub(crate) fn new(options: WebhookOptions, site: Site) -> Result<Webhook, Misuse> {
        Ok(Webhook { outbound: Outbound::new(options.outbound)?, secrets: options.secrets, site })
    }

    /// Posts a body under an ID that stays the same whenever it is posted again.
    async fn post(&self, id: &str, mut headers: HeaderMap, body: Bytes) -> Result<HttpReply, Failure> {
        let timestamp = self.site.clock.now().as_millis() / 1_000;
        let mut add = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value)?;
            headers.insert(HeaderName::from_static(name), value);
            Ok::<(), Failure>(())
        };
        add("webhook-id", id)?;
        add("webhook-timestamp", &timestamp.to_string())?;
        if !self.secrets.is_empty() {
            add("webhook-signature", &signatures(&self.secrets, id, timestamp, &body))?;
        }
        self.outbound.post(headers, body).await
    }

    /// Posts a document that is no message; anything but success is a failure.
    pub(crate) async fn notify(&self, id: &str, headers: HeaderMap, document: Bytes) -> Result<(), Failure> {
        let reply = self.post(id, headers, document).await?;
        match reply.status.is_success() {
            true => Ok(()),
            false => Err(reply.failure(self.site.clock.now())),
        }
    }

    fn judge(&self, reply: &HttpReply) -> Result<Outcome, Failure> {
        match reply.status {
            status if status.is_success() => self.read_answer(reply),
            StatusCode::GONE => Ok(Outcome::DeadLetter {
                reason: reply.describe(),
                description: "the receiver is gone".to_owned(),
            }),
            _ => Err(reply.failure(self.site.clock.now())),
        }
    }

    fn read_answer(&self, reply: &HttpReply) -> Result<Outcome, Failure> {
        let says_how = |body: &[u8]| match reply.is_cut {
            // Of what is lost nobody knows what it would have said.
            true => matches!(body.trim_ascii_start(), [] | [b'{', ..]),
            false => answer::names_outcome(body),
        };
        let is_answer = reply.is(OUTCOME_TYPE) || reply.is("application/json") && says_how(&reply.body);
        match is_answer {
            true if reply.is_cut => {
                Err(Failure::new("the handler's answer is wrong: it broke off, or is too long"))
            }
            true => answer::read(&self.site, &reply.body).map_err(|failure| failure.output(reply.written())),
            false => Ok(Outcome::Complete),
        }
    }
}

impl Handler<Raw> for Webhook {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        let described = HeaderSource { context: &context, by_position: self.site.by_position };
        let mut headers = described.headers();
        let content_type = context.message().headers.content_type.as_deref();
        let content_type = content_type.and_then(|text| HeaderValue::from_str(text).ok());
        headers.insert(
            header::CONTENT_TYPE,
            content_type.unwrap_or(HeaderValue::from_static("application/octet-stream")),
        );
        let id = described.id();
        let reply = tokio::select! {
            reply = self.post(&id, headers, body.0) => reply?,
            failure = cut_short(&context) => return Err(failure),
        };
        self.judge(&reply)
    }
}
