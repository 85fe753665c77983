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
}
