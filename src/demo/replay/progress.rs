//! What the engine's process tells its supervisor: one line of JSON on stdout each time.

use std::io::Write;

use serde::Deserialize;
use serde::Serialize;

/// One line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReplayProgress {
    /// The engine is open and works.
    Going {
        /// Changes applied, as the file has them.
        applied: u64,
        /// Messages deferred now, early and failed ones.
        deferred: u64,
    },
    /// Everything is applied, and this is what came of it.
    Done(ReplayOutcome),
}

/// What came of a replay, read from the workflows' states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplayOutcome {
    pub(crate) applied: u64,
    pub(crate) workflows: u64,
    pub(crate) wrong_predecessors: u64,
    pub(crate) failures_injected: u64,
    pub(crate) tree_equal: bool,
}

impl ReplayProgress {
    /// Writes the line. A supervisor that is gone is an error: this process is not to live on.
    pub(crate) fn report(&self) -> std::io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.flush()
    }
}
