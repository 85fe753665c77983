//! Beginning from a snapshot: for a node that has no file of a partition, or one that ends before the log begins.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::cluster::partition::Partition;
use crate::cluster::snapshot_list::SnapshotRecord;
use crate::cluster::snapshots::SnapshotError;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

/// The pause before it is looked again which snapshots there are.
const PAUSE: Duration = Duration::from_millis(500);

/// What has become of looking for a snapshot.
enum RestoreResult {
    /// It is in place.
    InPlace,
    /// None can be used: this is wrong with them.
    NoneUsable(String),
    /// One could not be read, which says nothing of it.
    Unread,
}

impl Partition {
    /// Puts the newest snapshot that is sound in place of the file, which ends at a position; 0 without one. False if that is
    /// not needed, because the log has what comes behind that position, and not possible.
    ///
    /// # Errors
    /// [`Fault::Log`] when it is needed, and no snapshot can be used; [`Fault::File`] when the disk does not take one.
    pub(crate) fn restore(&self, position: u64) -> Result<bool, OpenError> {
        let (mut looks, mut damaged) = (0, BTreeSet::new());
        loop {
            let first = self.log().first()?;
            let found = self.try_restore(first, position, &mut damaged)?;
            if matches!(found, RestoreResult::InPlace) {
                return Ok(true);
            }
            if first <= position + 1 {
                return Ok(false);
            }
            if let RestoreResult::NoneUsable(why) = found {
                looks += 1;
                // Whoever is asked may not know yet which there are.
                if looks > limits::LOG_LOOKS_MAX {
                    let what = format!(
                        "it begins with entry {first}, the file of this node ends with entry {position}, and there is no snapshot \
                         to begin from{why}"
                    );
                    return Err(Fault::Log(what).into());
                }
            }
            self.wait(PAUSE)?;
        }
    }

    fn try_restore(
        &self,
        first: u64,
        position: u64,
        damaged: &mut BTreeSet<String>,
    ) -> Result<RestoreResult, OpenError> {
        let list = match self.snapshot_list() {
            Ok(list) => list,
            Err(why) => {
                tracing::warn!(why, "it is not known which snapshots there are");
                return Ok(RestoreResult::Unread);
            }
        };
        let (mut problems, mut is_unread) = (String::new(), false);
        let reaches = |at: u64| at + 1 >= first && at > position;
        for record in list.0.iter().filter(|record| reaches(record.place.position)) {
            let why = match self.try_one(record, damaged)? {
                Ok(()) => return Ok(RestoreResult::InPlace),
                Err(SnapshotError::Missing) => "it is missing".to_owned(),
                Err(SnapshotError::Damaged(why)) => why,
                Err(SnapshotError::Unread(why)) => {
                    is_unread = true;
                    why
                }
                Err(SnapshotError::Disk(fault)) => return Err(fault.into()),
            };
            tracing::warn!(
                partition = self.number(),
                object = record.object,
                why,
                "a snapshot cannot be used"
            );
            problems += &format!("; that at entry {} cannot be used: {why}", record.place.position);
        }
        Ok(if is_unread { RestoreResult::Unread } else { RestoreResult::NoneUsable(problems) })
    }

    fn try_one(
        &self,
        record: &SnapshotRecord,
        damaged: &mut BTreeSet<String>,
    ) -> Result<Result<(), SnapshotError>, OpenError> {
        if damaged.contains(&record.object) {
            return Ok(Err(SnapshotError::Damaged("it is damaged".to_owned())));
        }
        let fetched = self.fetch(record);
        if let Err(SnapshotError::Damaged(_)) = fetched {
            damaged.insert(record.object.clone());
        }
        match fetched {
            Ok(file) => {
                self.put_in_place(file)?;
                let (partition, position) = (self.number(), record.place.position);
                tracing::info!(partition, position, "this node begins with a snapshot");
                Ok(Ok(()))
            }
            Err(why) => Ok(Err(why)),
        }
    }
}
