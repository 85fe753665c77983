//! Rows that are written in place: the format, the epoch, the queues, and what was counted when a flush ended.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use redb::ReadTransaction;
use redb::ReadableTable;
use redb::Table;
use redb::TableHandle;
use redb::WriteTransaction;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::checksum;
use crate::engine::store::checksum::damaged;
use crate::engine::store::codec;
use crate::engine::store::definition;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::flushed_row::record;
use crate::engine::store::key::name_key;
use crate::engine::store::key::parts_of;
use crate::engine::store::key::prefix_end;
use crate::engine::store::key::prefix_of;
use crate::engine::store::schema;
use crate::engine::store::stamp::Stamp;
use crate::engine::store::stamp::WallRecord;
use crate::engine::store::standing::Standing;
use crate::engine::store::table;
use crate::error::Fault;
use crate::id::QueueName;

/// Tables whose keys do not begin with a queue.
const OF_NO_QUEUE: [RawTableDefinition; 4] = [
    <schema::Reminders as table::Table>::DEFINITION,
    <schema::Audit as table::Table>::DEFINITION,
    <schema::Topics as table::Table>::DEFINITION,
    <schema::Handovers as table::Table>::DEFINITION,
];

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
    pub(crate) wall: WallRecord,
}

/// What the store keeps in memory beside the memtables: little, bounded, and rewritten in many turns.
#[derive(Default)]
pub(crate) struct StoreMeta {
    pub(crate) numbers: Numbers,
    pub(crate) batch: BatchRecord,
    pub(crate) queues: BTreeMap<QueueId, Arc<QueueRecord>>,
    pub(crate) names: BTreeMap<QueueName, QueueId>,
    pub(crate) counters: BTreeMap<QueueId, QueueCounters>,
    /// The queues whose counters this turn has changed.
    pub(crate) touched_counters: BTreeSet<QueueId>,
    /// The workflows that may stand still; in memory only.
    pub(crate) standing: Standing,
}

impl StoreMeta {
    /// Notes what the clocks show, for the next commit.
    pub(crate) fn set_stamp(&mut self, stamp: Stamp) {
        self.batch.time = self.batch.time.max(stamp.engine);
        self.batch.wall = stamp.wall_record();
    }

    /// Reads what is written in place.
    pub(crate) fn load(transaction: &WriteTransaction) -> Result<StoreMeta, Fault> {
        let meta = ChecksummedTable::open(transaction, definition::META)?;
        let mut loaded = StoreMeta {
            numbers: meta.get(&name_key(NUMBERS_ROW))?.unwrap_or_default(),
            batch: meta.get(&name_key(BATCH_ROW))?.unwrap_or_default(),
            ..StoreMeta::default()
        };
        for (_, record) in ChecksummedTable::open(transaction, definition::QUEUES)?.rows::<QueueRecord>()? {
            loaded.keep_queue(record);
        }
        let counters = ChecksummedTable::open(transaction, definition::COUNTERS)?;
        for (key, counters) in counters.rows::<QueueCounters>()? {
            let nonsense = || damaged(&definition::COUNTERS, "a key makes no sense");
            let (queue, ()) = parts_of(&key).ok_or_else(nonsense)?;
            loaded.counters.insert(queue, counters);
        }
        Ok(loaded)
    }

    /// What only the journal has, to be written before its rows are dropped.
    pub(crate) fn counted(&self) -> CommitCounters {
        CommitCounters { numbers: self.numbers, batch: self.batch, counters: self.counters.clone() }
    }

    pub(crate) fn keep_queue(&mut self, record: QueueRecord) {
        let record = Arc::new(record);
        self.names.insert(record.name.clone(), record.id);
        self.queues.insert(record.id, record);
    }

    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        if let Some(record) = self.queues.remove(&queue) {
            self.names.remove(&record.name);
        }
        self.counters.remove(&queue);
        self.touched_counters.remove(&queue);
        self.standing.forget_queue(queue);
    }
}

/// The counters as they were with one commit.
pub(crate) struct CommitCounters {
    numbers: Numbers,
    batch: BatchRecord,
    counters: BTreeMap<QueueId, QueueCounters>,
}

impl CommitCounters {
    /// Writes them.
    pub(crate) fn save(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        let mut meta = ChecksummedTable::open(transaction, definition::META)?;
        meta.put(&name_key(NUMBERS_ROW), &self.numbers)?;
        meta.put(&name_key(BATCH_ROW), &self.batch)?;
        drop(meta);
        let mut table = ChecksummedTable::open(transaction, definition::COUNTERS)?;
        for (queue, counters) in &self.counters {
            table.put(&prefix_of(queue), counters)?;
        }
        Ok(())
    }
}

/// A change of a queue, written in place: queues are few, and no generation need keep them.
pub(crate) enum QueueChange {
    Put(Arc<QueueRecord>),
    /// The queue and every flushed row of it is deleted.
    Gone(QueueId),
}

impl QueueChange {
    pub(crate) fn write(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        match self {
            QueueChange::Put(record) => ChecksummedTable::open(transaction, definition::QUEUES)?
                .put(&prefix_of(&record.id), &**record),
            QueueChange::Gone(queue) => {
                // A reminder is dropped when it is due, and what operators did stays.
                let is_of_queue =
                    |table: &RawTableDefinition| OF_NO_QUEUE.iter().all(|other| other.name() != table.name());
                let of_queue = schema::MEMTABLE.into_iter().filter(is_of_queue);
                for definition in of_queue.chain([definition::QUEUES, definition::COUNTERS]) {
                    ChecksummedTable::open(transaction, definition)?.delete_prefix(&prefix_of(queue))?;
                }
                Ok(())
            }
        }
    }
}

/// Notes the format, in place.
pub(crate) fn put_format(transaction: &WriteTransaction, format: u32) -> Result<(), Fault> {
    ChecksummedTable::open(transaction, definition::META)?.put(&name_key(FORMAT_ROW), &format)
}

/// Notes the epoch, in place.
pub(crate) fn write_epoch(transaction: &WriteTransaction, epoch: u32) -> Result<(), Fault> {
    ChecksummedTable::open(transaction, definition::META)?.put(&name_key(EPOCH_ROW), &epoch)
}

/// A row of the meta table, as a transaction sees it.
pub(crate) fn row_of<V: DeserializeOwned>(
    transaction: &ReadTransaction,
    name: &str,
) -> Result<Option<V>, Fault> {
    let (key, table) = (name_key(name), transaction.open_table(definition::META).map_err(store_fault)?);
    let row = table.get(key.as_slice()).map_err(store_fault)?;
    row.map(|row| record(&definition::META, &key, row.value())).transpose()
}

/// A table inside a write transaction: raw keys, checksummed values.
pub(crate) struct ChecksummedTable<'t> {
    definition: RawTableDefinition,
    table: Table<'t, &'static [u8], &'static [u8]>,
}

impl<'t> ChecksummedTable<'t> {
    pub(crate) fn open(
        transaction: &'t WriteTransaction,
        definition: RawTableDefinition,
    ) -> Result<ChecksummedTable<'t>, Fault> {
        Ok(ChecksummedTable { definition, table: transaction.open_table(definition).map_err(store_fault)? })
    }

    pub(crate) fn get<V: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<V>, Fault> {
        match self.table.get(key).map_err(store_fault)? {
            Some(checksummed) => record(&self.definition, key, checksummed.value()).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn put<V: Serialize>(&mut self, key: &[u8], record: &V) -> Result<(), Fault> {
        self.put_payload(key, codec::encode(record))
    }

    /// Puts a record that is bytes already.
    pub(crate) fn put_payload(&mut self, key: &[u8], payload: Vec<u8>) -> Result<(), Fault> {
        let checksummed = checksum(&self.definition, key, payload);
        self.table.insert(key, checksummed.as_slice()).map_err(store_fault)?;
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.table.remove(key).map_err(store_fault)?;
        Ok(())
    }

    pub(crate) fn rows<V: DeserializeOwned>(&self) -> Result<Vec<(Vec<u8>, V)>, Fault> {
        let mut rows = Vec::new();
        for row in self.table.iter().map_err(store_fault)? {
            let (key, checksummed) = row.map_err(store_fault)?;
            rows.push((key.value().to_vec(), record(&self.definition, key.value(), checksummed.value())?));
        }
        Ok(rows)
    }

    fn delete_prefix(&mut self, prefix: &[u8]) -> Result<(), Fault> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.table.retain_in::<&[u8], _>((Bound::Included(prefix), to), |_, _| false).map_err(store_fault)
    }
}
