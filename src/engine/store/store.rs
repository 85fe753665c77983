//! The store: one redb file, turned one transaction at a time by the thread that writes.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use redb::Database;
use redb::Durability;
use redb::ReadableDatabase;
use redb::WriteTransaction;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Tally;
use crate::engine::store::key::Key;
use crate::engine::store::lock_file::LockFile;
use crate::engine::store::open::StoreOptions;
use crate::engine::store::schema;
use crate::engine::store::shelf::Shelf;
use crate::engine::store::shelf::store_fault;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::turn::Turn;
use crate::error::Fault;
use crate::id::QueueName;

/// Names of the rows of the meta table.
pub(crate) const FORMAT_ROW: &str = "format";
pub(crate) const EPOCH_ROW: &str = "epoch";
pub(crate) const NUMBERS_ROW: &str = "numbers";
pub(crate) const BATCH_ROW: &str = "batch";

/// The last batch that was applied, and its instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchRecord {
    pub(crate) position: u64,
    pub(crate) hash: u64,
    pub(crate) time: Timestamp,
}

/// What the store keeps in memory beside the file: little, bounded, and rewritten in many turns.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) numbers: Numbers,
    pub(crate) batch: BatchRecord,
    pub(crate) queues: BTreeMap<QueueId, Arc<QueueRecord>>,
    pub(crate) names: BTreeMap<QueueName, QueueId>,
    pub(crate) tallies: BTreeMap<QueueId, Tally>,
    pub(crate) dirty_tallies: BTreeSet<QueueId>,
}

/// The store. After a fault it refuses everything: memory may be ahead of the disk, and opening is the recovery.
pub(crate) struct Store {
    pub(crate) database: Database,
    pub(crate) options: StoreOptions,
    pub(crate) epoch: u32,
    pub(crate) kept: Kept,
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
        let transaction = begin(&self.database, self.options)?;
        let mut turn = Turn::new(&transaction, &mut self.kept);
        let done = work(&mut turn)?;
        if !turn.changed() {
            drop(turn);
            transaction.abort().map_err(store_fault)?;
            return Ok(done);
        }
        turn.write_back()?;
        drop(turn);
        write_meta(&transaction, &self.kept)?;
        transaction.commit().map_err(store_fault)?;
        Ok(done)
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

/// Begins a transaction with the durability that the options ask for.
pub(crate) fn begin(database: &Database, options: StoreOptions) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write().map_err(store_fault)?;
    transaction.set_durability(Durability::Immediate).map_err(store_fault)?;
    transaction.set_two_phase_commit(options.strict);
    transaction.set_quick_repair(options.quick_repair);
    Ok(transaction)
}

fn write_meta(transaction: &WriteTransaction, kept: &Kept) -> Result<(), Fault> {
    let meta = Shelf::new(transaction, schema::META);
    meta.set(&Key::default().text(NUMBERS_ROW), Some(&kept.numbers))?;
    meta.set(&Key::default().text(BATCH_ROW), Some(&kept.batch))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}
