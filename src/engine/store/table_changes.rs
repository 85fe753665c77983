//! What a turn changes of a table, and what its commit is to write of it.

use crate::engine::rules::record::QueueId;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::key::KeyPart;
use crate::engine::store::row_state::ChangedRow;
use crate::engine::store::row_state::RowState;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Table;

/// Room for so many rows is kept: more than a turn usually changes of a table, and little of what the engine takes.
const KEPT_ROWS_MAX: usize = 4096;

/// What one turn has changed of a table.
pub(crate) struct TableChanges<T: Table> {
    /// The position before the first commit since the file was opened; stamps count from there.
    origin: Option<u64>,
    /// The commit that this turn becomes, as stamps count.
    position: u64,
    /// The first of the generation that is being filled, as stamps count.
    filling_from: u64,
    rows: Vec<ChangedRow<T>>,
}

impl<T: Table> Default for TableChanges<T> {
    fn default() -> TableChanges<T> {
        TableChanges { origin: None, position: 0, filling_from: 1, rows: Vec::new() }
    }
}

impl<T: Table> TableChanges<T> {
    /// Begins the turn whose commit has this position.
    pub(crate) fn begin(&mut self, position: u64) {
        self.origin.get_or_insert(position - 1);
        self.position = self.in_stamps(position);
    }

    /// A commit's position as stamps count.
    pub(crate) fn in_stamps(&self, position: u64) -> u64 {
        position.saturating_sub(self.origin.unwrap_or(position))
    }

    /// Notes that the next turn fills a new generation.
    pub(crate) fn end_generation(&mut self, position: u64) {
        self.filling_from = self.in_stamps(position) + 1;
    }

    /// Notes what a row has become. True when that is its first change in its generation.
    pub(crate) fn note(
        &mut self,
        stamp: &mut SlotStamp,
        prefix: &T::Prefix,
        key: &T::Key,
        value: Option<T::Value>,
    ) -> bool {
        let now = match value {
            Some(value) => RowState::Put(value),
            None if stamp.is_on_disk(self.position) => RowState::Deleted,
            None => RowState::AsBefore,
        };
        if stamp.position() == self.position {
            self.rows[stamp.index()].1 = now;
            return false;
        }
        let is_first = stamp.position() < self.filling_from;
        stamp.change(self.position, self.rows.len());
        self.rows.push(((prefix.clone(), key.clone()), now));
        is_first
    }

    /// Ends the turn: its rows are appended to its journal row.
    pub(crate) fn journal(&mut self, row: &mut RowWriter) {
        if self.rows.is_empty() {
            return;
        }
        row.begin_table(T::NUMBER);
        for ((prefix, key), now) in self.rows.drain(..) {
            match now {
                RowState::Put(value) => row.write(&prefix, &key, Some(&value)),
                RowState::Deleted => row.write(&prefix, &key, None::<&T::Value>),
                RowState::AsBefore => {}
            }
        }
        row.end_table();
        if self.rows.capacity() > KEPT_ROWS_MAX {
            self.release_room();
        }
    }

    /// Gives up the room of rows.
    pub(crate) fn release_room(&mut self) {
        self.rows = Vec::new();
    }

    /// How much of the turn there is so far, for [`TableChanges::shorten`].
    pub(crate) fn mark(&self) -> usize {
        self.rows.len()
    }

    /// What a row that this turn had touched before the mark was, is to be written again.
    pub(crate) fn restore(
        &mut self,
        len: usize,
        row: Option<&WindowSlot<T::Value>>,
        gone: Option<&SlotStamp>,
    ) {
        let (stamp, now) = match (row, gone) {
            (Some(slot), _) => (&slot.stamp, RowState::Put(slot.value.clone())),
            (None, Some(stamp)) => (stamp, RowState::Deleted),
            (None, None) => return,
        };
        if stamp.position() == self.position && stamp.index() < len {
            self.rows[stamp.index()].1 = now;
        }
    }

    /// Forgets what the turn has touched since a mark.
    pub(crate) fn shorten(&mut self, len: usize) {
        self.rows.truncate(len);
    }

    /// Ends a turn that is on disk already.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        for ((prefix, _), now) in &mut self.rows {
            if prefix.of_queue() == Some(queue) {
                *now = RowState::AsBefore;
            }
        }
    }
}
