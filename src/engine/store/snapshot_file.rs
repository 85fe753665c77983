//! Snapshots of a file that follows a log, as files of their own: taken while turns go on, looked at, and put in place of a
//! file that is not there or has fallen behind.

#[cfg(feature = "cluster")]
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Weak;

use redb::Database;
use redb::ReadableDatabase;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
#[cfg(feature = "cluster")]
use crate::engine::store::create::new_file;
use crate::engine::store::create::put_in_place;
use crate::engine::store::inspect::Inspection;
use crate::engine::store::journal;
use crate::engine::store::lock_file::LockFile;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::log::LogPlace;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::store::Store;
use crate::error::Fault;
use crate::error::OpenError;

/// Where snapshots of an open store are taken. It does not keep the store open.
#[derive(Clone)]
pub(crate) struct SnapshotSource(Weak<Database>);

impl Store {
    /// Where its snapshots are taken.
    pub(crate) fn snapshots(&self) -> SnapshotSource {
        SnapshotSource(Arc::downgrade(&self.database))
    }
}

impl SnapshotSource {
    /// Writes what was last committed to a new file, instead of what an earlier crash has left there. `None` when the store is
    /// closed. Until it is done, the file of the store cannot be opened again: it is asked every few MiB whether it `goes_on`.
    ///
    /// # Errors
    /// [`Fault`] when the file cannot be written, when a row is damaged, or when it does not go on.
    pub(crate) fn write_to(
        &self,
        path: &Path,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<SnapshotFile>, Fault> {
        let transaction = match self.0.upgrade() {
            Some(database) => database.begin_read().map_err(store_fault)?,
            None => return Ok(None),
        };
        let file = SnapshotFile { path: path.to_owned() };
        file.remove();
        Snapshot::new(transaction, Vec::new()).write_to(path, &|_| match goes_on() {
            true => Ok(()),
            false => {
                Err(file_fault(std::io::Error::other("the copy was ended, as its file is to be closed")))
            }
        })?;
        Ok(Some(file))
    }
}

/// A file with a snapshot, which is removed when it is dropped.
pub(crate) struct SnapshotFile {
    path: PathBuf,
}

impl SnapshotFile {
    /// A new file to be written, instead of what an earlier crash has left there.
    ///
    /// # Errors
    /// [`Fault::File`] when it cannot be made.
    #[cfg(feature = "cluster")]
    pub(crate) fn create(path: &Path) -> Result<(SnapshotFile, File), Fault> {
        let (path, file) = new_file(path)?;
        // Nobody else reads the same snapshot, and who checks it opens it as a store.
        file.unlock().map_err(file_fault)?;
        Ok((SnapshotFile { path }, file))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks every page, and says which entry is the last that it includes.
    ///
    /// # Errors
    /// Why it is no snapshot.
    pub(crate) fn check(&self) -> Result<LogPlace, OpenError> {
        let damaged = |detail: String| OpenError::Damaged { path: self.path.clone(), detail };
        if let Some(problem) = Inspection::open(&self.path)?.check_pages()? {
            return Err(damaged(problem));
        }
        let inspection = Inspection::open(&self.path)?;
        let place = guarded(|| journal::last_entry(&inspection.transaction()?));
        Ok(place.unwrap_or_else(|panic| Err(panic.into_defect()))?)
    }

    /// Puts it in place of a file that nobody has open, if one is there. A crash leaves the one or the other.
    ///
    /// # Errors
    /// [`OpenError::Held`] when somebody has the file open; [`Fault::File`] when it cannot be put there.
    pub(crate) fn replace(self, path: &Path) -> Result<(), OpenError> {
        let _lock = LockFile::take(path)?;
        Ok(put_in_place(&self.path, path)?)
    }

    fn remove(&self) {
        match std::fs::remove_file(&self.path).map_err(file_fault) {
            Err(fault) if self.path.exists() => {
                tracing::warn!(%fault, "a file that is not needed any more stays")
            }
            _ => {}
        }
    }
}

impl Drop for SnapshotFile {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::engine::store::options::StoreOptions;

    #[test]
    fn a_snapshot_includes_what_was_committed_and_says_its_last_entry() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("a"), StoreOptions::default()).unwrap();
        let source = store.snapshots();
        let empty = source.write_to(&folder.path().join("b"), &|| true).unwrap().unwrap();
        assert_eq!(empty.check().unwrap(), LogPlace::default());
        store.flush_turn().unwrap();
        store.flush_turn().unwrap();
        let (position, checksum) = store.place();
        let file = source.write_to(&folder.path().join("b"), &|| true).unwrap().unwrap();
        assert_eq!((file.check().unwrap(), position), (LogPlace { position, checksum }, 2));
        drop(file);
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let before = files();
        source.write_to(&folder.path().join("b"), &|| false).err().expect("it does not go on");
        assert_eq!(files(), before, "nothing is left of it");
        drop(store);
        assert!(
            source.write_to(&folder.path().join("c"), &|| true).unwrap().is_none(),
            "the store is closed"
        );
    }

    #[test]
    fn a_snapshot_is_renamed_into_its_place_so_that_a_crash_leaves_the_one_or_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let store = Store::open(&path, StoreOptions::default()).unwrap();
        let snapshot = |name: &str| {
            let source = store.snapshots();
            source.write_to(&folder.path().join(name), &|| true).unwrap().unwrap()
        };
        let (held, file) = (snapshot("b"), snapshot("c"));
        assert!(matches!(held.replace(&path), Err(OpenError::Held { .. })), "somebody has the file open");
        let made = std::fs::metadata(file.path()).unwrap().ino();
        drop(store);
        file.replace(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), made, "it was copied");
        assert!(!folder.path().join("b").exists() && !folder.path().join("c").exists(), "nothing is left");
        Store::open(&path, StoreOptions::default()).unwrap();
    }
}
