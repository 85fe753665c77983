//! Rows on their way to the disk, as they were when their turn ended: encoded by whoever commits them.

use std::sync::Arc;

use bytes::Bytes;
use redb::WriteTransaction;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::record::Answered;
use crate::engine::rules::record::Content;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::Link;
use crate::engine::rules::record::Mark;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Stream;
use crate::engine::rules::record::WorkflowRecord;
use crate::engine::store::base::store_fault;
use crate::engine::store::checksum::checksum;
use crate::engine::store::codec;
use crate::engine::store::journal::RowWriter;
use crate::engine::store::key::key_of;
use crate::engine::store::memtable::Place;
use crate::engine::store::schema::Table;
use crate::error::Fault;
use crate::id::SequenceNumber;

/// About what a key and its lengths take in the journal.
const KEY_BYTES: u64 = 24;

/// What a row has become.
pub(crate) enum Now<V> {
    Put(V),
    Deleted,
    /// It came and went within the turn, so that there is nothing to write.
    AsBefore,
}

/// Rows of one table.
pub(crate) struct Rows<T: Table> {
    pub(crate) rows: Vec<(Place<T>, Now<T::Value>)>,
}

/// What is done with rows of any table.
pub(crate) trait Written: Send {
    /// Appends them to a journal row.
    fn journal(&self, row: &mut RowWriter);
    /// Writes them to their table.
    fn flush(&self, transaction: &WriteTransaction) -> Result<(), Fault>;
}

impl<T: Table> Written for Rows<T> {
    fn journal(&self, row: &mut RowWriter) {
        row.begin_table(T::NUMBER);
        for ((prefix, key), now) in &self.rows {
            match now {
                Now::Put(value) => row.write(prefix, key, Some(value)),
                Now::Deleted => row.write(prefix, key, None::<&T::Value>),
                Now::AsBefore => {}
            }
        }
        row.end_table();
    }

    fn flush(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        let mut table = transaction.open_table(T::DEFINITION).map_err(store_fault)?;
        for ((prefix, key), now) in &self.rows {
            let key = key_of(prefix, key);
            match now {
                Now::Put(value) => {
                    let checksummed = checksum(&T::DEFINITION, &key, codec::encode(value));
                    table.insert(&*key, &*checksummed).map_err(store_fault)?;
                }
                Now::Deleted => drop(table.remove(&*key).map_err(store_fault)?),
                Now::AsBefore => {}
            }
        }
        Ok(())
    }
}

/// About how many bytes a row takes in the journal; the pace of generations needs no more.
pub(crate) fn weight_of<T: Table>(value: Option<&T::Value>) -> u64 {
    KEY_BYTES + value.map_or(0, Weighed::bytes)
}

/// A record, as far as its size matters.
pub(crate) trait Weighed {
    /// About how many bytes it takes.
    fn bytes(&self) -> u64 {
        8
    }
}

impl Weighed for Arc<Content> {
    fn bytes(&self) -> u64 {
        (self.body.len() + self.headers.len()) as u64
    }
}

impl Weighed for Bytes {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl Weighed for Arc<MessageRecord> {
    fn bytes(&self) -> u64 {
        40
    }
}

impl Weighed for Arc<WorkflowRecord> {
    fn bytes(&self) -> u64 {
        24
    }
}

impl Weighed for Arc<Answered> {
    fn bytes(&self) -> u64 {
        16 + 4 * self.receipts.len() as u64
    }
}

impl Weighed for Arc<AuditEntry> {
    fn bytes(&self) -> u64 {
        let texts = [Some(&self.actor), self.reason.as_ref(), self.refusal.as_ref()];
        48 + texts.into_iter().flatten().map(String::len).sum::<usize>() as u64
    }
}

impl Weighed for Arc<HistoryEntry> {
    fn bytes(&self) -> u64 {
        48 + self.reason.as_ref().map_or(0, String::len) as u64
    }
}

impl Weighed for u64 {}
impl Weighed for SequenceNumber {}
impl Weighed for TrailEntry {}
impl Weighed for Holding {}
impl Weighed for Link {}
impl Weighed for Mark {}
impl Weighed for Stream {}
impl Weighed for Duplicate {}
impl Weighed for Cursor {}
impl Weighed for CursorCount {}
impl Weighed for () {}
