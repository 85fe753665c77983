//! Giving back the room that a file takes and does not need.

use std::path::Path;
use std::sync::Arc;

use redb::CompactionError;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::job::Job;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::store::Store;
use crate::engine::store::window::JournalWindow;
use crate::error::Fault;
use crate::error::OpenError;

/// How large a file was before it was compacted, and how large it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Compaction {
    /// Its bytes before.
    pub bytes_before: u64,
    /// Its bytes now.
    pub bytes_after: u64,
}

/// Makes the file of an engine that no engine has open as small as what it holds, and says how much that gave back.
///
/// A file grows to the most it ever held, and uses again what was given up in it; it does not become smaller by itself. What
/// it holds stays as it is, and so does the place in its log of one that belongs to a node of a cluster. A process that dies meanwhile leaves a file that opens as before, with all it held.
///
/// It flushes the journal, moves what stands at the end of the file forward, and blocks until that is done; in async code, give it
/// a thread that may block. A file of an older format becomes one of this version's, as when an engine opens it. The file may
/// grow by what its journal holds before it shrinks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), seriatim::Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let path = folder.path().join("orders.redb");
/// use seriatim::{Engine, QueueOptions};
///
/// let engine = Engine::open(&path).await?;
/// engine.client().create_queue("orders", QueueOptions::by_position()).await?;
/// engine.close().await;
///
/// let found = seriatim::store::compact(&path)?;
/// assert!(found.bytes_after <= found.bytes_before);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`OpenError`] as for an engine: it is not there, not an engine's file or a newer one, damaged, held by an engine (it is
/// named), or the disk fails.
pub fn compact(path: impl AsRef<Path>) -> Result<Compaction, OpenError> {
    let path = path.as_ref();
    let bytes_before = bytes_of(path)?;
    let store = Store::open_within_epoch(path, one_generation(StoreOptions::default()))?;
    let compacted = guarded(|| store.compact());
    compacted.unwrap_or_else(|panic| Err(panic.fault_in(&JOURNAL)))?;
    Ok(Compaction { bytes_before, bytes_after: bytes_of(path)? })
}

/// One generation, however much there is.
fn one_generation(options: StoreOptions) -> StoreOptions {
    StoreOptions { generation_bytes: u64::MAX, ..options }
}

impl Store {
    /// Flushes all that is in the journal, which is one generation: what was purged meanwhile would stay in it. No journal row says
    /// so: a log before the file would not have it.
    fn flush_all(&mut self) -> Result<(), Fault> {
        let position = self.meta.batch.position;
        self.window = JournalWindow::new(1, 0);
        self.window.append(position, 1);
        self.end_generation(position);
        let mut job = Job::new(position, self.room_for_rows.filled(Vec::new()), Vec::new());
        let slice = self.window.slice(1).expect("a generation is full");
        self.flush(&mut job, &slice);
        assert!(job.ended.is_some(), "a generation that is flushed whole has ended");
        self.committer().commit(&[job])
    }

    /// Flushes its journal, moves pages to the front of the file until none can be moved, and closes it.
    pub(crate) fn compact(mut self) -> Result<(), Fault> {
        // What was in it is in the journal since the file was opened, and nothing comes any more.
        self.margin = None;
        self.flush_all()?;
        let Store { database, watch, _lock: lock, .. } = self;
        let mut database = Arc::into_inner(database).expect("nobody else has this store");
        while database.compact().map_err(fault_of_compaction)? {}
        drop(database);
        // Before anybody is told that it is smaller: it may have been replaced meanwhile.
        watch.map_or(Ok(()), |watch| watch.check())?;
        drop(lock);
        Ok(())
    }
}

fn fault_of_compaction(error: CompactionError) -> Fault {
    match error {
        CompactionError::Storage(error) => store_fault(error),
        other => store_fault(redb::StorageError::Io(std::io::Error::other(other.to_string()))),
    }
}

fn bytes_of(path: &Path) -> Result<u64, OpenError> {
    Ok(std::fs::metadata(path).map_err(|error| fault_of(path, &error))?.len())
}
