//! The store: one redb file, turned one commit at a time by the thread that writes.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use redb::Database;
use redb::Durability;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::clock::Timestamp;
use crate::engine::store::base::Base;
use crate::engine::store::base::store_fault;
use crate::engine::store::fold::Shelved;
use crate::engine::store::journal;
use crate::engine::store::journal::Header;
use crate::engine::store::journal::RowWriter;
use crate::engine::store::lock_file::LockFile;
use crate::engine::store::meta::Kept;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::open::StoreOptions;
use crate::engine::store::schema::Shelves;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::turn::Turn;
use crate::engine::store::window::Slice;
use crate::engine::store::window::Window;
use crate::error::Fault;
use crate::limits;

/// The store. After a fault it refuses everything: memory may be ahead of the disk, and opening is the recovery.
pub(crate) struct Store {
    pub(crate) database: Database,
    pub(crate) options: StoreOptions,
    pub(crate) epoch: u32,
    pub(crate) shelves: Shelves,
    pub(crate) kept: Kept,
    pub(crate) window: Window,
    /// Room for the next journal row.
    pub(crate) buffer: Vec<u8>,
    pub(crate) failed: Option<Fault>,
    /// Held as long as the store is open; released after the database is closed.
    pub(crate) _lock: Option<LockFile>,
}

impl Store {
    /// The number of this opening of the file.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Position and hash of the last batch.
    #[cfg(test)]
    pub(crate) fn batch(&self) -> (u64, u64) {
        (self.kept.batch.position, self.kept.batch.hash)
    }

    /// The instant of the last batch.
    pub(crate) fn time(&self) -> Timestamp {
        self.kept.batch.time
    }

    /// Runs one turn: what it writes is committed once, with an fsync, if it writes anything.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before. A panic inside the turn is a fault: nothing is committed.
    pub(crate) fn turn<T>(
        &mut self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if let Some(fault) = &self.failed {
            return Err(fault.clone());
        }
        let turned = catch_unwind(AssertUnwindSafe(|| self.turn_or_panic(work)));
        let turned = turned.unwrap_or_else(|panic| Err(Fault::Defect(panic_text(&*panic))));
        if let Err(fault) = &turned {
            self.failed = Some(fault.clone());
        }
        turned
    }

    fn turn_or_panic<T>(&mut self, work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut turn = Turn {
            base: Base::new(&self.database),
            shelves: &mut self.shelves,
            kept: &mut self.kept,
            queue_changes: Vec::new(),
            changed: false,
        };
        let done = work(&mut turn)?;
        let Turn { queue_changes, changed, .. } = turn;
        self.shelves.each().into_iter().for_each(|shelf| shelf.trim());
        if changed {
            self.commit(queue_changes)?;
        }
        Ok(done)
    }

    /// One transaction: the journal row of this turn, and a slice of the fold of the oldest generation.
    fn commit(&mut self, queue_changes: Vec<QueueChange>) -> Result<(), Fault> {
        let position = self.kept.batch.position + 1;
        let row = self.journal_row(position);
        let bytes = row.len() as u64;
        let transaction = begin(&self.database, self.options)?;
        for change in queue_changes {
            change.write(&transaction)?;
        }
        journal::append(&transaction, position, &row)?;
        self.keep_buffer(row);
        if self.window.append(position, bytes) {
            self.shelves.each().into_iter().for_each(|shelf| shelf.seal());
        }
        if let Some(slice) = self.window.slice(bytes) {
            self.fold(&transaction, &slice)?;
        }
        transaction.commit().map_err(store_fault)
    }

    /// The sealed bytes of the journal row, chained to the one before.
    fn journal_row(&mut self, position: u64) -> Vec<u8> {
        let touched = std::mem::take(&mut self.kept.touched_tallies).into_iter();
        let header = Header {
            position,
            previous: self.kept.batch.hash,
            time: self.kept.batch.time,
            numbers: self.kept.numbers,
            tallies: touched.filter_map(|queue| Some((queue, *self.kept.tallies.get(&queue)?))).collect(),
        };
        let mut row = RowWriter::new(std::mem::take(&mut self.buffer), &header);
        for shelf in self.shelves.each() {
            shelf.write_touched(&mut row, self.window.generation());
        }
        let (row, seal) = row.finish();
        (self.kept.batch.position, self.kept.batch.hash) = (position, seal);
        row
    }

    fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= limits::JOURNAL_BUFFER_BYTES {
            self.buffer = buffer;
        }
    }

    fn fold(&mut self, transaction: &WriteTransaction, slice: &Slice) -> Result<(), Fault> {
        let mut shelves = self.shelves.each();
        if slice.begins {
            shelves.iter_mut().for_each(|shelf| shelf.begin_fold());
        }
        let mut units = slice.units(units_left(&shelves));
        for shelf in &mut shelves {
            if units > 0 {
                shelf.fold(transaction, slice.sealed.generation, &mut units)?;
            }
        }
        if units_left(&shelves) == 0 {
            journal::drop_through(transaction, slice.sealed.last_position)?;
            self.kept.save(transaction)?;
            self.window.folded();
        }
        Ok(())
    }

    /// The state as it is now, to be copied while turns go on.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(Snapshot::new(self.database.begin_read().map_err(store_fault)?))
    }

    /// Closes the file.
    ///
    /// # Errors
    /// The fault that stopped the store before.
    pub(crate) fn close(self) -> Result<(), Fault> {
        let Store { database, failed, _lock: lock, .. } = self;
        drop(database);
        drop(lock);
        failed.map_or(Ok(()), Err)
    }
}

fn units_left(shelves: &[&mut dyn Shelved]) -> u64 {
    shelves.iter().map(|shelf| shelf.units_left()).sum()
}

/// Begins a transaction with the durability that the options ask for.
pub(crate) fn begin(database: &Database, options: StoreOptions) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write().map_err(store_fault)?;
    transaction.set_durability(Durability::Immediate).map_err(store_fault)?;
    transaction.set_two_phase_commit(options.strict);
    transaction.set_quick_repair(options.quick_repair);
    Ok(transaction)
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}
