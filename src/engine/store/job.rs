//! What one commit has to write, and the one who writes it, on whichever thread.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use redb::Database;
use redb::Durability;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::engine::store::base::store_fault;
use crate::engine::store::journal;
use crate::engine::store::meta::Counted;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::open::StoreOptions;
use crate::engine::store::schema::Definition;
use crate::engine::store::snapshot::Snapshot;
use crate::error::Fault;

/// One commit, ready to be written.
pub(crate) struct Job {
    pub(crate) position: u64,
    /// The sealed journal row.
    pub(crate) row: Vec<u8>,
    pub(crate) queue_changes: Vec<QueueChange>,
    /// The rows that this commit folds.
    pub(crate) folded: Vec<FoldedTable>,
    /// The end of a generation all of whose rows are folded with this commit, and what was counted at it.
    pub(crate) ended: Option<(u64, Counted)>,
}

/// Rows of a table that are folded, in the order of their keys.
pub(crate) struct FoldedTable {
    pub(crate) definition: Definition,
    pub(crate) rows: Vec<FoldedRow>,
}

/// A row's key, and its sealed value unless it is deleted.
pub(crate) type FoldedRow = (Vec<u8>, Option<Vec<u8>>);

impl Job {
    fn write(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        for change in &self.queue_changes {
            change.write(transaction)?;
        }
        journal::append(transaction, self.position, &self.row)?;
        for FoldedTable { definition, rows } in &self.folded {
            let mut table = transaction.open_table(*definition).map_err(store_fault)?;
            for (key, value) in rows {
                match value {
                    Some(sealed) => drop(table.insert(&**key, &**sealed).map_err(store_fault)?),
                    None => drop(table.remove(&**key).map_err(store_fault)?),
                }
            }
        }
        if let Some((last_position, counted)) = &self.ended {
            journal::drop_through(transaction, *last_position)?;
            counted.save(transaction)?;
        }
        Ok(())
    }
}

/// Writes jobs, one after the other; after a failed one, none may follow.
#[derive(Clone)]
pub(crate) struct Committer {
    database: Arc<Database>,
    options: StoreOptions,
}

impl Committer {
    pub(crate) fn new(database: Arc<Database>, options: StoreOptions) -> Committer {
        Committer { database, options }
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
        let committed = catch_unwind(AssertUnwindSafe(|| {
            let transaction = begin(&self.database, self.options)?;
            job.write(&transaction)?;
            transaction.commit().map_err(store_fault)
        }));
        committed.unwrap_or_else(|panic| Err(Fault::Defect(panic_text(&*panic))))
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

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}
