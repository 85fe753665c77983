//! Why a call to a daemon failed, or had an answer that cannot be read.

use thiserror::Error;

use crate::api::Problem;
use crate::error::Misuse;

/// The failure of a call to a daemon.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// Nobody answers there, or the connection broke off.
    #[error("cannot reach the daemon at {url}: {detail}")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What went wrong, and how to start it when nobody is there.
        detail: String,
        /// Whether something of the request may have been sent, so that it may have been done.
        was_sent: bool,
    },
    /// The daemon refused.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// What came back is not an answer of a daemon.
    #[error("cannot understand the answer to {request}: {detail}")]
    Malformed {
        /// The request.
        request: String,
        /// What is wrong with the answer.
        detail: String,
    },
    /// A value the caller passed is not allowed.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl RemoteError {
    /// The daemon's refusal, if it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            RemoteError::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether nothing of the request was sent, so that it was not done: nobody was reached, or a value is not allowed.
    /// After any other failure but a refusal, it may have been done.
    pub fn is_unsent(&self) -> bool {
        match self {
            RemoteError::Unreachable { was_sent, .. } => !was_sent,
            RemoteError::Misuse(_) => true,
            RemoteError::Problem(_) | RemoteError::Malformed { .. } => false,
        }
    }

    /// The failure of the last of several tries, of which an earlier one was sent.
    pub(crate) fn after_one_that_was_sent(mut self) -> RemoteError {
        if let RemoteError::Unreachable { was_sent, .. } = &mut self {
            *was_sent = true;
        }
        self
    }
}
