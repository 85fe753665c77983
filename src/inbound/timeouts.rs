//! How long the server waits for the other side of a connection.

use std::time::Duration;

use crate::limits;

/// How long the server waits for the other side of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the head of a request, from its first byte or the connection's start.
    pub(crate) head: Duration,
    /// For a body, beside the time its bytes are worth.
    pub(crate) body: Duration,
    /// For the next request.
    pub(crate) idle: Duration,
    /// For an answer to be taken.
    pub(crate) write: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            head: limits::HTTP_HEAD_TIMEOUT,
            body: limits::HTTP_BODY_TIMEOUT,
            idle: limits::HTTP_IDLE_MAX,
            write: limits::HTTP_WRITE_TIMEOUT,
        }
    }
}
