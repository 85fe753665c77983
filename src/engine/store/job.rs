//! What one commit has to write, and the one who writes it, on whichever thread.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use redb::Database;
use redb::Durability;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::engine::store::caught::store_fault;
use crate::engine::store::journal;
use crate::engine::store::local_log::LocalLog;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::engine::store::margin::SharedMargin;
use crate::engine::store::meta::CommitCounters;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::meta::write_epoch;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::room::DiskRoom;
use crate::engine::store::row_room::JournalRow;
use crate::engine::store::row_write::RowWrite;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::watch::Watch;
use crate::error::Fault;
use crate::limits;

/// One commit, ready to be written.
pub(crate) struct Job {
    pub(crate) position: u64,
    /// The checksummed journal row: the entry of the log.
    pub(crate) row: JournalRow,
    /// Whether the log has it already.
    pub(crate) is_followed: bool,
    /// The epoch that begins with it.
    pub(crate) begins_epoch: Option<u32>,
    pub(crate) queue_changes: Vec<QueueChange>,
    /// The rows that this commit flushes.
    pub(crate) flushed: Vec<Box<dyn RowWrite>>,
    /// The end of a generation all of whose rows are flushed with this commit, and what was counted at it.
    pub(crate) ended: Option<(u64, CommitCounters)>,
    /// What was promised of the disk to the commands of the turn.
    pub(crate) promised_bytes: u64,
}

impl Job {
    /// A commit that writes this row, and nothing beside it.
    pub(crate) fn new(position: u64, row: JournalRow, queue_changes: Vec<QueueChange>) -> Job {
        let (is_followed, begins_epoch, flushed, ended, promised_bytes) = (false, None, Vec::new(), None, 0);
        Job { position, row, is_followed, begins_epoch, queue_changes, flushed, ended, promised_bytes }
    }

    fn entry(&self) -> Entry<'_> {
        Entry { position: self.position, bytes: &self.row }
    }

    /// How many bytes its journal row has.
    pub(crate) fn bytes(&self) -> u64 {
        self.row.len() as u64
    }

    /// Whether its commit writes nothing beside the journal row.
    fn is_row_alone(&self) -> bool {
        let Job { begins_epoch, queue_changes, flushed, ended, .. } = self;
        begins_epoch.is_none() && queue_changes.is_empty() && flushed.is_empty() && ended.is_none()
    }

    /// Writes what its commit writes beside the journal row.
    fn write(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        if let Some(epoch) = self.begins_epoch {
            write_epoch(transaction, epoch)?;
        }
        for change in &self.queue_changes {
            change.write(transaction)?;
        }
        for rows in &self.flushed {
            rows.flush(transaction)?;
        }
        if let Some((upto, counted)) = &self.ended {
            journal::drop_through(transaction, *upto)?;
            counted.save(transaction)?;
        }
        Ok(())
    }
}

/// Writes jobs in their order; after one that failed, none may follow.
#[derive(Clone)]
pub(crate) struct Committer {
    database: Arc<Database>,
    local: LocalLog,
    /// The log that is appended to before the file is written.
    log: Option<Arc<dyn Log>>,
    /// About how many bytes the file has got since its last fsync, if there is a log before it.
    unsynced: Arc<AtomicU64>,
    watch: Option<Arc<Watch>>,
    room: Option<DiskRoom>,
}

impl Committer {
    pub(crate) fn new(
        database: Arc<Database>,
        options: StoreOptions,
        log: Option<Arc<dyn Log>>,
        unsynced: Arc<AtomicU64>,
        watch: Option<Arc<Watch>>,
        room: Option<DiskRoom>,
        margin: Option<SharedMargin>,
    ) -> Committer {
        let local = LocalLog::new(database.clone(), options, margin);
        Committer { database, local, log, unsynced, watch, room }
    }

    /// The state as it was last committed, to be copied while turns go on. To be called by who commits, and not beside a commit.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        let transaction = self.database.begin_read().map_err(store_fault)?;
        Ok(Snapshot::new(transaction, self.local.rows_in_margin()))
    }

    /// Puts all that was committed to where every version finds it: for a file that is to be closed.
    ///
    /// # Errors
    /// The fault of the disk. Nothing is lost by it.
    pub(crate) fn end_margin(&self) -> Result<(), Fault> {
        if let Some(room) = &self.room {
            room.make_way(self.local.bytes_in_margin());
        }
        self.local.end_margin()
    }

    /// How many turns may be committed together. An entry of a log is acknowledged by itself.
    pub(crate) fn turns_max(&self) -> usize {
        if self.log.is_some() { 1 } else { limits::TURNS_A_COMMIT }
    }

    /// Writes jobs that follow each other, durably and together: once it returns, their entries are on disk here, or acknowledged by
    /// the log before the file.
    ///
    /// # Errors
    /// The fault that makes the store useless. A panic is one. Whether the jobs are in the file is not known then.
    ///
    /// # Panics
    /// When several are committed behind a log ([`Committer::turns_max`]).
    pub(crate) fn commit(&self, jobs: &[Job]) -> Result<(), Fault> {
        let bytes = jobs.iter().map(Job::bytes).sum::<u64>() + self.local.bytes_in_margin();
        if let Some(room) = &self.room {
            room.make_way(bytes);
        }
        // A generation is many pages; and where nothing new is accepted, what goes on is to find room in the file.
        let ends_generation = jobs.iter().any(|job| job.ended.is_some());
        if ends_generation || self.room.as_ref().is_some_and(|room| room.view().is_full) {
            self.local.give_back_pages();
        }
        let committed = self.write(jobs, self.room.as_ref().is_none_or(|room| room.is_roomy_for(bytes)));
        if let Some(room) = &self.room {
            room.redeem(jobs.iter().map(|job| job.promised_bytes).sum());
        }
        committed?;
        // Before anybody is told: what went to a file that is not there any more is lost.
        self.watch.as_ref().map_or(Ok(()), |watch| watch.check())
    }

    fn write(&self, jobs: &[Job], is_roomy: bool) -> Result<(), Fault> {
        let durability = match (&self.log, jobs) {
            // What goes to the margin needs room in the journal later.
            (None, [job]) if job.is_row_alone() && is_roomy => return self.local.append_alone(job.entry()),
            (None, _) => Durability::Immediate,
            (Some(log), [job]) => {
                if !job.is_followed {
                    log.append(job.entry())?;
                }
                self.durability_behind_log(job)
            }
            (Some(_), _) => unreachable!("behind a log each turn is committed by itself"),
        };
        let entries: Vec<Entry<'_>> = jobs.iter().map(Job::entry).collect();
        let write = |transaction: &WriteTransaction| jobs.iter().try_for_each(|job| job.write(transaction));
        self.local.append_with(&entries, durability, write)
    }

    /// How a commit is written that is in the log already: it could be lost, but redb gives no page back before an fsync.
    fn durability_behind_log(&self, job: &Job) -> Durability {
        let unsynced = self.unsynced.fetch_add(job.bytes(), Ordering::Relaxed) + job.bytes();
        if unsynced < limits::UNSYNCED_BYTES_MAX && job.ended.is_none() {
            return Durability::None;
        }
        self.unsynced.store(0, Ordering::Relaxed);
        Durability::Immediate
    }
}
