//! How often snapshots are taken.

use std::time::Duration;

use crate::limits;

/// How much has to be appended before a snapshot is taken, and how often that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotPace {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) look: Duration,
    /// What is done before each step, in tests.
    #[cfg(test)]
    pub(crate) hook: Option<SnapshotHook>,
}

impl Default for SnapshotPace {
    fn default() -> SnapshotPace {
        SnapshotPace {
            entries: limits::SNAPSHOT_ENTRIES,
            bytes: limits::SNAPSHOT_LOG_BYTES,
            look: limits::SNAPSHOT_LOOK,
            #[cfg(test)]
            hook: None,
        }
    }
}

/// What is done for a snapshot, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotStep {
    Write,
    Put,
    ReadBack,
    List,
    Trim,
    Remove,
}

/// What a test does before each step.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct SnapshotHook(pub(crate) &'static (dyn Fn(SnapshotStep) + Send + Sync));

#[cfg(test)]
impl std::fmt::Debug for SnapshotHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SnapshotHook")
    }
}

#[cfg(test)]
impl SnapshotStep {
    pub(crate) const ALL: [SnapshotStep; 6] = [
        SnapshotStep::Write,
        SnapshotStep::Put,
        SnapshotStep::ReadBack,
        SnapshotStep::List,
        SnapshotStep::Trim,
        SnapshotStep::Remove,
    ];
}
