//! Why a daemon cannot start, or cannot take new definitions.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[cfg(feature = "cluster")]
use crate::cluster::ClusterError;
use crate::definition::LoadError;
use crate::error::Error;
use crate::error::OpenError;
use crate::error::Unavailable;
use crate::handlers::Survivors;
use crate::server::ServerError;
use crate::service_bus::ConfigurationError;
use crate::service_bus::EndpointError;

/// Why a daemon cannot start, or cannot take new definitions.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The definitions cannot be read, or have mistakes.
    #[error(transparent)]
    Definitions(#[from] LoadError),
    /// The data folder cannot be used.
    #[error("cannot use the data folder {0}: {1}")]
    Data(PathBuf, #[source] io::Error),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The daemon cannot be a node of the cluster.
    #[cfg(feature = "cluster")]
    #[error("cannot be a node of the cluster: {0}")]
    Cluster(#[from] ClusterError),
    /// The engine refused something, or has stopped.
    #[error("cannot run the daemon: {0}")]
    Engine(#[from] Error),
    /// A definition does not fit what its queue stores.
    #[error("cannot apply the definition of {queue}: {problem}")]
    Apply {
        /// The queue.
        queue: String,
        /// What is in the way, and what to do.
        problem: String,
    },
    /// A child that a daemon before this one left behind does not end.
    #[error("{0}")]
    Fence(String),
    /// The server cannot start.
    #[error("{0}")]
    Server(String),
    /// Keys or certificate, read again, cannot be used.
    #[error("cannot put keys and certificate in force, those from before stay: {0}")]
    Credentials(String),
    /// Several of these, each for itself.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<DaemonError>),
    /// Signals cannot be listened to.
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
}

impl From<Unavailable> for DaemonError {
    fn from(unavailable: Unavailable) -> DaemonError {
        DaemonError::Engine(unavailable.into())
    }
}

impl From<Survivors> for DaemonError {
    fn from(survivors: Survivors) -> DaemonError {
        DaemonError::Fence(survivors.to_string())
    }
}

impl From<ServerError> for DaemonError {
    fn from(error: ServerError) -> DaemonError {
        DaemonError::Server(error.to_string())
    }
}

impl From<EndpointError> for DaemonError {
    fn from(error: EndpointError) -> DaemonError {
        match error {
            EndpointError::Configuration(ConfigurationError::Mistakes(mistakes)) => {
                DaemonError::Definitions(LoadError::Mistakes(mistakes))
            }
            error => DaemonError::Server(error.to_string()),
        }
    }
}
