//! Every row for itself: its checksum, its key, its record, and its place behind the row before.

use redb::ReadTransaction;
use redb::ReadableTable;
use redb::ReadableTableMetadata;

use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::base::record;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::definition;
use crate::engine::store::definition::RawTableDefinition;
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
            if let Some(table) = open_table(transaction, definition)? {
                rows += table.len().map_err(store_fault)?;
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
        let check = |key: &[u8], checksummed: &[u8]| -> Result<(), Fault> {
            record::<T::Value>(&T::DEFINITION, key, checksummed)?;
            check_key::<T>(key)
        };
        let sheet = TableReader { table: T::NAME, definition: T::DEFINITION, words };
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
    words: RowWords,
}

impl TableReader {
    pub(crate) const META: TableReader =
        TableReader { table: "meta", definition: definition::META, words: |key, _| text_of(key) };
    pub(crate) const QUEUES: TableReader =
        TableReader { table: "queues", definition: definition::QUEUES, words: queue };
    pub(crate) const COUNTERS: TableReader =
        TableReader { table: "tallies", definition: definition::COUNTERS, words: queue };

    /// Reads every row; `check` says what is wrong with one.
    pub(crate) fn read(
        &self,
        transaction: &ReadTransaction,
        findings: &mut Findings<'_>,
        mut check: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
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
        check: &mut impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Some(table) = open_table(transaction, self.definition)? else {
            findings.add(self.table, String::new(), "the table is missing");
            return Ok(());
        };
        let mut before: Vec<u8> = Vec::new();
        for row in table.iter().map_err(store_fault)? {
            let (key, checksummed) = row.map_err(store_fault)?;
            findings.report.rows += 1;
            findings.go_on();
            let words = |findings: &Findings<'_>| (self.words)(key.value(), &findings.names);
            if let Err(fault) = check(key.value(), checksummed.value()) {
                findings.add(self.table, words(findings), problem(&fault));
            }
            // A file that leads in circles would never end.
            if !before.is_empty() && before.as_slice() >= key.value() {
                findings.add(self.table, words(findings), "it stands behind a greater key");
                return Ok(());
            }
            before.clear();
            before.extend_from_slice(key.value());
        }
        Ok(())
    }
}

/// A queue's record, checked against its key.
pub(crate) fn queue_record(key: &[u8], checksummed: &[u8]) -> Result<QueueRecord, Fault> {
    let record: QueueRecord = record(&definition::QUEUES, key, checksummed)?;
    if queue_of(key) != Some(record.id) {
        return Err(Fault::Damaged { table: "queues", detail: "it is another queue's record".to_owned() });
    }
    Ok(record)
}

/// A queue's counters.
pub(crate) fn counters(key: &[u8], checksummed: &[u8]) -> Result<(QueueId, QueueCounters), Fault> {
    let nonsense = || Fault::Damaged { table: "tallies", detail: "a key makes no sense".to_owned() };
    Ok((queue_of(key).ok_or_else(nonsense)?, record(&definition::COUNTERS, key, checksummed)?))
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
