//! What one commit has to write, and the one who writes it, on whichever thread.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use redb::Database;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::journal;
use crate::engine::store::journal::JournalHeader;
use crate::engine::store::journal::RowWriter;
use crate::engine::store::meta::CommitCounters;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::room::DiskRoom;
use crate::engine::store::row_write::RowWrite;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::stamp::WallRecord;
use crate::engine::store::transaction::begin;
use crate::engine::store::watch::Watch;
use crate::error::Fault;

/// One commit, ready to be encoded and written.
pub(crate) struct Job {
    pub(crate) position: u64,
    /// About how many bytes its journal row has.
    pub(crate) bytes: u64,
    /// What the clocks showed in the turn, and the numbers and counters after it.
    pub(crate) time: Timestamp,
    pub(crate) wall: WallRecord,
    pub(crate) numbers: Numbers,
    pub(crate) tallies: Vec<(QueueId, QueueCounters)>,
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
    fn journal_row(&self, previous: u64) -> (Vec<u8>, u64) {
        let header = JournalHeader {
            position: self.position,
            previous,
            time: self.time,
            numbers: self.numbers,
            tallies: self.tallies.clone(),
            wall: self.wall,
        };
        let mut row = RowWriter::new(&header, usize::try_from(self.bytes).unwrap_or(0));
        for rows in &self.changed {
            rows.journal(&mut row);
        }
        row.finish()
    }

    fn write(&self, transaction: &WriteTransaction, row: &[u8], checksum: u64) -> Result<(), Fault> {
        for change in &self.queue_changes {
            change.write(transaction)?;
        }
        journal::append(transaction, self.position, row)?;
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
    options: StoreOptions,
    /// The checksum of the last journal row.
    checksum: Arc<AtomicU64>,
    watch: Option<Arc<Watch>>,
    room: Option<DiskRoom>,
}

impl Committer {
    pub(crate) fn new(
        database: Arc<Database>,
        options: StoreOptions,
        checksum: Arc<AtomicU64>,
        watch: Option<Arc<Watch>>,
        room: Option<DiskRoom>,
    ) -> Committer {
        Committer { database, options, checksum, watch, room }
    }

    /// The state as it was last committed, to be copied while turns go on.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(Snapshot::new(self.database.begin_read().map_err(store_fault)?))
    }

    /// Writes a job in one transaction, durably.
    ///
    /// # Errors
    /// The fault that makes the store useless. A panic is a fault: nothing is committed.
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
        let previous = self.checksum.load(Ordering::Acquire);
        let (row, checksum) = guarded(|| job.journal_row(previous)).map_err(Fault::Defect)?;
        let committed = guarded(|| {
            let transaction = begin(&self.database, self.options)?;
            job.write(&transaction, &row, checksum)?;
            transaction.commit().map_err(store_fault)
        });
        committed.unwrap_or_else(|_| Err(damaged(&JOURNAL, PAGES_MAKE_NO_SENSE)))?;
        self.checksum.store(checksum, Ordering::Release);
        Ok(())
    }
}
