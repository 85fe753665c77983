//! An answer that comes line by line: lines of JSON, and server-sent events.

use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use hyper::Response;
use hyper::body::Incoming;
use memchr::memchr;

use crate::limits;
use crate::remote::cause::malformed;
use crate::remote::error::RemoteError;
use crate::remote::parts::next_part;

/// The lines of an answer, as they come.
pub(crate) struct ResponseLines<'r> {
    url: &'r str,
    /// How long each part of it may take to come.
    time_limit: Option<Duration>,
    request_line: String,
    body: Incoming,
    unread: BytesMut,
    /// How much of `unread` is known to hold no line end.
    searched: usize,
}

impl<'r> ResponseLines<'r> {
    pub(crate) fn new(
        url: &'r str,
        time_limit: Option<Duration>,
        request_line: String,
        response: Response<Incoming>,
    ) -> ResponseLines<'r> {
        ResponseLines {
            url,
            time_limit,
            request_line,
            body: response.into_body(),
            unread: BytesMut::new(),
            searched: 0,
        }
    }

    /// The next line without its end; `None` at the end of the answer.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        loop {
            if let Some(line) = self.split() {
                return Ok(Some(line));
            }
            match next_part(self.url, self.time_limit, &mut self.body).await? {
                None if self.unread.is_empty() => return Ok(None),
                None => {
                    self.searched = 0;
                    return Ok(Some(self.unread.split().freeze()));
                }
                Some(part) => self.unread.extend_from_slice(&part),
            }
            if self.unread.len() > limits::REMOTE_ANSWER_BYTES_MAX {
                return Err(malformed(&self.request_line, "a line of it is too long"));
            }
        }
    }

    /// The next line that is not empty.
    pub(crate) async fn next_filled(&mut self) -> Result<Option<Bytes>, RemoteError> {
        while let Some(line) = self.next().await? {
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    fn split(&mut self) -> Option<Bytes> {
        let end = memchr(b'\n', &self.unread[self.searched..]);
        let Some(end) = end.map(|end| end + self.searched) else {
            self.searched = self.unread.len();
            return None;
        };
        self.searched = 0;
        let mut line = self.unread.split_to(end + 1);
        line.truncate(end);
        if line.last() == Some(&b'\r') {
            line.truncate(end - 1);
        }
        Some(line.freeze())
    }

    pub(crate) fn request_line(&self) -> &str {
        &self.request_line
    }
}
