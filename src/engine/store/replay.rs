//! Opening after any end: the journal's rows are put in the memtables again.
//!
//! Rows say what is, not what was added, so that reading a generation that is half flushed, or flushed but not yet
//! dropped, comes to the same.

use redb::ReadableDatabase;

use crate::engine::rules::record::QueueId;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::journal;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::meta::BatchRecord;
use crate::engine::store::store::Store;
use crate::error::Fault;

impl Store {
    /// Reads the journal.
    pub(crate) fn replay(&mut self) -> Result<(), Fault> {
        let flushed = self.meta.batch;
        let transaction = self.database.begin_read().map_err(store_fault)?;
        let mut last: Option<BatchRecord> = None;
        journal::read_all(&transaction, |position, row| {
            last = Some(self.replay_row(position, row, last)?);
            Ok(())
        })?;
        drop(transaction);
        if let Some(last) = last {
            if last.position < flushed.position {
                return Err(damaged(&JOURNAL, "its last rows are missing"));
            }
            self.meta.batch = last;
        }
        // A queue's rows in the journal outlive it, until their generation is dropped.
        let queues = &self.meta.queues;
        let is_there = |queue: QueueId| queue == QueueId::OF_TOPICS || queues.contains_key(&queue);
        self.memtables.each(&mut |memtable| memtable.retain_queues(&is_there));
        self.meta.counters.retain(|queue, _| is_there(*queue));
        Ok(())
    }

    fn replay_row(
        &mut self,
        position: u64,
        checksummed: &[u8],
        last: Option<BatchRecord>,
    ) -> Result<BatchRecord, Fault> {
        let (header, checksum, mut row) = RowReader::open(checksummed)?;
        let follows = last.is_none_or(|last| last.position + 1 == position && last.hash == header.previous);
        if !follows || header.position != position {
            return Err(damaged(&JOURNAL, "a row does not follow the one before"));
        }
        while let Some(number) = row.next_table()? {
            let replayed = self.memtables.numbered(number, |memtable| memtable.replay(&mut row, position));
            replayed.ok_or_else(|| damaged(&JOURNAL, "a row names no table"))??;
        }
        if self.window.append(position, checksummed.len() as u64) {
            self.end_generation(position);
        }
        let JournalHeader { time, numbers, counters, wall, .. } = header;
        self.meta.numbers = numbers;
        self.meta.counters.extend(counters);
        Ok(BatchRecord { position, hash: checksum, time, wall })
    }
}
