//! Backup: the state of one instant, copied to a second file while turns go on.

use std::path::Path;

use redb::Database;
use redb::ReadTransaction;
use redb::ReadableTable;
use redb::TableHandle;

use crate::engine::store::base::store_fault;
use crate::engine::store::create::new_file;
use crate::engine::store::create::put_in_place;
use crate::engine::store::journal;
use crate::engine::store::journal::RowReader;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::schema;
use crate::engine::store::schema::Definition;
use crate::engine::store::seal::unseal;
use crate::error::Fault;

/// Rows copied in one commit: a backup's memory stays bounded.
const ROWS_PER_COMMIT: usize = 10_000;

/// The state of one instant. As long as it is held, the file cannot reuse freed space.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
}

impl Snapshot {
    pub(crate) fn new(transaction: ReadTransaction) -> Snapshot {
        Snapshot { transaction }
    }

    /// Copies every row to a new file, checking each; `progress` is told how many so far. Returns how many.
    ///
    /// # Errors
    /// [`Fault`] when the target exists or cannot be written, or when a row is damaged.
    pub(crate) fn write_to(self, target: &Path, progress: &dyn Fn(u64)) -> Result<u64, Fault> {
        if target.try_exists().map_err(file_fault)? {
            return Err(fault_of(target, &std::io::ErrorKind::AlreadyExists.into()));
        }
        let new = new_file(target)?;
        let copy = Database::builder().create(&new).map_err(store_fault)?;
        let mut rows = self.count_journal()?;
        for definition in schema::all() {
            rows = self.copy_table(&copy, definition, rows, progress)?;
        }
        drop(copy);
        put_in_place(&new, target)?;
        Ok(rows)
    }

    /// Checks the journal, and counts the rows in it.
    fn count_journal(&self) -> Result<u64, Fault> {
        let mut rows = 0;
        journal::read_all(&self.transaction, |_, row| {
            let (_, _, mut row) = RowReader::open(row)?;
            while row.next_table()?.is_some() {
                while row.next_row()?.is_some() {
                    rows += 1;
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn copy_table(
        &self,
        copy: &Database,
        definition: Definition,
        rows_before: u64,
        progress: &dyn Fn(u64),
    ) -> Result<u64, Fault> {
        let source = self.transaction.open_table(definition).map_err(store_fault)?;
        let mut rows = source.iter().map_err(store_fault)?;
        let mut copied = rows_before;
        loop {
            let transaction = copy.begin_write().map_err(store_fault)?;
            let mut table = transaction.open_table(definition).map_err(store_fault)?;
            let mut batch = 0;
            for row in rows.by_ref().take(ROWS_PER_COMMIT) {
                let (key, sealed) = row.map_err(store_fault)?;
                if definition.name() != schema::JOURNAL.name() {
                    unseal(&definition, key.value(), sealed.value())?;
                }
                table.insert(key.value(), sealed.value()).map_err(store_fault)?;
                batch += 1;
            }
            drop(table);
            transaction.commit().map_err(store_fault)?;
            copied += batch as u64;
            progress(copied);
            if batch < ROWS_PER_COMMIT {
                return Ok(copied);
            }
        }
    }
}
