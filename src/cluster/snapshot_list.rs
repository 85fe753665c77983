//! Which snapshots of a partition there are, as the nodes tell each other: at most two, the newest first.
//!
//! The list only ever gets newer: a snapshot is listed if it includes more than the newest, behind the revision of the list
//! that was read. So what may be given up of the log, and which objects nobody can ever list, is known for good.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::log::LogPlace;
use crate::limits;

/// A snapshot of a partition that was read back and found to be as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartitionSnapshot {
    /// The position of the last entry of the log that it includes.
    pub position: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// The node that has taken it.
    pub node: String,
    /// When that was, by the clock of that node.
    pub taken_at: Timestamp,
}

/// A snapshot as the nodes tell each other of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotRecord {
    /// The object with its bytes.
    pub(crate) object: String,
    /// The last entry of the log that it includes.
    pub(crate) place: LogPlace,
    pub(crate) bytes: u64,
    /// The XXH3 of all its bytes.
    pub(crate) digest: u64,
    pub(crate) node: String,
    pub(crate) taken_at: Timestamp,
}

impl SnapshotRecord {
    /// What is said of it.
    pub(crate) fn status(&self) -> PartitionSnapshot {
        PartitionSnapshot {
            position: self.place.position,
            bytes: self.bytes,
            node: self.node.clone(),
            taken_at: self.taken_at,
        }
    }
}

/// The snapshots of a partition, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotList(pub(crate) Vec<SnapshotRecord>);

impl SnapshotList {
    /// The list with one more snapshot; `None` if that includes no more than the newest.
    pub(crate) fn with(&self, newer: SnapshotRecord) -> Option<SnapshotList> {
        let is_newer = newer.place.position > self.newest();
        let kept = self.0.iter().take(limits::SNAPSHOTS_KEPT - 1).cloned();
        is_newer.then(|| SnapshotList(std::iter::once(newer).chain(kept).collect()))
    }

    /// The position of the newest; zero without one.
    pub(crate) fn newest(&self) -> u64 {
        self.0.first().map_or(0, |newest| newest.place.position)
    }

    /// The last of as many as are kept: the log is needed from its place on.
    pub(crate) fn oldest_kept(&self) -> Option<&SnapshotRecord> {
        self.0.get(limits::SNAPSHOTS_KEPT - 1)
    }

    /// Whether an object can be given up: it is not listed, and cannot be listed any more.
    pub(crate) fn is_beyond(&self, object: &str, position: u64) -> bool {
        position <= self.newest() && self.0.iter().all(|listed| listed.object != object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(position: u64) -> SnapshotRecord {
        SnapshotRecord {
            object: format!("0-{position}-a"),
            place: LogPlace { position, checksum: position },
            bytes: 1,
            digest: 1,
            node: "a".to_owned(),
            taken_at: Timestamp::default(),
        }
    }

    #[test]
    fn a_list_keeps_the_two_newest_and_never_gets_older() {
        let mut list = SnapshotList::default();
        for position in [10, 30, 20, 30, 40] {
            list = list.with(snapshot(position)).unwrap_or(list);
        }
        assert_eq!(list, SnapshotList(vec![snapshot(40), snapshot(30)]));
        assert_eq!(list.oldest_kept(), Some(&snapshot(30)));
        assert_eq!(SnapshotList(vec![snapshot(40)]).oldest_kept(), None, "one alone could be lost");
    }

    #[test]
    fn an_object_that_could_still_be_listed_is_kept() {
        let list = SnapshotList(vec![snapshot(40), snapshot(30)]);
        assert!(!list.is_beyond("0-40-a", 40) && !list.is_beyond("0-30-a", 30), "it is listed");
        assert!(!list.is_beyond("0-41-b", 41), "it is being taken");
        assert!(list.is_beyond("0-40-b", 40) && list.is_beyond("0-20-a", 20));
    }
}
