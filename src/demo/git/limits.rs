//! Every bound of reading a git history, each with its reason.

/// Most changes of one history: all are held in memory, some 300 bytes each. The largest histories measured
/// so far have below 100,000.
pub(crate) const CHANGES_MAX: usize = 1_000_000;

/// Most paths of one tree: as many as there can be changes, because each path was added by one.
pub(crate) const PATHS_MAX: usize = CHANGES_MAX;

/// Longest piece of git's output between two zero bytes: git itself and the usual file systems stop near 4 KiB.
pub(crate) const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Bytes kept of what git writes to its error stream: enough for every message meant for a person.
pub(crate) const COMPLAINT_BYTES_MAX: u64 = 16 * 1024;

/// Bytes quoted of an output that is not understood: the rest of a wrong record explains nothing.
pub(crate) const QUOTED_BYTES_MAX: usize = 200;
