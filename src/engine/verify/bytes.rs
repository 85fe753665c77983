//! Every row for itself: its checksum, its key, its record, and its place behind the row before.

use redb::ReadTransaction;
use redb::ReadableTable;
use redb::ReadableTableMetadata;

use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::block::BlockReader;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::definition;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::flushed_row::FlushedRow;
use crate::engine::store::in_words::InWords;
use crate::engine::store::in_words::QueueNames;
use crate::engine::store::key::parts_of;
use crate::engine::store::merged_tables::Overlay;
use crate::engine::store::merged_tables::decoded;
use crate::engine::store::merged_tables::open_table;
use crate::engine::store::schema;
use crate::engine::store::table::Table;
use crate::engine::store::table::TableVisitor;
use crate::engine::store::words::bytes_in_words;
use crate::engine::store::words::hex;
use crate::engine::verify::findings::Findings;
use crate::error::Fault;
use crate::id::MessageId;

/// How many rows all tables have.
pub(crate) fn count_rows(transaction: &ReadTransaction) -> Option<u64> {
    let count = || {
        let mut rows = 0;
        for definition in schema::checksummed() {
            let Some(table) = open_table(transaction, definition)? else { continue };
            if !schema::is_in_blocks(&definition) {
                rows += table.len().map_err(store_fault)?;
                continue;
            }
            for block in table.iter().map_err(store_fault)? {
                let (key, checksummed) = block.map_err(store_fault)?;
                // What is wrong with it is found when it is read.
                rows += BlockReader::open(definition, key.value(), checksummed.value())
                    .and_then(BlockReader::count)
                    .unwrap_or(0);
            }
        }
        Ok::<u64, Fault>(rows)
    };
    guarded(count).ok()?.ok()
}

/// Reads all rows of the tables that go through the journal.
pub(crate) struct VerifyRows<'a, 'p> {
    pub(crate) transaction: &'a ReadTransaction,
    pub(crate) overlay: &'a Overlay,
    pub(crate) findings: &'a mut Findings<'p>,
}

impl TableVisitor for VerifyRows<'_, '_> {
    fn visit<T: Table>(&mut self) -> Result<(), Fault> {
        let words: RowWords = bytes_in_words::<T>;
        let check = |key: &[u8], row: FlushedRow<'_>| -> Result<(), Fault> {
            row.record::<T::Value>(&T::DEFINITION, key)?;
            check_key::<T>(key)
        };
        let in_blocks = T::IN_BLOCKS;
        let sheet = TableReader { table: T::NAME, definition: T::DEFINITION, in_blocks, words };
        sheet.read(self.transaction, self.findings, check);
        for (key, value) in &self.overlay[usize::from(T::NUMBER)] {
            self.findings.report.rows += 1;
            self.findings.go_on();
            let value = value.as_deref().map_or(Ok(()), |value| decoded::<T>(value).map(drop));
            if let Err(fault) = value.and_then(|()| check_key::<T>(key)) {
                let words = words(key, &self.findings.names);
                self.findings.add(T::NAME, words, problem(&fault));
            }
        }
        Ok(())
    }
}

fn check_key<T: Table>(key: &[u8]) -> Result<(), Fault> {
    match parts_of::<T::Prefix, T::Key>(key) {
        Some(_) => Ok(()),
        None => Err(Fault::Damaged { table: T::NAME, detail: "a key makes no sense".to_owned() }),
    }
}

type RowWords = fn(&[u8], &QueueNames) -> String;

/// One table of the file.
pub(crate) struct TableReader {
    table: &'static str,
    definition: RawTableDefinition,
    in_blocks: bool,
    words: RowWords,
}

impl TableReader {
    pub(crate) const META: TableReader = TableReader::plain("meta", definition::META, |key, _| text_of(key));
    pub(crate) const QUEUES: TableReader = TableReader::plain("queues", definition::QUEUES, queue);
    pub(crate) const COUNTERS: TableReader = TableReader::plain("tallies", definition::COUNTERS, queue);

    const fn plain(table: &'static str, definition: RawTableDefinition, words: RowWords) -> TableReader {
        TableReader { table, definition, in_blocks: false, words }
    }

    /// Reads every row; `check` says what is wrong with one.
    pub(crate) fn read(
        &self,
        transaction: &ReadTransaction,
        findings: &mut Findings<'_>,
        mut check: impl FnMut(&[u8], FlushedRow<'_>) -> Result<(), Fault>,
    ) {
        let read = guarded(|| self.read_or_panic(transaction, findings, &mut check));
        match read {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => findings.add(self.table, String::new(), problem(&fault)),
            Err(_) => findings.add(self.table, String::new(), PAGES_MAKE_NO_SENSE),
        }
    }

    fn read_or_panic(
        &self,
        transaction: &ReadTransaction,
        findings: &mut Findings<'_>,
        check: &mut impl FnMut(&[u8], FlushedRow<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Some(table) = open_table(transaction, self.definition)? else {
            findings.add(self.table, String::new(), "the table is missing");
            return Ok(());
        };
        let mut before: Vec<u8> = Vec::new();
        for row in table.iter().map_err(store_fault)? {
            let (key, checksummed) = row.map_err(store_fault)?;
            let (key, checksummed) = (key.value(), checksummed.value());
            let is_in_order = match self.in_blocks {
                true => self.read_block((key, checksummed), &mut before, findings, check),
                false => {
                    self.read_row((key, FlushedRow::Checksummed(checksummed)), &mut before, findings, check)
                }
            };
            // A file that leads in circles would never end.
            if !is_in_order {
                self.add(key, "it stands behind a greater key", findings);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a row; returns whether it stands behind the one before.
    fn read_row(
        &self,
        (key, row): (&[u8], FlushedRow<'_>),
        before: &mut Vec<u8>,
        findings: &mut Findings<'_>,
        check: &mut impl FnMut(&[u8], FlushedRow<'_>) -> Result<(), Fault>,
    ) -> bool {
        findings.report.rows += 1;
        findings.go_on();
        if let Err(fault) = check(key, row) {
            self.add(key, problem(&fault), findings);
        }
        let is_in_order = before.is_empty() || before.as_slice() < key;
        before.clear();
        before.extend_from_slice(key);
        is_in_order
    }

    /// Reads the rows of a block; returns whether it stands behind the last row of the block before.
    fn read_block(
        &self,
        (block, checksummed): (&[u8], &[u8]),
        before: &mut Vec<u8>,
        findings: &mut Findings<'_>,
        check: &mut impl FnMut(&[u8], FlushedRow<'_>) -> Result<(), Fault>,
    ) -> bool {
        let is_in_order = before.is_empty() || before.as_slice() < block;
        before.clear();
        let mut read = || -> Result<bool, Fault> {
            let mut rows = BlockReader::open(self.definition, block, checksummed)?;
            let mut has_rows = false;
            while let Some((key, payload)) = rows.next_row()? {
                has_rows = true;
                let belongs = block <= key && QueueId::first_of(block) == QueueId::first_of(key);
                if !self.read_row((key, FlushedRow::InBlock(payload)), before, findings, check) || !belongs {
                    self.add(key, "it stands in a block where it is not found", findings);
                }
            }
            Ok(has_rows)
        };
        match read() {
            Ok(true) => {}
            Ok(false) => self.add(block, "a block has no row", findings),
            Err(fault) => {
                let of_all = format!("{}: that of the block of rows which begins there", problem(&fault));
                self.add(block, of_all, findings);
            }
        }
        if before.is_empty() {
            before.extend_from_slice(block);
        }
        is_in_order
    }

    fn add(&self, key: &[u8], problem: impl Into<String>, findings: &mut Findings<'_>) {
        let words = (self.words)(key, &findings.names);
        findings.add(self.table, words, problem);
    }
}

/// A queue's record, checked against its key.
pub(crate) fn queue_record(key: &[u8], row: FlushedRow<'_>) -> Result<QueueRecord, Fault> {
    let record: QueueRecord = row.record(&definition::QUEUES, key)?;
    if queue_of(key) != Some(record.id) {
        return Err(Fault::Damaged { table: "queues", detail: "it is another queue's record".to_owned() });
    }
    Ok(record)
}

/// A queue's counters.
pub(crate) fn counters(key: &[u8], row: FlushedRow<'_>) -> Result<(QueueId, QueueCounters), Fault> {
    let nonsense = || Fault::Damaged { table: "tallies", detail: "a key makes no sense".to_owned() };
    Ok((queue_of(key).ok_or_else(nonsense)?, row.record(&definition::COUNTERS, key)?))
}

fn queue_of(key: &[u8]) -> Option<QueueId> {
    parts_of::<QueueId, ()>(key).map(|(queue, ())| queue)
}

fn queue(key: &[u8], names: &QueueNames) -> String {
    match queue_of(key) {
        Some(queue) => queue.in_words(names),
        None => hex(key),
    }
}

fn text_of(key: &[u8]) -> String {
    match parts_of::<MessageId, ()>(key) {
        Some((name, ())) => name.as_str().to_owned(),
        None => hex(key),
    }
}

/// What is wrong, without the words around it.
pub(crate) fn problem(fault: &Fault) -> String {
    match fault {
        Fault::Damaged { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}
