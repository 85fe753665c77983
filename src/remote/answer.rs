//! A whole answer, and what it must be so that it is one of a daemon.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;
use http::HeaderName;
use http::StatusCode;
use hyper::Response;
use hyper::body::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::Problem;
use crate::limits;
use crate::remote::cause::malformed;
use crate::remote::error::RemoteError;
use crate::remote::parts::next_part;

/// The code of a settlement of what is not held: also by whoever has settled it, once a daemon was started anew.
pub(crate) const LOST: &str = "lock_lost";

/// Codes of refusals that say that somebody has to make room first.
const FULL: [&str; 2] = ["queue_full", "workflow_full"];

/// An answer that was read to its end, whatever its status is.
#[derive(Debug)]
pub(crate) struct WholeAnswer {
    request_line: String,
    status: StatusCode,
    headers: HeaderMap,
    bytes: Bytes,
    /// Whether the same was asked before and may have been done: the daemon knows that for a while only.
    pub(crate) was_sent_before: bool,
}

impl WholeAnswer {
    /// Reads an answer; each part of it has to come in time.
    pub(crate) async fn read<B>(
        url: &str,
        time_limit: Option<Duration>,
        request_line: String,
        response: Response<B>,
    ) -> Result<WholeAnswer, RemoteError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Error + 'static,
    {
        let (head, mut body) = response.into_parts();
        let is_success = head.status.is_success();
        let most =
            if is_success { limits::REMOTE_ANSWER_BYTES_MAX } else { limits::REMOTE_PROBLEM_BYTES_MAX };
        let bytes = match collect(url, time_limit, &request_line, &mut body, most).await {
            // The status of a refusal says enough.
            Err(_) if !is_success => Bytes::new(),
            read => read?,
        };
        let (status, headers) = (head.status, head.headers);
        Ok(WholeAnswer { request_line, status, headers, bytes, was_sent_before: false })
    }

    /// The answer, unless it is a refusal.
    pub(crate) fn accepted(self) -> Result<WholeAnswer, RemoteError> {
        if self.status.is_success() { Ok(self) } else { Err(self.refusal()) }
    }

    /// The error that a refusal is.
    pub(crate) fn refusal(&self) -> RemoteError {
        match self.problem() {
            Some(problem) => RemoteError::Problem(Box::new(problem)),
            None => self.strange(format!("HTTP status {}, and no problem that says why", self.status)),
        }
    }

    fn problem(&self) -> Option<Problem> {
        serde_json::from_slice(&self.bytes).ok()
    }

    /// Whether the same may be answered otherwise soon: the daemon cannot for the moment, or a proxy did not reach it.
    pub(crate) fn is_passing(&self) -> bool {
        if self.status.is_success() {
            return false;
        }
        match self.problem() {
            None => self.status.is_server_error(),
            Some(problem) => {
                let is_of_now = matches!(problem.status, 429 | 503) && !FULL.contains(&problem.code.as_str());
                is_of_now || problem.is_unanswered()
            }
        }
    }

    /// Whether it leaves open what became of the same that was sent before: it is still not done, or nothing is known of it any more.
    pub(crate) fn is_open(&self) -> bool {
        self.was_sent_before
            && (self.is_passing() || self.problem().is_some_and(|problem| problem.code == LOST))
    }

    pub(crate) fn request_line(&self) -> &str {
        &self.request_line
    }

    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Its lines that are not empty.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
    }

    /// What it says as JSON.
    pub(crate) fn value<T: DeserializeOwned>(&self) -> Result<T, RemoteError> {
        serde_json::from_slice(&self.bytes).map_err(|error| malformed(&self.request_line, error))
    }

    /// What it says as JSON, word for word, if that is what a daemon says there.
    pub(crate) fn json_of<T: DeserializeOwned>(&self) -> Result<Value, RemoteError> {
        self.has_status(StatusCode::OK)?;
        self.value::<T>()?;
        self.value()
    }

    /// The same where a daemon may have nothing to say.
    pub(crate) fn json_of_if_any<T: DeserializeOwned>(&self) -> Result<Value, RemoteError> {
        match self.status {
            StatusCode::NO_CONTENT => Ok(Value::Null),
            _ => self.json_of::<T>(),
        }
    }

    /// That the daemon did as it was asked and has nothing to say of it, which whoever else answers there does not say so.
    pub(crate) fn nothing(&self) -> Result<(), RemoteError> {
        self.has_status(StatusCode::NO_CONTENT)
    }

    /// That it is this text, as a daemon says it, and no other.
    pub(crate) fn text(&self, text: &str) -> Result<(), RemoteError> {
        self.has_status(StatusCode::OK)?;
        match self.bytes == text {
            true => Ok(()),
            false => Err(self.strange(format!("it is not {:?}, as a daemon says it", text.trim_end()))),
        }
    }

    fn has_status(&self, status: StatusCode) -> Result<(), RemoteError> {
        match self.status == status {
            true => Ok(()),
            false => Err(self.strange(format!("HTTP status {}, where a daemon has {status}", self.status))),
        }
    }

    fn strange(&self, detail: String) -> RemoteError {
        malformed(&self.request_line, detail)
    }
}

/// A body of so many bytes at most.
async fn collect<B>(
    url: &str,
    time_limit: Option<Duration>,
    request_line: &str,
    body: &mut B,
    most: usize,
) -> Result<Bytes, RemoteError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Error + 'static,
{
    let mut bytes = BytesMut::new();
    while let Some(part) = next_part(url, time_limit, body).await? {
        if part.len() > most - bytes.len() {
            return Err(malformed(request_line, format!("it has more than {most} bytes")));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}

// Only the client of NATS brings a clock of tokio's that can be moved.
#[cfg(all(test, feature = "cluster"))]
mod tests {
    use std::io;

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// Reads an answer of three parts, with a pause before each.
    async fn read_with_pauses(pause: Duration) -> Result<WholeAnswer, RemoteError> {
        let parts = stream::unfold(0, |count| async move {
            // It ends with the pause, as nothing else comes.
            let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
            (count < 3).then(|| (Ok::<_, io::Error>(Frame::data(Bytes::from_static(b"a"))), count + 1))
        });
        let response = Response::new(StreamBody::new(Box::pin(parts)));
        let time_limit = Some(limits::REMOTE_ANSWER_WAIT);
        WholeAnswer::read("http://a", time_limit, "GET /v1/queues".to_owned(), response).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_waited_for_as_long_as_something_of_it_comes_in_time() {
        let slow = read_with_pauses(limits::REMOTE_ANSWER_WAIT * 2 / 3).await.unwrap();
        assert_eq!(slow.into_bytes(), "aaa");
        let silent = read_with_pauses(limits::REMOTE_ANSWER_WAIT * 4 / 3).await.unwrap_err();
        assert!(matches!(silent, RemoteError::Unreachable { .. }), "{silent}");
        assert!(!silent.is_unsent(), "what was asked for may have been done");
    }
}
