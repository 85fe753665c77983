//! Why a replay could not run.

use std::path::PathBuf;

use thiserror::Error;

use crate::demo::git::GitError;

/// Why a replay could not run.
#[derive(Debug, Error)]
pub(crate) enum ReplayError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Engine(#[from] seriatim::Error),
    #[error("cannot {what}: {source}")]
    System { what: String, source: std::io::Error },
    #[error("cannot use {} for the engine's file: a replay has used it before; name another folder", .0.display())]
    DataInUse(PathBuf),
    #[error("cannot replay {}: its head has moved while the replay ran", .0.display())]
    HeadMoved(PathBuf),
    #[error("cannot run the engine's process: it ended by itself ({0}); its output is above")]
    EngineEnded(String),
    #[error("cannot read the workflow {0}: its state makes no sense")]
    BadState(String),
    #[error("cannot run the engine's process: its supervisor is gone")]
    Alone,
}

impl ReplayError {
    /// An error of the operating system, with what was being done.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ReplayError {
        let what = what.into();
        move |source| ReplayError::System { what, source }
    }
}

/// Errors of single operations become the engine's.
macro_rules! from_engine {
    ($($error:ty),*) => {
        $(impl From<$error> for ReplayError {
            fn from(error: $error) -> ReplayError {
                ReplayError::Engine(error.into())
            }
        })*
    };
}

from_engine!(
    seriatim::error::OpenError,
    seriatim::error::SendError,
    seriatim::error::ReceiveError,
    seriatim::error::SettleError,
    seriatim::error::QueueError,
    seriatim::Misuse
);
