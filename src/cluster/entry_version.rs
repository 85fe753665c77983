//! In which version a node writes entries: the newest that every node reads, so that a cluster is upgraded node after node.
//!
//! Each node says again and again which one it reads. As long as an older one is heard, or was heard lately, all write what
//! that reads. A header names the version of an entry, so that a node which does not read it takes it for no damage.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

/// The version that no header names.
pub(crate) const FIRST: u32 = 1;

/// The newest version of entries that this program reads and writes.
pub(crate) const NEWEST: u32 = 1;

/// The version in which a node writes entries, as its parts share it.
#[derive(Clone, Debug)]
pub(crate) struct EntryVersion {
    newest: u32,
    written: Arc<AtomicU32>,
}

impl EntryVersion {
    /// Of a node that reads versions up to this one, and has heard of no other.
    pub(crate) fn new(newest: u32) -> EntryVersion {
        EntryVersion { newest, written: Arc::new(AtomicU32::new(FIRST)) }
    }

    /// The newest that the node reads.
    pub(crate) fn newest(&self) -> u32 {
        self.newest
    }

    /// Whether the node reads a version.
    pub(crate) fn reads(&self, version: u32) -> bool {
        (FIRST..=self.newest).contains(&version)
    }

    /// What the header of the next entry says, if it has one.
    pub(crate) fn in_header(&self) -> Option<u32> {
        Some(self.written.load(Ordering::Relaxed)).filter(|version| *version > FIRST)
    }

    /// Notes which version all nodes read that were heard lately, and whether that is all there are: who has not listened for
    /// long may know of too few.
    pub(crate) fn note(&self, read_by_all: u32, is_all: bool) {
        let read = read_by_all.clamp(FIRST, self.newest);
        let written = self.written.load(Ordering::Relaxed);
        if read < written || (is_all && read > written) {
            tracing::info!(version = read, "entries are written in another version, as all nodes read it");
            self.written.store(read, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_node_counts_at_once_and_a_newer_version_once_all_are_known() {
        let version = EntryVersion::new(3);
        version.note(3, false);
        assert_eq!(version.in_header(), None, "others may be there that read less");
        version.note(2, true);
        assert_eq!(version.in_header(), Some(2));
        version.note(9, true);
        assert_eq!(version.in_header(), Some(3), "it writes nothing that it does not read");
        version.note(1, false);
        assert_eq!(version.in_header(), None);
        assert!(version.reads(1) && version.reads(3) && !version.reads(4) && !version.reads(0));
    }
}
