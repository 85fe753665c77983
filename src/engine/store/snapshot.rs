//! Backup: the state of one instant, copied to a second file while turns go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use redb::Database;
use redb::ReadTransaction;
use redb::ReadableTable;
use redb::TableHandle;

use crate::engine::store::block::BlockReader;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::create::new_file;
use crate::engine::store::create::put_in_place;
use crate::engine::store::definition;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::journal;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::schema;
use crate::error::Fault;

/// Bytes copied in one commit: a backup's memory stays bounded.
const BYTES_PER_COMMIT: usize = 8 * 1024 * 1024;

/// The state of one instant. As long as it is held, the file cannot reuse freed space.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
}

impl Snapshot {
    pub(crate) fn new(transaction: ReadTransaction) -> Snapshot {
        Snapshot { transaction }
    }

    /// Copies every row to a new file, checking each; `progress` is told how many so far, and may end it. Returns how many.
    ///
    /// # Errors
    /// [`Fault`] when the target exists or cannot be written, or when a row is damaged; what `progress` says.
    pub(crate) fn write_to(
        self,
        target: &Path,
        progress: &dyn Fn(u64) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        if target.try_exists().map_err(file_fault)? {
            return Err(fault_of(target, &std::io::ErrorKind::AlreadyExists.into()));
        }
        let (new, file) = new_file(target)?;
        // Of pages that make no sense redb panics, and whoever waits for the copy is to hear of it.
        let copied =
            guarded(move || self.copy_to(file, progress)).unwrap_or_else(|panic| Err(Fault::Defect(panic)));
        let copied = copied.and_then(|rows| put_in_place(&new, target).map(|()| rows));
        // What is left of a copy that failed would only take room.
        copied.inspect_err(|_| drop(std::fs::remove_file(&new)))
    }

    fn copy_to(&self, file: File, progress: &dyn Fn(u64) -> Result<(), Fault>) -> Result<u64, Fault> {
        let copy = Database::builder().create_file(file).map_err(store_fault)?;
        let journaled = self.journaled()?;
        let mut rows = journaled.values().filter(|is_there| **is_there).count() as u64;
        for definition in schema::all() {
            let counts = |key: &[u8]| !journaled.contains_key(&(definition.name().to_owned(), key.to_vec()));
            rows = self.copy_table(&copy, definition, rows, &counts, progress)?;
        }
        Ok(rows)
    }

    /// Checks the journal: which rows it has, and whether they are put or deleted by it.
    fn journaled(&self) -> Result<BTreeMap<(String, Vec<u8>), bool>, Fault> {
        let mut rows = BTreeMap::new();
        journal::read_all(&self.transaction, |_, row| {
            let (_, _, mut row) = RowReader::open(row)?;
            while let Some(number) = row.next_table()? {
                let table = schema::MEMTABLE.get(usize::from(number));
                let name = table.map(|table| table.name().to_owned()).unwrap_or_default();
                while let Some((key, value)) = row.next_row()? {
                    rows.insert((name.clone(), key.to_vec()), value.is_some());
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn copy_table(
        &self,
        copy: &Database,
        definition: RawTableDefinition,
        rows_before: u64,
        counts: &dyn Fn(&[u8]) -> bool,
        progress: &dyn Fn(u64) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        let in_blocks = schema::is_in_blocks(&definition);
        let source = self.transaction.open_table(definition).map_err(store_fault)?;
        let mut rows = source.iter().map_err(store_fault)?;
        let mut copied = rows_before;
        loop {
            let transaction = copy.begin_write().map_err(store_fault)?;
            let mut table = transaction.open_table(definition).map_err(store_fault)?;
            let (mut bytes, mut more) = (0, false);
            for row in rows.by_ref() {
                let (key, value) = row.map_err(store_fault)?;
                copied += counted((definition, in_blocks), key.value(), value.value(), counts)?;
                table.insert(key.value(), value.value()).map_err(store_fault)?;
                bytes += key.value().len() + value.value().len();
                if bytes >= BYTES_PER_COMMIT {
                    more = true;
                    break;
                }
            }
            drop(table);
            transaction.commit().map_err(store_fault)?;
            progress(copied)?;
            if !more {
                return Ok(copied);
            }
        }
    }
}

/// How many of the rows that a row of the file is, or has in it, count, now that its checksum fits.
fn counted(
    (definition, in_blocks): (RawTableDefinition, bool),
    key: &[u8],
    value: &[u8],
    counts: &dyn Fn(&[u8]) -> bool,
) -> Result<u64, Fault> {
    if definition.name() == definition::JOURNAL.name() {
        return Ok(0);
    }
    if !in_blocks {
        verify_checksum(&definition, key, value)?;
        return Ok(u64::from(counts(key)));
    }
    let (mut rows, mut count) = (BlockReader::open(definition, key, value)?, 0);
    while let Some((key, _)) = rows.next_row()? {
        count += u64::from(counts(key));
    }
    Ok(count)
}
