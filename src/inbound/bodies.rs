//! Bodies of a connection, as far as its pace depends on them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::body::Frame;
use hyper::body::Incoming;
use hyper::body::SizeHint;

use crate::inbound::pace::ConnectionPace;

/// The body of a request; one that is not read to its end is noted.
pub(crate) struct Uptake {
    body: Incoming,
    pace: Arc<ConnectionPace>,
    has_ended: bool,
}

impl Uptake {
    pub(crate) fn new(body: Incoming, pace: Arc<ConnectionPace>) -> Uptake {
        Uptake { body, pace, has_ended: false }
    }
}

impl Drop for Uptake {
    fn drop(&mut self) {
        if !self.has_ended && !self.body.is_end_stream() {
            self.pace.note_unread();
        }
    }
}

impl HttpBody for Uptake {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.has_ended |= matches!(frame, Poll::Ready(None));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer; once it is gone, the connection is idle.
pub(crate) struct Outflow {
    body: Body,
    pace: Arc<ConnectionPace>,
}

impl Outflow {
    pub(crate) fn new(body: Body, pace: Arc<ConnectionPace>) -> Outflow {
        Outflow { body, pace }
    }
}

impl Drop for Outflow {
    fn drop(&mut self) {
        self.pace.note_answered();
    }
}

impl HttpBody for Outflow {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
