//! The few rows that are written in place, and what the journal says of them since: queues, counters, numbers.

use std::collections::BTreeMap;

use redb::ReadTransaction;

use crate::clock::Timestamp;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::WallRecord;
use crate::engine::store::definition;
use crate::engine::store::key::KeyPart;
use crate::engine::store::key::name_key;
use crate::engine::store::key::parts_of;
use crate::engine::store::merged_tables::Overlay;
use crate::engine::store::meta::BATCH_ROW;
use crate::engine::store::meta::BatchRecord;
use crate::engine::store::meta::EPOCH_ROW;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::meta::NUMBERS_ROW;
use crate::engine::store::table::Table;
use crate::engine::store::table::TableVisitor;
use crate::engine::verify::bytes::TableReader;
use crate::engine::verify::bytes::counters;
use crate::engine::verify::bytes::queue_record;
use crate::engine::verify::findings::Findings;
use crate::engine::verify::journal::VerifiedJournal;
use crate::error::Fault;

/// What is known of the whole file.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) queues: BTreeMap<QueueId, QueueRecord>,
    pub(crate) counters: BTreeMap<QueueId, QueueCounters>,
    pub(crate) numbers: Numbers,
    /// What the clocks showed with the last commit.
    pub(crate) now: ClockInstants,
}

impl Ledger {
    /// Reads the rows, noting what is damaged.
    pub(crate) fn read(
        transaction: &ReadTransaction,
        window: &VerifiedJournal,
        findings: &mut Findings<'_>,
    ) -> Ledger {
        let mut ledger = Ledger::default();
        let mut flushed = BatchRecord::default();
        let mut has_epoch = false;
        TableReader::META.read(transaction, findings, |key, row| {
            let is = |name: &str| key == name_key(name).as_slice();
            if is(NUMBERS_ROW) {
                ledger.numbers = row.record(&definition::META, key)?;
            } else if is(BATCH_ROW) {
                flushed = row.record(&definition::META, key)?;
            } else if is(FORMAT_ROW) || is(EPOCH_ROW) {
                row.record::<u32>(&definition::META, key)?;
                has_epoch |= is(EPOCH_ROW);
            } else {
                return Err(Fault::Damaged { table: "meta", detail: "no such row is known".to_owned() });
            }
            Ok(())
        });
        TableReader::QUEUES.read(transaction, findings, |key, row| {
            let record = queue_record(key, row)?;
            ledger.queues.insert(record.id, record);
            Ok(())
        });
        if !has_epoch && !ledger.queues.is_empty() {
            findings.add("meta", EPOCH_ROW.to_owned(), "the row is not there");
        }
        let names = ledger.queues.values().map(|record| (record.id, record.name.clone()));
        findings.names = names.collect();
        TableReader::COUNTERS.read(transaction, findings, |key, row| {
            ledger.counters.extend([counters(key, row)?]);
            Ok(())
        });
        ledger.counters.extend(&window.counters);
        ledger.now = clocks(flushed.time, flushed.wall);
        if let Some(last) = window.last {
            (ledger.numbers, ledger.now) = (last.numbers, clocks(last.time, last.wall));
            if last.position < flushed.position {
                let problem = format!("its last commits are missing: there were {}", flushed.position);
                findings.add("journal", format!("commit {}", last.position), problem);
            }
        }
        let Ledger { queues, counters, .. } = &mut ledger;
        // What the journal says of a queue outlives it, until it is dropped.
        counters.retain(|queue, _| queues.contains_key(queue) || !window.counters.contains_key(queue));
        ledger
    }
}

/// What both clocks showed with a commit.
fn clocks(engine: Timestamp, record: WallRecord) -> ClockInstants {
    let believed = record.wall.since(Timestamp::default() + record.ahead);
    ClockInstants { engine, wall: Timestamp::default() + believed }
}

/// Drops what the journal says of queues that are gone: it outlives them.
pub(crate) struct GoneQueues<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) overlay: &'a mut Overlay,
}

impl TableVisitor for GoneQueues<'_> {
    fn visit<T: Table>(&mut self) -> Result<(), Fault> {
        let is_there = |key: &Vec<u8>, _: &mut Option<Vec<u8>>| {
            let of = parts_of::<T::Prefix, T::Key>(key).and_then(|(prefix, _)| prefix.of_queue());
            let exists = |queue| queue == QueueId::OF_TOPICS || self.ledger.queues.contains_key(&queue);
            of.is_none_or(exists)
        };
        self.overlay[usize::from(T::NUMBER)].retain(is_there);
        Ok(())
    }
}
