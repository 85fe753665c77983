//! How often snapshots are taken.

use std::time::Duration;

use crate::limits;

/// How much has to be appended before a snapshot is taken, and how often that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotPace {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) look: Duration,
    /// Before which step the process is to die, in tests.
    #[cfg(test)]
    pub(crate) dies_before: Option<SnapshotStep>,
}

impl Default for SnapshotPace {
    fn default() -> SnapshotPace {
        SnapshotPace {
            entries: limits::SNAPSHOT_ENTRIES,
            bytes: limits::SNAPSHOT_LOG_BYTES,
            look: limits::SNAPSHOT_LOOK,
            #[cfg(test)]
            dies_before: None,
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
