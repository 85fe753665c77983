//! Backup: the state of one instant, copied to a second file while turns go on.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use redb::Database;
use redb::ReadTransaction;
use redb::ReadableTable;
use redb::TableHandle;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::engine::store::block::BlockReader;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::create::MakeDatabase;
use crate::engine::store::create::claim;
use crate::engine::store::create::database_with_margin;
use crate::engine::store::create::new_file;
#[cfg(any(test, feature = "cluster"))]
use crate::engine::store::create::plain_database;
use crate::engine::store::create::put_in_place;
use crate::engine::store::definition;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::journal;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::leftover::check_no_store;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::margin::MarginRow;
use crate::engine::store::meta::put_format;
use crate::engine::store::schema;
use crate::error::Fault;
use crate::limits;

/// Bytes copied in one commit: a backup's memory stays bounded.
const BYTES_PER_COMMIT: usize = 8 * 1024 * 1024;

/// The state of one instant. As long as it is held, the file cannot reuse freed space.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
    /// What was in the margin then.
    margin: Vec<MarginRow>,
}

impl Snapshot {
    pub(crate) fn new(transaction: ReadTransaction, margin: Vec<MarginRow>) -> Snapshot {
        Snapshot { transaction, margin }
    }

    /// The same as [`Snapshot::write_to`], to where anything may be: a store that has the name under which the file is made stays. The
    /// file has a margin.
    pub(crate) fn back_up_to(
        self,
        target: &Path,
        progress: &dyn Fn(u64) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        check_no_store(target)?;
        self.write_by(database_with_margin, target, progress)
    }

    /// Copies every row to a new file, checking each; `progress` is told how many so far, and may end it. Returns how many.
    ///
    /// # Errors
    /// [`Fault`] when the target exists or cannot be written, or when a row is damaged; what `progress` says.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn write_to(
        self,
        target: &Path,
        progress: &dyn Fn(u64) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        self.write_by(plain_database, target, progress)
    }

    fn write_by(
        self,
        make: MakeDatabase,
        target: &Path,
        progress: &dyn Fn(u64) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        let (new, file) = new_file(target)?;
        let kept = file.try_clone().map_err(file_fault)?;
        // Of pages that make no sense redb panics, and whoever waits for the copy is to hear of it.
        let mut builder = Database::builder();
        builder.set_cache_size(limits::STORE_CACHE_BYTES);
        let copy = move || self.copy_to(&make(&mut builder, file)?, progress);
        let copied = check_is_free(target)
            .and_then(|()| guarded(copy).unwrap_or_else(|panic| Err(panic.into_defect())));
        // The database has unlocked it when it was closed: if somebody else has it now, it is theirs to put in place or remove.
        if let Err(theirs) = claim(&new, &kept) {
            return copied.and(Err(theirs));
        }
        let copied = copied.and_then(|rows| put_in_free_place(&new, target).map(|()| rows));
        if copied.is_err() {
            // What is left of a copy that failed would only take room.
            drop(std::fs::remove_file(&new));
        }
        // A program that is just being started may have it open as well, and whoever opens the copy finds no lock.
        let _ = kept.unlock();
        copied
    }

    fn copy_to(&self, copy: &Database, progress: &dyn Fn(u64) -> Result<(), Fault>) -> Result<u64, Fault> {
        let journaled = self.journaled()?;
        let mut rows = journaled.values().filter(|is_there| **is_there).count() as u64;
        for definition in schema::all() {
            let table = table_number(definition.name());
            let counts = |key: &[u8]| !journaled.contains_key(&row_hash(table, key));
            rows = self.copy_table(copy, definition, rows, &counts, progress)?;
        }
        self.finish(copy)?;
        Ok(rows)
    }

    /// Puts what was in the margin into the journal of the copy, which has a margin that is empty, or none.
    fn finish(&self, copy: &Database) -> Result<(), Fault> {
        let transaction = copy.begin_write().map_err(store_fault)?;
        journal::append(&transaction, self.margin.iter().map(MarginRow::entry))?;
        put_format(&transaction, schema::FORMAT)?;
        transaction.commit().map_err(store_fault)
    }

    /// Checks the journal, and what was in the margin: which rows these have, by their hashes, as a whole window of keys would take much
    /// memory, and whether they are put or deleted by it.
    fn journaled(&self) -> Result<HashMap<u64, bool>, Fault> {
        let mut rows = HashMap::new();
        let mut note = |row: &[u8]| {
            let (_, _, mut row) = RowReader::open(row)?;
            while let Some(number) = row.next_table()? {
                while let Some((key, value)) = row.next_row()? {
                    rows.insert(row_hash(Some(number), key), value.is_some());
                }
            }
            Ok(())
        };
        journal::read_all(&self.transaction, |_, row| note(row))?;
        self.margin.iter().try_for_each(|row| note(row.entry().bytes))?;
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

/// The number under which the journal has rows of a table; `None` of those that are written in place.
fn table_number(name: &str) -> Option<u8> {
    u8::try_from(schema::MEMTABLE.iter().position(|table| table.name() == name)?).ok()
}

/// Tells rows apart that are counted.
fn row_hash(table: Option<u8>, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, table.map_or(u64::MAX, u64::from))
}

/// Puts a copy where it is to be, but not in the place of a file that has come there while it was made.
fn put_in_free_place(new: &Path, target: &Path) -> Result<(), Fault> {
    // Before it is looked whether there is one, as this takes long.
    File::open(new).and_then(|copy| copy.sync_all()).map_err(file_fault)?;
    check_is_free(target)?;
    put_in_place(new, target)
}

/// Refuses to copy over what is there already. Asked by who has the new file locked, as no other copy is put there then.
fn check_is_free(target: &Path) -> Result<(), Fault> {
    match target.try_exists().map_err(file_fault)? {
        true => Err(fault_of(target, &std::io::ErrorKind::AlreadyExists.into())),
        false => Ok(()),
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::io::ErrorKind;
    use std::path::PathBuf;

    use super::*;
    use crate::engine::store::Store;
    use crate::engine::store::StoreOptions;

    /// A store, where copies of it go, and the name under which they are made.
    fn store() -> (tempfile::TempDir, Store, [PathBuf; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a"), StoreOptions::default()).unwrap();
        let paths = ["copy", "copy.new"].map(|name| folder.path().join(name));
        (folder, store, paths)
    }

    fn snapshot(store: &Store) -> Snapshot {
        store.committer().snapshot().unwrap()
    }

    #[test]
    fn of_two_copies_to_one_name_the_second_is_refused_and_the_first_is_whole() {
        let (_folder, store, [target, new]) = store();
        let kinds = RefCell::new(BTreeSet::new());
        let second = || match snapshot(&store).write_to(&target, &|_| Ok(())) {
            Err(Fault::File(error)) => error.kind(),
            other => panic!("{other:?}"),
        };
        let progress = |_| {
            kinds.borrow_mut().insert(second());
            Ok(())
        };
        snapshot(&store).write_to(&target, &progress).unwrap();
        assert_eq!(kinds.take(), BTreeSet::from([ErrorKind::ResourceBusy]));
        assert_eq!(second(), ErrorKind::AlreadyExists);
        assert!(!new.exists());
        Store::open(&target, StoreOptions::default()).unwrap();
    }

    #[test]
    fn a_copy_whose_name_another_has_taken_puts_nothing_in_place_and_removes_nothing() {
        let (_folder, store, [target, new]) = store();
        let progress = |_| {
            std::fs::remove_file(&new).unwrap();
            std::fs::write(&new, "half a copy").unwrap();
            Ok(())
        };
        snapshot(&store).write_to(&target, &progress).unwrap_err();
        assert!(!target.exists());
        assert_eq!(std::fs::read(&new).unwrap(), b"half a copy");
    }

    #[test]
    fn what_a_crash_has_left_of_a_copy_is_in_nobodys_way() {
        let (_folder, store, [target, new]) = store();
        std::fs::write(&new, "half a copy").unwrap();
        snapshot(&store).write_to(&target, &|_| Ok(())).unwrap();
        assert!(target.exists() && !new.exists());
    }
}
