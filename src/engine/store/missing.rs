//! What a file of ours has to have, and nothing else: what is missing would be made anew, and what was in it would be gone
//! without a word.

use redb::Database;
use redb::ReadableDatabase;
use redb::ReadableTable;
use redb::ReadableTableMetadata;
use redb::TableHandle;
use redb::UntypedTableHandle;

use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::definition::META;
use crate::engine::store::format3;
use crate::engine::store::key::name_key;
use crate::engine::store::meta::BATCH_ROW;
use crate::engine::store::meta::EPOCH_ROW;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::meta::NUMBERS_ROW;
use crate::engine::store::schema;
use crate::engine::store::table::Table;
use crate::error::Fault;

/// The first number of the tables that came with format 3.
const FIRST_OF_FORMAT_3: usize = 17;

/// The first number of the tables that are made when a file of format 4 is opened (`open.rs`).
const MADE_LATER: usize = schema::Topics::NUMBER as usize;

/// Checks that nothing is missing from a file of this format or an older one, before anything is written to it.
///
/// # Errors
/// [`Fault::Damaged`] says what is.
pub(crate) fn check_whole(database: &Database, found: u32) -> Result<(), Fault> {
    let transaction = database.begin_read().map_err(store_fault)?;
    let names = names_of(transaction.list_tables().map_err(store_fault)?);
    tables_are_there(&names, found)?;
    if found == schema::FORMAT
        && let Some(name) = names.iter().find(|name| schema::all().all(|table| table.name() != name.as_str()))
    {
        return Err(damaged(&META, &format!("a table of the file has the unknown name {name:?}")));
    }
    let meta = transaction.open_table(META).map_err(store_fault)?;
    let known = [FORMAT_ROW, EPOCH_ROW, NUMBERS_ROW, BATCH_ROW].map(name_key);
    let mut is_there = [false; 4];
    for row in meta.iter().map_err(store_fault)? {
        let (key, _) = row.map_err(store_fault)?;
        let place = known.iter().position(|known| known == key.value());
        is_there[place.ok_or_else(|| damaged(&META, "a row has an unknown name"))?] = true;
    }
    let has_queues =
        !transaction.open_table(definition::QUEUES).map_err(store_fault)?.is_empty().map_err(store_fault)?;
    // The first opening writes the epoch, or the first entry of a log. Both others are written when a generation ends, and
    // with an upgrade.
    let [_, has_epoch, has_numbers, has_batch] = is_there;
    match found == schema::FORMAT && (has_numbers != has_batch || has_queues && !has_epoch) {
        true => Err(damaged(&META, "a row is missing")),
        false => Ok(()),
    }
}

/// The names of tables.
pub(crate) fn names_of(tables: impl Iterator<Item = UntypedTableHandle>) -> Vec<String> {
    tables.map(|table| table.name().to_owned()).collect()
}

/// Checks that no table is missing: making an empty one would hide it.
///
/// # Errors
/// [`Fault::Damaged`] names one that is.
pub(crate) fn tables_are_there(names: &[String], found: u32) -> Result<(), Fault> {
    let count = match found {
        schema::FORMAT_BEFORE_BLOCKS.. => MADE_LATER,
        schema::FORMAT_3.. => format3::TABLES.len(),
        _ => FIRST_OF_FORMAT_3,
    };
    let journal = (found > schema::FORMAT_BEFORE_JOURNAL).then_some(JOURNAL);
    let of_rows = schema::MEMTABLE.into_iter().take(count);
    for definition in of_rows.chain([definition::QUEUES, definition::COUNTERS]).chain(journal) {
        if !names.iter().any(|name| name == definition.name()) {
            return Err(damaged(&definition, "the table is missing"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use redb::WriteTransaction;

    use super::*;
    use crate::clock::Timestamp;
    use crate::engine::rules::Rules;
    use crate::engine::rules::due::ClockInstants;
    use crate::engine::rules::verbs::Command;
    use crate::engine::rules::verbs::CreateQueue;
    use crate::engine::store::Store;
    use crate::engine::store::StoreOptions;
    use crate::engine::store::compact::compact;
    use crate::engine::store::definition::RawTableDefinition;
    use crate::error::OpenError;
    use crate::id::QueueName;
    use crate::queue::QueueOptions;

    const RENAMED: RawTableDefinition = RawTableDefinition::new("renamed");

    /// Changes a copy of a file, and sees that it is refused as damaged, and left as it is.
    fn check_refused(whole: &Path, what: &str, change: impl FnOnce(&WriteTransaction)) {
        let path = whole.with_extension("changed");
        std::fs::copy(whole, &path).unwrap();
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
        drop(database);
        let before = std::fs::read(&path).unwrap();
        let opened = Store::open(&path, StoreOptions::default());
        assert!(matches!(opened, Err(OpenError::Damaged { .. })), "{what}: it is made anew");
        assert!(std::fs::read(&path).unwrap() == before, "{what}: a refused file is left as it was");
    }

    #[test]
    fn a_file_that_misses_something_is_refused_as_damaged_and_nothing_is_made_anew_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let open = || Store::open(&path, StoreOptions::default()).unwrap();
        let (name, options) = (QueueName::new("q").unwrap(), Box::new(QueueOptions::default()));
        let command = Command::CreateQueue(CreateQueue { name, options });
        let now = ClockInstants::same(Timestamp::from_millis(1_000));
        open().turn(|turn| Rules::default().apply(now, command, turn)).unwrap();
        // Whatever there may be in a file is in it.
        compact(&path).unwrap();
        drop(open());
        for table in schema::all().filter(|table| table.name() != META.name()) {
            check_refused(&path, table.name(), |file| file.rename_table(table, RENAMED).unwrap());
        }
        check_refused(&path, "deleted", |file| {
            assert!(file.delete_table(schema::Messages::DEFINITION).unwrap());
        });
        let [epoch, numbers, other] = [EPOCH_ROW, NUMBERS_ROW, "epoci"].map(name_key);
        check_refused(&path, "a number", |file| {
            drop(file.open_table(META).unwrap().remove(numbers.as_slice()).unwrap().expect("it is there"));
        });
        check_refused(&path, "the epoch", |file| {
            drop(file.open_table(META).unwrap().remove(epoch.as_slice()).unwrap().expect("it is there"));
        });
        check_refused(&path, "a name", |file| {
            let mut meta = file.open_table(META).unwrap();
            let row = meta.remove(epoch.as_slice()).unwrap().expect("it is there").value().to_vec();
            meta.insert(other.as_slice(), row.as_slice()).unwrap();
        });
        drop(open());
    }
}
