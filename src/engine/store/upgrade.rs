//! Making this format of an older one when a file is opened, in one transaction: a crash before its commit leaves the
//! file as it was, to be upgraded by the next opening.
//!
//! Of formats 1 to 3 the journal is first flushed into the tables as it is, bytes for bytes, so that every row is at one place.
//! Then each table is gone through, and the rows that are written otherwise today are written anew. Tables that are in blocks
//! since format 5 come last: their rows and the journal's are those of format 4. One row of the journal, or a page of rows, is
//! in memory at a time.

use std::collections::BTreeMap;
use std::ops::Bound;

use redb::Database;
use redb::ReadTransaction;
use redb::ReadableDatabase;
use redb::ReadableTable;
use redb::TableHandle;
use redb::WriteTransaction;

use crate::engine::rules::record;
use crate::engine::rules::record::QueueId;
use crate::engine::store::block_changes::BlockChanges;
use crate::engine::store::blocks::BlockTable;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::checksum;
use crate::engine::store::checksum::damaged;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::create::write_format;
use crate::engine::store::definition;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::format3;
use crate::engine::store::format3::OldTable;
use crate::engine::store::journal;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::key::name_key;
use crate::engine::store::key::parts_of;
use crate::engine::store::key::prefix_of;
use crate::engine::store::meta::BATCH_ROW;
use crate::engine::store::meta::BatchRecord;
use crate::engine::store::meta::ChecksummedTable;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::meta::NUMBERS_ROW;
use crate::engine::store::missing::names_of;
use crate::engine::store::missing::tables_are_there;
use crate::engine::store::schema;
use crate::engine::store::table::Table;
use crate::error::Fault;

const REMINDERS: RawTableDefinition = schema::Reminders::DEFINITION;

/// The reminders under their old keys, while they are given new ones.
const OLD_REMINDERS: RawTableDefinition = RawTableDefinition::new("reminders_before");

/// The rows of a table that is put in blocks, meanwhile.
const OLD_ROWS: RawTableDefinition = RawTableDefinition::new("rows_before");

/// How many bytes of rows are kept before they are written.
const PAGE_BYTES: usize = 1024 * 1024;

/// Makes a file that is opened one of this format, and says so before it begins: only a backup leads back.
///
/// # Errors
/// A fault leaves the file as it was, if the transaction is dropped.
pub(crate) fn bring_up_to_date_for_good(
    database: &Database,
    transaction: &WriteTransaction,
) -> Result<(), Fault> {
    if let Some(found) = older_format(transaction)? {
        let newest = schema::FORMAT;
        tracing::warn!(
            "the file has format {found} and is upgraded to {newest}: no older version opens it afterwards"
        );
    }
    bring_up_to_date(database, transaction)
}

/// The format of the file, if an older version made it.
fn older_format(transaction: &WriteTransaction) -> Result<Option<u32>, Fault> {
    let found: Option<u32> =
        ChecksummedTable::open(transaction, definition::META)?.get(&name_key(FORMAT_ROW))?;
    Ok(found.filter(|found| *found < schema::FORMAT))
}

/// Says that the file has this format, and makes it so.
///
/// # Errors
/// A fault leaves the file as it was, if the transaction is dropped.
pub(crate) fn bring_up_to_date(database: &Database, transaction: &WriteTransaction) -> Result<(), Fault> {
    let older = older_format(transaction)?;
    if let Some(found) = older {
        tables_are_there(&names_of(transaction.list_tables().map_err(store_fault)?), found)?;
    }
    write_format(transaction)?;
    let Some(found) = older else { return Ok(()) };
    if found < schema::FORMAT_BEFORE_BLOCKS {
        upgrade(database, transaction, found)?;
    }
    schema::in_blocks().try_for_each(|definition| put_in_blocks(transaction, definition))
}

fn upgrade(database: &Database, transaction: &WriteTransaction, found: u32) -> Result<(), Fault> {
    let mut counted = UpgradedRows::read(transaction)?;
    if found > schema::FORMAT_BEFORE_JOURNAL {
        let before = database.begin_read().map_err(store_fault)?;
        counted.flush_journal(&before, transaction)?;
    }
    transaction.delete_table(JOURNAL).map_err(store_fault)?;
    drop(transaction.open_table(JOURNAL).map_err(store_fault)?);
    counted.write(transaction)?;
    for table in &format3::TABLES {
        if table.definition.name() != REMINDERS.name() {
            convert(transaction, table)?;
        }
    }
    convert_reminders(transaction)
}

/// What is written in place, as it was.
struct UpgradedRows {
    queues: BTreeMap<QueueId, format3::QueueRecord>,
    counters: BTreeMap<QueueId, format3::Tally>,
    numbers: format3::Numbers,
    batch: format3::Batch,
}

impl UpgradedRows {
    fn read(transaction: &WriteTransaction) -> Result<UpgradedRows, Fault> {
        let meta = ChecksummedTable::open(transaction, definition::META)?;
        let queues =
            ChecksummedTable::open(transaction, definition::QUEUES)?.rows::<format3::QueueRecord>()?;
        let counters = ChecksummedTable::open(transaction, definition::COUNTERS)?.rows::<format3::Tally>()?;
        Ok(UpgradedRows {
            queues: by_queue(&definition::QUEUES, queues)?,
            counters: by_queue(&definition::COUNTERS, counters)?,
            numbers: meta.get(&name_key(NUMBERS_ROW))?.unwrap_or_default(),
            batch: meta.get(&name_key(BATCH_ROW))?.unwrap_or_default(),
        })
    }

    /// Puts the journal's rows into their tables, as they are, and takes its counters.
    fn flush_journal(
        &mut self,
        before: &ReadTransaction,
        transaction: &WriteTransaction,
    ) -> Result<(), Fault> {
        let mut last: Option<format3::Batch> = None;
        journal::read_all(before, |position, checksummed| {
            let (header, hash, mut row) = RowReader::open_as::<format3::Header>(checksummed)?;
            let follows =
                last.is_none_or(|last| last.position + 1 == position && last.hash == header.previous);
            if !follows || header.position != position {
                return Err(damaged(&JOURNAL, "a row does not follow the one before"));
            }
            while let Some(number) = row.next_table()? {
                let table = format3::TABLES.get(usize::from(number));
                let table = table.ok_or_else(|| damaged(&JOURNAL, "a row names no table"))?;
                self.flush_rows(table, &mut row, transaction)?;
            }
            self.numbers = header.numbers;
            self.counters.extend(header.tallies);
            last = Some(format3::Batch { position, hash, time: header.time });
            Ok(())
        })?;
        if let Some(last) = last {
            if last.position < self.batch.position {
                return Err(damaged(&JOURNAL, "its last rows are missing"));
            }
            self.batch = last;
        }
        Ok(())
    }

    fn flush_rows(
        &self,
        table: &OldTable,
        row: &mut RowReader<'_>,
        transaction: &WriteTransaction,
    ) -> Result<(), Fault> {
        let mut sheet = ChecksummedTable::open(transaction, table.definition)?;
        while let Some((key, payload)) = row.next_row()? {
            // A queue's rows in the journal outlive it.
            let of_gone = || QueueId::first_of(key).is_none_or(|queue| !self.queues.contains_key(&queue));
            if table.of_queue && of_gone() {
                continue;
            }
            match payload {
                Some(payload) => sheet.put_payload(key, payload.to_vec())?,
                None => sheet.delete(key)?,
            }
        }
        Ok(())
    }

    /// Writes it as it is today.
    fn write(mut self, transaction: &WriteTransaction) -> Result<(), Fault> {
        let mut meta = ChecksummedTable::open(transaction, definition::META)?;
        meta.put(&name_key(NUMBERS_ROW), &record::Numbers::from(self.numbers))?;
        meta.put(&name_key(BATCH_ROW), &BatchRecord::from(self.batch))?;
        let queues = &self.queues;
        self.counters.retain(|queue, _| queues.contains_key(queue));
        let mut table = ChecksummedTable::open(transaction, definition::COUNTERS)?;
        for (queue, counters) in self.counters {
            table.put(&prefix_of(&queue), &record::QueueCounters::from(counters))?;
        }
        let mut queues = ChecksummedTable::open(transaction, definition::QUEUES)?;
        for (queue, old) in self.queues {
            queues.put(&prefix_of(&queue), &record::QueueRecord::from(old))?;
        }
        Ok(())
    }
}

fn by_queue<V>(
    definition: &RawTableDefinition,
    rows: Vec<(Vec<u8>, V)>,
) -> Result<BTreeMap<QueueId, V>, Fault> {
    let of_queue = |(key, value): (Vec<u8>, V)| match parts_of::<QueueId, ()>(&key) {
        Some((queue, ())) => Ok((queue, value)),
        None => Err(damaged(definition, "a key makes no sense")),
    };
    rows.into_iter().map(of_queue).collect()
}

/// Writes those rows of a table anew that are written otherwise today.
fn convert(transaction: &WriteTransaction, table: &OldTable) -> Result<(), Fault> {
    let definition = &table.definition;
    let mut rows = transaction.open_table(*definition).map_err(store_fault)?;
    let mut after: Option<Vec<u8>> = None;
    loop {
        let (mut changed, mut bytes) = (Vec::new(), 0);
        let from = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        for row in rows.range::<&[u8]>((from, Bound::Unbounded)).map_err(store_fault)? {
            let (key, checksummed) = row.map_err(store_fault)?;
            let payload = verify_checksum(definition, key.value(), checksummed.value())?;
            let nonsense = || damaged(definition, "a record makes no sense");
            let converted = (table.converted)(payload).ok_or_else(nonsense)?;
            if converted != payload {
                bytes += converted.len();
                changed.push((key.value().to_vec(), converted));
            }
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        let Some((last, _)) = changed.last() else { return Ok(()) };
        after = Some(last.clone());
        for (key, payload) in changed {
            let checksummed = checksum(definition, &key, payload);
            rows.insert(key.as_slice(), checksummed.as_slice()).map_err(store_fault)?;
        }
    }
}

/// Gives every reminder the key that it has today.
fn convert_reminders(transaction: &WriteTransaction) -> Result<(), Fault> {
    transaction.rename_table(REMINDERS, OLD_REMINDERS).map_err(store_fault)?;
    let old = transaction.open_table(OLD_REMINDERS).map_err(store_fault)?;
    let mut new = ChecksummedTable::open(transaction, REMINDERS)?;
    for row in old.iter().map_err(store_fault)? {
        let (key, checksummed) = row.map_err(store_fault)?;
        verify_checksum(&REMINDERS, key.value(), checksummed.value())?;
        let nonsense = || damaged(&REMINDERS, "a key makes no sense");
        new.put(&format3::reminder_key(key.value()).ok_or_else(nonsense)?, &())?;
    }
    drop(old);
    transaction.delete_table(OLD_REMINDERS).map_err(store_fault)?;
    Ok(())
}

/// Puts the rows of a table in blocks, page after page.
fn put_in_blocks(transaction: &WriteTransaction, definition: RawTableDefinition) -> Result<(), Fault> {
    transaction.rename_table(definition, OLD_ROWS).map_err(store_fault)?;
    let old = transaction.open_table(OLD_ROWS).map_err(store_fault)?;
    let mut new = BlockTable::open(transaction, definition)?;
    let mut rows = old.iter().map_err(store_fault)?;
    loop {
        let mut page = BlockChanges::default();
        while page.bytes() < PAGE_BYTES
            && let Some(row) = rows.next()
        {
            let (key, checksummed) = row.map_err(store_fault)?;
            let payload = verify_checksum(&definition, key.value(), checksummed.value())?;
            let put_payload = |bytes: &mut Vec<u8>| bytes.extend_from_slice(payload);
            page.add(|bytes| bytes.extend_from_slice(key.value()), Some(put_payload));
        }
        if page.bytes() == 0 {
            break;
        }
        new.merge(&page.rows())?;
    }
    drop((rows, new));
    drop(old);
    transaction.delete_table(OLD_ROWS).map_err(store_fault)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::engine::store::all_rows::AllRows;
    use crate::engine::store::key::key_of;
    use crate::id::SequenceNumber;

    #[test]
    fn pages_of_rows_are_put_in_blocks_one_after_the_other() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let table = schema::Contents::DEFINITION;
        let row =
            |number: u64| (key_of(&QueueId(1), &SequenceNumber::new(number)), vec![number as u8; 1_000]);
        let rows: Vec<_> = (0..3_000).map(row).collect();
        assert!(rows.len() * 1_000 > 2 * PAGE_BYTES, "these are several pages");
        let transaction = database.begin_write().unwrap();
        let mut old = transaction.open_table(table).unwrap();
        for (key, payload) in &rows {
            old.insert(key.as_slice(), checksum(&table, key, payload.clone()).as_slice()).unwrap();
        }
        drop(old);
        put_in_blocks(&transaction, table).unwrap();
        transaction.commit().unwrap();
        let open = database.begin_read().unwrap().open_table(table).unwrap();
        let found: Result<Vec<_>, _> = AllRows::of::<schema::Contents>(&open).unwrap().collect();
        assert!(found.unwrap() == rows, "what is in blocks is what was there");
    }
}
