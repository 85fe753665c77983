//! One request, and how it is asked until there is an answer.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::header;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::Misuse;
use crate::limits;
use crate::remote::answer::WholeAnswer;
use crate::remote::cause::describe;
use crate::remote::cause::open_still;
use crate::remote::cause::within;
use crate::remote::error::RemoteError;
use crate::remote::lines::ResponseLines;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

/// The MIME type of lines of JSON.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// A request that is being put together.
pub(crate) struct RemoteCall<'r> {
    remote: &'r Remote,
    method: Method,
    route: RequestPath,
    headers: HeaderMap,
    body: Bytes,
    time_limit: Option<Duration>,
    is_repeatable: bool,
}

impl Remote {
    pub(crate) fn get(&self, route: RequestPath) -> RemoteCall<'_> {
        RemoteCall::new(self, Method::GET, route)
    }

    pub(crate) fn post(&self, route: RequestPath) -> RemoteCall<'_> {
        RemoteCall::new(self, Method::POST, route)
    }

    pub(crate) fn put(&self, route: RequestPath) -> RemoteCall<'_> {
        RemoteCall::new(self, Method::PUT, route)
    }

    pub(crate) fn delete(&self, route: RequestPath) -> RemoteCall<'_> {
        RemoteCall::new(self, Method::DELETE, route)
    }
}

impl<'r> RemoteCall<'r> {
    fn new(remote: &'r Remote, method: Method, route: RequestPath) -> RemoteCall<'r> {
        let time_limit = Some(limits::REMOTE_ANSWER_WAIT);
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        RemoteCall { remote, method, route, headers, body, time_limit, is_repeatable: false }
    }

    /// Sets a header, if it has a value.
    ///
    /// # Errors
    /// [`Misuse`] when the name or value cannot stand in a header.
    pub(crate) fn header(mut self, name: &str, value: Option<&str>) -> Result<RemoteCall<'r>, Misuse> {
        let Some(value) = value else { return Ok(self) };
        let wrong = || Misuse::new(name.to_owned(), "cannot stand in an HTTP header");
        let name_there = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        self.headers.insert(name_there, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?);
        Ok(self)
    }

    /// Sends bytes of a kind.
    pub(crate) fn bytes(
        mut self,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<RemoteCall<'r>, Misuse> {
        self.body = body.into();
        // As long as the daemon waits for it on a slow line.
        let slowest = Duration::from_secs((self.body.len() / limits::HTTP_BODY_RATE_MIN) as u64);
        self.waiting(slowest).header(header::CONTENT_TYPE.as_str(), Some(content_type))
    }

    /// Sends a value as JSON.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<RemoteCall<'r>, RemoteError> {
        let body = serde_json::to_vec(value).map_err(|error| Misuse::new("body", error.to_string()))?;
        Ok(self.bytes("application/json", body)?)
    }

    /// Waits longer, by what the daemon was asked to wait itself.
    pub(crate) fn waiting(mut self, more: Duration) -> RemoteCall<'r> {
        self.time_limit = self.time_limit.map(|time_limit| time_limit.saturating_add(more));
        self
    }

    /// Says that asking it again does no more than asking it once: it is asked again for a while when nobody answers.
    pub(crate) fn repeatable(mut self) -> RemoteCall<'r> {
        self.is_repeatable = true;
        self
    }

    /// Waits for the answer as long as it takes.
    pub(crate) fn without_timeout(mut self) -> RemoteCall<'r> {
        self.time_limit = None;
        self
    }

    /// The answer as a value.
    pub(crate) async fn answer<T: DeserializeOwned>(self) -> Result<T, RemoteError> {
        self.whole().await?.value()
    }

    /// The answer as a value, `None` when the daemon refuses with this code.
    pub(crate) async fn answer_if_any<T: DeserializeOwned>(
        self,
        code: &str,
    ) -> Result<Option<T>, RemoteError> {
        match self.answer().await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.problem().is_some_and(|problem| problem.code == code) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The answer's bytes.
    pub(crate) async fn answer_bytes(self) -> Result<Bytes, RemoteError> {
        Ok(self.whole().await?.into_bytes())
    }

    /// That the daemon did as it was asked, of which it has nothing to say.
    pub(crate) async fn answer_nothing(self) -> Result<(), RemoteError> {
        self.whole().await?.nothing()
    }

    /// The whole answer; refusals are errors already.
    ///
    /// It is compiled with the library, as what is below: the code of an async function is made anew in each crate that
    /// awaits it.
    pub(crate) fn whole(self) -> BoxFuture<'r, Result<WholeAnswer, RemoteError>> {
        Box::pin(self.ask_for_a_while())
    }

    /// Asks, and asks again for a while what may be asked again when nobody answers.
    async fn ask_for_a_while(self) -> Result<WholeAnswer, RemoteError> {
        let mut over = pin!(timeout(limits::REMOTE_REPEAT_FOR, pending::<()>()));
        let mut pauses = limits::REMOTE_REPEAT_PAUSES.into_iter();
        let (mut pause, mut was_sent) = (Duration::ZERO, false);
        loop {
            let mut tried = self.ask().await;
            let is_passing = match &tried {
                Ok(answer) => answer.is_passing(),
                Err(error) => matches!(error, RemoteError::Unreachable { .. }),
            };
            // After the last of the pauses, all are as long as that.
            pause = pauses.next().unwrap_or(pause);
            if !self.is_repeatable || !is_passing || timeout(pause, over.as_mut()).await.is_ok() {
                if let Ok(answer) = &mut tried {
                    answer.was_sent_before = was_sent;
                    if answer.is_open() {
                        return Err(open_still(self.remote.url(), answer.refusal()));
                    }
                }
                let answer = tried.and_then(WholeAnswer::accepted);
                return answer
                    .map_err(|error| if was_sent { error.after_one_that_was_sent() } else { error });
            }
            was_sent |= !tried.is_err_and(|error| error.is_unsent());
        }
    }

    async fn ask(&self) -> Result<WholeAnswer, RemoteError> {
        let response = self.head().await?;
        let most = self.time_limit.map(|time_limit| time_limit.max(limits::REMOTE_ANSWER_MAX));
        within(self.remote.url(), most, self.read(response)).await
    }

    /// The answer line by line; each part of it has to come in time.
    pub(crate) async fn open_lines(self) -> Result<ResponseLines<'r>, RemoteError> {
        let time_limit = self.time_limit;
        self.lines(time_limit).await
    }

    /// The answer line by line, of which some come for no other reason than that the daemon is there.
    pub(crate) async fn open_stream(self) -> Result<ResponseLines<'r>, RemoteError> {
        self.lines(Some(limits::REMOTE_SILENCE_MAX)).await
    }

    async fn lines(self, each: Option<Duration>) -> Result<ResponseLines<'r>, RemoteError> {
        let response = self.open().await?;
        Ok(ResponseLines::new(self.remote.url(), each, self.request_line(), response))
    }

    /// The answer, of which only the head has come; refusals are errors already.
    fn open(&self) -> BoxFuture<'_, Result<Response<Incoming>, RemoteError>> {
        Box::pin(async move {
            let response = self.head().await?;
            match response.status().is_success() {
                true => Ok(response),
                false => Err(self.read(response).await?.refusal()),
            }
        })
    }

    async fn read(&self, response: Response<Incoming>) -> Result<WholeAnswer, RemoteError> {
        WholeAnswer::read(self.remote.url(), self.time_limit, self.request_line(), response).await
    }

    /// The answer, of which only the head has come, whatever its status is.
    async fn head(&self) -> Result<Response<Incoming>, RemoteError> {
        within(self.remote.url(), self.time_limit, self.send()).await
    }

    async fn send(&self) -> Result<Response<Incoming>, RemoteError> {
        let remote = self.remote;
        let mut request = Request::builder().method(self.method.clone()).uri(remote.uri(&self.route)?);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
            headers.extend(remote.authorization());
        }
        let request = request.body(Full::new(self.body.clone()));
        let request = request.map_err(|error| Misuse::new("request", error.to_string()))?;
        remote.client().request(request).await.map_err(|error| RemoteError::Unreachable {
            url: remote.url().to_owned(),
            detail: describe(remote.url(), &error),
            // A connection comes about before anything is sent over it.
            was_sent: !error.is_connect(),
        })
    }

    fn request_line(&self) -> String {
        format!("{} {}", self.method, self.route.as_str())
    }
}
