//! The file of a partition, and the snapshots that are taken of it while it is open.

use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::cluster::stop::ClusterStop;
use crate::engine::log::SnapshotFile;
use crate::engine::log::SnapshotSource;
use crate::error::Fault;
use crate::mutex::Mutex;

/// What is behind the name of the file in that of a snapshot of it.
const SNAPSHOT: &str = ".snapshot";

/// What is behind it in that of a snapshot which is read back from the servers.
pub(crate) const READ_BACK: &str = ".check";

/// What is behind the names of copies beside the file, whole ones and those that are being written.
const COPIES: [&str; 3] = [SNAPSHOT, ".snapshot.new", ".check.new"];

/// The file of a partition on this node.
pub(crate) struct PartitionFile {
    path: PathBuf,
    /// Where snapshots of it are taken. Held while one is written, and the file is not opened anew meanwhile.
    source: Mutex<Option<SnapshotSource>>,
    first_open: Once,
    /// Whether it is to be closed, so that a snapshot that is being written gives way.
    is_closing: AtomicBool,
}

impl PartitionFile {
    pub(crate) fn new(path: PathBuf) -> PartitionFile {
        let (source, is_closing) = (Mutex::default(), AtomicBool::new(false));
        PartitionFile { path, source, first_open: Once::new(), is_closing }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file beside it.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    }

    /// Removes the copies that a crash has left beside it; nobody may be writing any.
    fn remove_copies(&self) {
        for copy in COPIES.map(|suffix| self.beside(suffix)) {
            match std::fs::remove_file(&copy) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(file = %copy.display(), %error, "what a crash has left of a snapshot stays");
                }
                _ => {}
            }
        }
    }

    /// Notes that it is open. The first time, what a crash has left beside it is removed: now no other process has the file, and
    /// nobody here has taken a snapshot of it.
    pub(crate) fn set_open(&self, source: SnapshotSource) {
        self.first_open.call_once(|| self.remove_copies());
        *self.source.lock() = Some(source);
    }

    /// Notes that it is closed. It waits until a snapshot that is being written has given way.
    pub(crate) fn set_closed(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        *self.source.lock() = None;
        self.is_closing.store(false, Ordering::Relaxed);
    }

    /// Writes a snapshot of it to another file, unless it is not open.
    ///
    /// # Errors
    /// [`Fault`] when that cannot be written, a row is damaged, or the file is to be closed before it is done.
    pub(crate) fn write_snapshot(&self, stop: &ClusterStop) -> Result<Option<SnapshotFile>, Fault> {
        let goes_on = || !stop.is_said() && !self.is_closing.load(Ordering::Relaxed);
        match &*self.source.lock() {
            Some(source) => source.write_to(&self.beside(SNAPSHOT), &goes_on),
            None => Ok(None),
        }
    }

    /// Holds it as a snapshot does that is written slowly.
    #[cfg(test)]
    pub(crate) fn held<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.source.lock();
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_a_crash_has_left_are_removed_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let kept = ["partition-1.redb", "partition-10.redb.snapshot", "cluster"];
        let copies = ["snapshot", "snapshot.new", "check.new"].map(|copy| format!("partition-1.redb.{copy}"));
        for name in kept.iter().copied().chain(copies.iter().map(String::as_str)) {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let file = PartitionFile::new(folder.path().join("partition-1.redb"));
        file.remove_copies();
        file.remove_copies();
        assert!(copies.iter().all(|name| !folder.path().join(name).exists()));
        assert!(kept.iter().all(|name| folder.path().join(name).exists()));
    }
}
