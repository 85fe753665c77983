//! What a journal row says of rows that its commit writes in place: the epoch, and queues.
//!
//! A file that is opened again reads those where they are. A file that follows the entries of another has them from here.

use serde::Deserialize;
use serde::Serialize;

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::codec;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::journal_row::nonsense;
use crate::engine::store::key::parts_of;
use crate::engine::store::meta::QueueChange;
use crate::error::Fault;

/// The number that stands for the epoch, and for the queues, where a table's number would. No table has as great a one.
const EPOCH: u8 = 254;
const QUEUES: u8 = 253;

/// Whose turn it is to write: each opening of a file, and each new owner of a partition, has a greater number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Epoch {
    pub(crate) number: u32,
    /// Tells owners apart that want the same number; zero for a file without a log before it.
    pub(crate) holder: u64,
}

/// What is written in place.
#[derive(Default)]
pub(crate) struct InPlace {
    /// `None` in rows of older versions.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) queue_changes: Vec<QueueChange>,
}

/// Writes it behind the header of a row.
pub(crate) fn write(row: &mut RowWriter, epoch: Epoch, queue_changes: &[QueueChange]) {
    row.begin_table(EPOCH);
    row.write(&(), &(), Some(&epoch));
    row.end_table();
    if queue_changes.is_empty() {
        return;
    }
    row.begin_table(QUEUES);
    for change in queue_changes {
        match change {
            QueueChange::Put(record) => row.write(&record.id, &(), Some(record)),
            QueueChange::Gone(queue) => row.write(queue, &(), None::<&QueueRecord>),
        }
    }
    row.end_table();
}

impl InPlace {
    /// Reads it behind the header of a row.
    pub(crate) fn read(row: &mut RowReader<'_>) -> Result<InPlace, Fault> {
        let mut in_place = InPlace::default();
        if row.begins(EPOCH) {
            while let Some((_, value)) = row.next_row()? {
                in_place.epoch = Some(value.and_then(codec::decode).ok_or_else(nonsense)?);
            }
        }
        if row.begins(QUEUES) {
            while let Some((key, value)) = row.next_row()? {
                let (queue, ()) = parts_of::<QueueId, ()>(key).ok_or_else(nonsense)?;
                in_place.queue_changes.push(match value {
                    Some(bytes) => QueueChange::Put(codec::decode(bytes).ok_or_else(nonsense)?),
                    None => QueueChange::Gone(queue),
                });
            }
        }
        Ok(in_place)
    }

    /// Passes over it.
    pub(crate) fn skip(row: &mut RowReader<'_>) -> Result<(), Fault> {
        for table in [EPOCH, QUEUES] {
            if row.begins(table) {
                while row.next_row()?.is_some() {}
            }
        }
        Ok(())
    }
}
