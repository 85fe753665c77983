//! The store: one redb file behind memtables, turned by the thread that writes.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use redb::Database;

use crate::engine::rules::record::QueueRecord;
use crate::engine::store::base::Base;
use crate::engine::store::caught::guarded;
use crate::engine::store::in_place;
use crate::engine::store::in_place::Epoch;
use crate::engine::store::job::Committer;
use crate::engine::store::job::Job;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::lock_file::LockFile;
use crate::engine::store::log::Log;
use crate::engine::store::margin::SharedMargin;
use crate::engine::store::memtables::Memtables;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::meta::StoreMeta;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::room::DiskRoom;
use crate::engine::store::row_room::RowRoom;
use crate::engine::store::stamp::Stamp;
use crate::engine::store::turn::Turn;
use crate::engine::store::watch::Watch;
use crate::engine::store::window::JournalWindow;
use crate::engine::store::window::Slice;
use crate::error::Fault;
use crate::limits;

/// The store. After a fault it refuses everything: memory may be ahead of the disk, and opening is the recovery.
pub(crate) struct Store {
    pub(crate) database: Arc<Database>,
    pub(crate) options: StoreOptions,
    pub(crate) epoch: Epoch,
    pub(crate) memtables: Memtables,
    pub(crate) meta: StoreMeta,
    pub(crate) window: JournalWindow,
    /// The last job that flushes rows, until it is known to be committed.
    pub(crate) flushing: Option<u64>,
    /// The room of journal rows that are written.
    pub(crate) room_for_rows: RowRoom,
    /// Where short commits of the file go first, if it has a margin.
    pub(crate) margin: Option<SharedMargin>,
    /// The log that decides, if the file is only a copy of one.
    pub(crate) log: Option<Arc<dyn Log>>,
    /// About how many bytes such a file has got since it was last synced.
    pub(crate) unsynced: Arc<AtomicU64>,
    pub(crate) failed: Option<Fault>,
    /// Where the file is; a store in memory is nowhere.
    pub(crate) watch: Option<Arc<Watch>>,
    /// What the disk has room for, if that is looked after.
    pub(crate) room: Option<DiskRoom>,
    /// Held as long as the store is open; released after the database is closed.
    pub(crate) _lock: Option<LockFile>,
}

impl Store {
    /// The number of this opening of the file.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.number
    }

    /// The position of the last journal row, and its checksum; both zero without one.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.meta.batch.position, self.meta.batch.hash)
    }

    /// What the clocks showed with the last batch.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(self.meta.batch.time, self.meta.batch.wall)
    }

    /// Notes what the clocks show, for the next commit.
    pub(crate) fn set_stamp(&mut self, stamp: Stamp) {
        self.meta.set_stamp(stamp);
    }

    /// A commit that says what the clocks show and nothing else; `None` where nobody follows, or after a fault.
    pub(crate) fn prepare_stamp(&mut self, stamp: Stamp) -> Option<Job> {
        self.log.as_ref()?;
        let prepared = self.guard(|store| {
            store.set_stamp(stamp);
            Ok(store.job(Vec::new()))
        });
        prepared.ok()
    }

    /// Who writes this store's jobs.
    pub(crate) fn committer(&self) -> Committer {
        let (watch, room) = (self.watch.clone(), self.room.clone());
        let (database, log) = (self.database.clone(), self.log.clone());
        // A file behind a log is not synced with each commit.
        let margin = self.margin.clone().filter(|_| log.is_none());
        Committer::new(database, self.options, log, self.unsynced.clone(), watch, room, margin)
    }

    /// Most that one command may weigh: its turn has to fit into an entry of the log.
    pub(crate) fn command_bytes_max(&self) -> Option<usize> {
        self.log.as_ref().map(|_| limits::LOG_COMMAND_BYTES_MAX)
    }

    /// What the disk has room for, if that is looked after.
    pub(crate) fn room(&self) -> Option<&DiskRoom> {
        self.room.as_ref()
    }

    /// All queues.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &QueueRecord> {
        self.meta.queues.values().map(|queue| &**queue)
    }

    /// Whether there is a file that has to be looked after.
    pub(crate) fn has_file(&self) -> bool {
        self.watch.is_some()
    }

    /// Looks whether the file is still there, and how much room the disk has.
    ///
    /// # Errors
    /// The file is not there any more.
    pub(crate) fn look_at_disk(&mut self) -> Result<(), Fault> {
        if let Some(room) = &self.room {
            room.tick();
        }
        match self.watch.as_ref().map_or(Ok(()), |watch| watch.check()) {
            Ok(()) => Ok(()),
            Err(fault) => {
                self.fail(&fault);
                Err(fault)
            }
        }
    }

    /// Runs one turn and commits it before it returns, for tests.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before. A panic inside the turn is a fault: nothing is committed.
    #[cfg(test)]
    pub(crate) fn turn<T>(
        &mut self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (done, job) = self.prepare(work)?;
        job.map_or(Ok(()), |job| self.commit(&[job]))?;
        Ok(done)
    }

    /// Commits jobs together before it returns.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn commit(&mut self, jobs: &[Job]) -> Result<(), Fault> {
        let Some(last) = jobs.last() else { return Ok(()) };
        self.committer().commit(jobs).inspect_err(|fault| self.fail(fault))?;
        self.mark_committed(last.position);
        Ok(())
    }

    /// Flushes once while nothing is asked, and commits that before it returns, for tests.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before.
    #[cfg(test)]
    pub(crate) fn flush_turn(&mut self) -> Result<(), Fault> {
        let job = self.prepare_flush()?;
        self.commit(&[job])
    }

    /// Runs one turn in memory. What it writes comes back as a job, if it writes anything: jobs are to be committed in
    /// their order, and nothing that follows from a turn may be published before its job is.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before. A panic inside the turn is a fault: it is not committed.
    pub(crate) fn prepare<T>(
        &mut self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>,
    ) -> Result<(T, Option<Job>), Fault> {
        self.guard(|store| store.prepare_unguarded(work))
    }

    fn prepare_unguarded<T>(
        &mut self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>,
    ) -> Result<(T, Option<Job>), Fault> {
        let mut turn = self.begin_turn();
        let done = work(&mut turn)?;
        let Turn { queue_changes, changed, base, .. } = turn;
        let has_read = base.has_read();
        Ok((done, self.end_turn(changed.then_some(queue_changes), has_read)))
    }

    fn begin_turn(&mut self) -> Turn<'_> {
        let position = self.meta.batch.position + 1;
        self.memtables.begin_turn(position);
        Turn {
            base: Base::new(&self.database),
            memtables: &mut self.memtables,
            meta: &mut self.meta,
            last_named: RefCell::default(),
            queue_changes: Vec::new(),
            changed: false,
            written: Default::default(),
            bytes_max: if self.log.is_some() { limits::LOG_TURN_BYTES } else { u64::MAX },
            trial: None,
        }
    }

    /// What a turn has written as a job; none if it has written nothing.
    fn end_turn(&mut self, queue_changes: Option<Vec<QueueChange>>, has_read: bool) -> Option<Job> {
        if has_read {
            self.memtables.each(&mut |memtable| memtable.trim());
        }
        queue_changes.map(|queue_changes| self.job(queue_changes))
    }

    /// Whether there is enough to flush while nothing else is to be done.
    pub(crate) fn has_idle_work(&self) -> bool {
        self.failed.is_none() && self.window.has_idle_work()
    }

    /// A commit that does nothing but flush, as part of what is left to be flushed.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before.
    pub(crate) fn prepare_flush(&mut self) -> Result<Job, Fault> {
        self.guard(|store| Ok(store.idle_job()))
    }

    fn idle_job(&mut self) -> Job {
        let mut job = self.job_of_turn(Vec::new());
        if self.window.append_idle(job.position, job.bytes()) {
            self.end_generation(job.position);
        }
        let slice = self.window.idle_slice();
        self.flush(&mut job, &slice);
        job
    }

    /// What this turn has changed, and a slice of the flush of the oldest generation.
    pub(crate) fn job(&mut self, queue_changes: Vec<QueueChange>) -> Job {
        let job = self.job_of_turn(queue_changes);
        self.with_flush(job)
    }

    /// A job with a slice of the flush of the oldest generation.
    pub(crate) fn with_flush(&mut self, mut job: Job) -> Job {
        if self.window.append(job.position, job.bytes()) {
            self.end_generation(job.position);
        }
        if let Some(slice) = self.window.slice(job.bytes()) {
            self.flush(&mut job, &slice);
        }
        job
    }

    /// What this turn has changed.
    fn job_of_turn(&mut self, queue_changes: Vec<QueueChange>) -> Job {
        let StoreMeta { batch, numbers, counters, touched_counters, .. } = &mut self.meta;
        batch.position += 1;
        let touched = std::mem::take(touched_counters).into_iter();
        let header = JournalHeader {
            position: batch.position,
            previous: batch.hash,
            time: batch.time,
            numbers: *numbers,
            counters: touched.filter_map(|queue| Some((queue, *counters.get(&queue)?))).collect(),
            wall: batch.wall,
        };
        let mut row = RowWriter::new(&header, self.room_for_rows.take());
        in_place::write(&mut row, self.epoch, &queue_changes);
        self.memtables.each(&mut |memtable| memtable.journal(&mut row));
        let (row, checksum) = row.finish();
        self.meta.batch.hash = checksum;
        Job::new(self.meta.batch.position, self.room_for_rows.filled(row), queue_changes)
    }

    /// Ends the generation that is being filled with the commit at a position.
    pub(crate) fn end_generation(&mut self, position: u64) {
        self.memtables.end_generation(position);
    }

    pub(crate) fn flush(&mut self, job: &mut Job, slice: &Slice) {
        if slice.begins {
            self.memtables.each(&mut |memtable| memtable.begin_flush());
        }
        let mut budget = slice.budget(self.units_left());
        self.memtables.each(&mut |memtable| {
            if !budget.is_used_up() {
                job.flushed.extend(memtable.flush(slice.upto, job.position, &mut budget));
            }
        });
        if !job.flushed.is_empty() {
            self.flushing = Some(job.position);
        }
        if self.units_left() == 0 {
            job.ended = Some((slice.upto, self.meta.counted()));
            self.window.flushed();
        }
    }

    fn units_left(&mut self) -> u64 {
        let mut units = 0;
        self.memtables.each(&mut |memtable| units += memtable.units_left());
        units
    }

    /// Notes that all jobs up to a position are committed: rows they have flushed are found in their tables now.
    pub(crate) fn mark_committed(&mut self, position: u64) {
        let Some(last) = self.flushing else { return };
        self.memtables.each(&mut |memtable| memtable.mark_committed(position));
        if last <= position {
            self.flushing = None;
        }
    }

    /// Does something to the store, unless a fault has stopped it; a fault of this, or a panic, stops it.
    pub(crate) fn guard<T>(&mut self, work: impl FnOnce(&mut Store) -> Result<T, Fault>) -> Result<T, Fault> {
        if let Some(fault) = &self.failed {
            return Err(fault.clone());
        }
        let done = guarded(|| work(self)).unwrap_or_else(|panic| Err(panic.into_defect()));
        done.inspect_err(|fault| self.fail(fault))
    }

    /// Notes that a job could not be committed.
    pub(crate) fn fail(&mut self, fault: &Fault) {
        self.failed.get_or_insert_with(|| fault.clone());
    }

    /// Closes the file.
    ///
    /// # Errors
    /// The fault that stopped the store before, or now.
    pub(crate) fn close(mut self) -> Result<(), Fault> {
        let closed = self.guard(|store| store.committer().end_margin());
        let Store { database, margin, _lock: lock, .. } = self;
        drop((database, margin));
        drop(lock);
        closed
    }
}
