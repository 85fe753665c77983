//! Why a run was of no use.

use std::error::Error;

use thiserror::Error;

/// Why a run was of no use.
#[derive(Debug, Error)]
pub(crate) enum BenchError {
    /// The contender broke order or exclusivity: its rate means nothing.
    #[error("cannot keep the promise that is measured: {0}")]
    Broken(String),
    /// Nothing happened for so long that messages must have been lost.
    #[error("cannot go on: nothing was settled for {0} s, and {1} messages are missing")]
    Stalled(u64, u64),
    /// The contender, or the machine.
    #[error("cannot {what}: {source}")]
    System { what: String, source: Box<dyn Error + Send + Sync> },
}

impl BenchError {
    /// Says what was being done when an error came.
    pub(crate) fn system<E>(what: impl Into<String>) -> impl FnOnce(E) -> BenchError
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let what = what.into();
        move |source| BenchError::System { what, source: source.into() }
    }
}
