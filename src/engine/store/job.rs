//! What one commit has to write, and the one who writes it, on whichever thread.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use redb::Database;
use redb::Durability;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::in_place;
use crate::engine::store::in_place::Epoch;
use crate::engine::store::journal;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::local_log::LocalLog;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::engine::store::meta::CommitCounters;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::meta::write_epoch;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::room::DiskRoom;
use crate::engine::store::row_write::RowWrite;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::stamp::WallRecord;
use crate::engine::store::watch::Watch;
use crate::error::Fault;
use crate::limits;

/// One commit, ready to be encoded and written.
pub(crate) struct Job {
    pub(crate) position: u64,
    pub(crate) epoch: Epoch,
    /// Whether the epoch begins with it.
    pub(crate) begins_epoch: bool,
    /// The entry, when it is one of the log already, with its checksum.
    pub(crate) followed: Option<(Vec<u8>, u64)>,
    /// About how many bytes its journal row has.
    pub(crate) bytes: u64,
    /// What the clocks showed in the turn, and the numbers and counters after it.
    pub(crate) time: Timestamp,
    pub(crate) wall: WallRecord,
    pub(crate) numbers: Numbers,
    pub(crate) counters: Vec<(QueueId, QueueCounters)>,
    /// The rows that the turn has changed, table by table.
    pub(crate) changed: Vec<Box<dyn RowWrite>>,
    pub(crate) queue_changes: Vec<QueueChange>,
    /// The rows that this commit flushes.
    pub(crate) flushed: Vec<Box<dyn RowWrite>>,
    /// The end of a generation all of whose rows are flushed with this commit, and what was counted at it.
    pub(crate) ended: Option<(u64, CommitCounters)>,
    /// What was promised of the disk to the commands of the turn.
    pub(crate) promised_bytes: u64,
}

impl Job {
    /// The checksummed journal row, chained to the one before, and its checksum.
    fn journal_row(&self, previous: u64, mut room: Vec<u8>) -> (Vec<u8>, u64) {
        let header = JournalHeader {
            position: self.position,
            previous,
            time: self.time,
            numbers: self.numbers,
            counters: self.counters.clone(),
            wall: self.wall,
        };
        room.clear();
        room.reserve(usize::try_from(self.bytes).unwrap_or(0));
        let mut row = RowWriter::new(&header, room);
        in_place::write(&mut row, self.epoch, &self.queue_changes);
        for rows in &self.changed {
            rows.journal(&mut row);
        }
        row.finish()
    }

    /// Writes what its commit writes beside the journal row.
    fn write(&self, transaction: &WriteTransaction, checksum: u64) -> Result<(), Fault> {
        if self.begins_epoch {
            write_epoch(transaction, self.epoch.number)?;
        }
        for change in &self.queue_changes {
            change.write(transaction)?;
        }
        for rows in &self.flushed {
            rows.flush(transaction)?;
        }
        if let Some((upto, counted)) = &self.ended {
            journal::drop_through(transaction, *upto)?;
            counted.save(transaction, checksum)?;
        }
        Ok(())
    }
}

/// Writes jobs, one after the other; after a failed one, none may follow.
#[derive(Clone)]
pub(crate) struct Committer {
    database: Arc<Database>,
    local: LocalLog,
    /// The log that is appended to before the file is written.
    log: Option<Arc<dyn Log>>,
    /// The checksum of the last journal row.
    checksum: Arc<AtomicU64>,
    /// About how many bytes the file has got since its last fsync, if there is a log before it.
    unsynced: Arc<AtomicU64>,
    /// Where journal rows are put together, one after the other: new room costs a fault for each of its pages.
    room_for_rows: Arc<Mutex<Vec<u8>>>,
    watch: Option<Arc<Watch>>,
    room: Option<DiskRoom>,
}

impl Committer {
    pub(crate) fn new(
        database: Arc<Database>,
        options: StoreOptions,
        log: Option<Arc<dyn Log>>,
        (checksum, unsynced): (Arc<AtomicU64>, Arc<AtomicU64>),
        watch: Option<Arc<Watch>>,
        room: Option<DiskRoom>,
    ) -> Committer {
        let local = LocalLog::new(database.clone(), options);
        Committer { database, local, log, checksum, unsynced, room_for_rows: Arc::default(), watch, room }
    }

    /// The state as it was last committed, to be copied while turns go on.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(Snapshot::new(self.database.begin_read().map_err(store_fault)?))
    }

    /// Writes a job in one transaction, durably: once it returns, its entry is on disk here, or acknowledged by the log
    /// before the file.
    ///
    /// # Errors
    /// The fault that makes the store useless. A panic is a fault: nothing is committed to the file.
    pub(crate) fn commit(&self, job: &Job) -> Result<(), Fault> {
        if let Some(room) = &self.room {
            room.make_way(job.bytes);
        }
        let committed = self.write(job);
        if let Some(room) = &self.room {
            room.redeem(job.promised_bytes);
        }
        committed?;
        // Before anybody is told: what went to a file that is not there any more is lost.
        self.watch.as_ref().map_or(Ok(()), |watch| watch.check())
    }

    fn write(&self, job: &Job) -> Result<(), Fault> {
        if let Some((row, checksum)) = &job.followed {
            return self.write_entry(job, row, *checksum);
        }
        let previous = self.checksum.load(Ordering::Acquire);
        let room = std::mem::take(&mut *self.lock_room());
        let (row, checksum) = guarded(|| job.journal_row(previous, room)).map_err(Fault::Defect)?;
        let written = self.write_entry(job, &row, checksum);
        if row.capacity() <= limits::JOURNAL_ROOM_KEPT {
            *self.lock_room() = row;
        }
        written
    }

    fn lock_room(&self) -> MutexGuard<'_, Vec<u8>> {
        self.room_for_rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_entry(&self, job: &Job, row: &[u8], checksum: u64) -> Result<(), Fault> {
        let entry = Entry { position: job.position, bytes: row };
        let durability = match &self.log {
            None => Durability::Immediate,
            Some(log) => {
                if job.followed.is_none() {
                    log.append(entry)?;
                }
                self.durability_behind_log(job)
            }
        };
        self.local.append_with(entry, durability, |transaction| job.write(transaction, checksum))?;
        self.checksum.store(checksum, Ordering::Release);
        Ok(())
    }

    /// How a commit is written that is in the log already: it could be lost, but redb gives no page back before an fsync.
    fn durability_behind_log(&self, job: &Job) -> Durability {
        let unsynced = self.unsynced.fetch_add(job.bytes, Ordering::Relaxed) + job.bytes;
        if unsynced < limits::UNSYNCED_BYTES_MAX && job.ended.is_none() {
            return Durability::None;
        }
        self.unsynced.store(0, Ordering::Relaxed);
        Durability::Immediate
    }
}
