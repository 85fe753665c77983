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
    #[cfg(feature = "cluster")]
    #[error("cannot replay on a cluster: {0}")]
    Cluster(Box<seriatim::cluster::ClusterError>),
    #[cfg(feature = "cluster")]
    #[error("cannot go on with the replay: no node has said anything for {0} s")]
    Silent(u64),
    #[error("cannot replay on a cluster: this program was built without the feature `cluster`")]
    #[cfg(not(feature = "cluster"))]
    NoCluster,
}

impl ReplayError {
    /// An error of a node or a server.
    #[cfg(feature = "cluster")]
    pub(crate) fn cluster(error: seriatim::cluster::ClusterError) -> ReplayError {
        ReplayError::Cluster(Box::new(error))
    }

    /// Whether a cluster may say so while a node or a server is gone: what was asked is asked again, or handed out again.
    pub(crate) fn passes(&self) -> bool {
        use seriatim::Error;
        use seriatim::error::OperationError;
        use seriatim::error::SettleRefusal;
        let ReplayError::Engine(error) = self else { return false };
        match error {
            Error::Unavailable(_) => true,
            Error::Send(error) => matches!(error, OperationError::Unavailable(_)),
            Error::Receive(error) => matches!(error, OperationError::Unavailable(_)),
            Error::Queue(error) => matches!(error, OperationError::Unavailable(_)),
            Error::Settle(OperationError::Refused(refusal)) => {
                matches!(refusal, SettleRefusal::LockLost | SettleRefusal::MessageNotFound(_))
            }
            Error::Settle(error) => matches!(error, OperationError::Unavailable(_)),
            _ => false,
        }
    }

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
