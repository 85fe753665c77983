//! One request and its answer, and what is made of an answer that is a refusal.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::StatusCode;
use http::header;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::Limited;
use hyper::Response;
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::Problem;
use crate::error::Misuse;
use crate::error::root_cause;
use crate::limits;
use crate::remote::cause::describe;
use crate::remote::cause::malformed;
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
        RemoteCall { remote, method, route, headers: HeaderMap::new(), body: Bytes::new(), time_limit }
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

    /// Waits for the answer as long as it takes.
    pub(crate) fn without_timeout(mut self) -> RemoteCall<'r> {
        self.time_limit = None;
        self
    }

    /// The answer as a value.
    pub(crate) async fn answer<T: DeserializeOwned>(self) -> Result<T, RemoteError> {
        let request_line = self.request_line();
        let bytes = self.answer_bytes().await?;
        let malformed = |error: serde_json::Error| malformed(&request_line, error);
        serde_json::from_slice(&bytes).map_err(malformed)
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

    /// The answer as a value, or its default when the answer is empty.
    pub(crate) async fn answer_or_default<T: DeserializeOwned + Default>(self) -> Result<T, RemoteError> {
        let request_line = self.request_line();
        match self.answer_bytes().await? {
            empty if empty.is_empty() => Ok(T::default()),
            bytes => serde_json::from_slice(&bytes).map_err(|error| malformed(&request_line, error)),
        }
    }

    /// The answer's bytes.
    ///
    /// It is compiled with the library, as what is below: the code of an async function is made anew in each crate that
    /// awaits it.
    pub(crate) fn answer_bytes(self) -> BoxFuture<'r, Result<Bytes, RemoteError>> {
        Box::pin(self.collect())
    }

    /// That the daemon did as it was asked, whatever it says of it.
    pub(crate) async fn answer_nothing(self) -> Result<(), RemoteError> {
        self.answer_bytes().await.map(drop)
    }

    async fn collect(self) -> Result<Bytes, RemoteError> {
        let (remote, time_limit, request_line) = (self.remote, self.time_limit, self.request_line());
        within(remote.url(), time_limit, async {
            let body = Limited::new(self.open().await?.into_body(), limits::REMOTE_ANSWER_BYTES_MAX);
            let collected = body.collect().await;
            Ok(collected.map_err(|error| malformed(&request_line, root_cause(&*error)))?.to_bytes())
        })
        .await
    }

    /// The answer line by line; each line has to come in time.
    pub(crate) async fn open_lines(self) -> Result<ResponseLines<'r>, RemoteError> {
        let time_limit = self.time_limit;
        self.lines(time_limit).await
    }

    /// The answer line by line, of which some come for no other reason than that the daemon is there.
    pub(crate) async fn open_stream(self) -> Result<ResponseLines<'r>, RemoteError> {
        self.lines(Some(limits::REMOTE_SILENCE_MAX)).await
    }

    async fn lines(self, each: Option<Duration>) -> Result<ResponseLines<'r>, RemoteError> {
        let (remote, request_line) = (self.remote, self.request_line());
        let response = within(remote.url(), self.time_limit, self.open()).await?;
        Ok(ResponseLines::new(remote.url(), each, request_line, response))
    }

    /// A header of the answer, whatever else that is.
    pub(crate) async fn answer_header(self, name: HeaderName) -> Result<Option<String>, RemoteError> {
        let (remote, time_limit) = (self.remote, self.time_limit);
        let response = within(remote.url(), time_limit, self.open()).await?;
        Ok(response.headers().get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned))
    }

    /// The answer, of which only the head has come; refusals are errors already.
    fn open(self) -> BoxFuture<'r, Result<Response<Incoming>, RemoteError>> {
        Box::pin(self.exchange())
    }

    async fn exchange(self) -> Result<Response<Incoming>, RemoteError> {
        let request_line = self.request_line();
        let remote = self.remote;
        let mut request = Request::builder().method(self.method).uri(remote.uri(&self.route)?);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers);
            headers.extend(remote.authorization());
        }
        let request = request.body(Full::new(self.body));
        let request = request.map_err(|error| Misuse::new("request", error.to_string()))?;
        let sent = remote.client().request(request).await;
        let response = sent.map_err(|error| RemoteError::Unreachable {
            url: remote.url().to_owned(),
            detail: describe(remote.url(), &error),
            // A connection comes about before anything is sent over it.
            was_sent: !error.is_connect(),
        })?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(refusal(&request_line, status, response).await),
        }
    }

    fn request_line(&self) -> String {
        format!("{} {}", self.method, self.route.as_str())
    }
}

/// Makes an error of an answer that is a refusal.
async fn refusal(request_line: &str, status: StatusCode, response: Response<Incoming>) -> RemoteError {
    let body = Limited::new(response.into_body(), limits::REMOTE_PROBLEM_BYTES_MAX).collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    match serde_json::from_slice::<Problem>(&bytes) {
        Ok(problem) => RemoteError::Problem(Box::new(problem)),
        _ => malformed(request_line, format!("HTTP status {status}, and no problem that says why")),
    }
}
