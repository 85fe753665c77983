//! What a turn changes of a table, and what its commit is to write of it.

use crate::engine::rules::record::QueueId;
use crate::engine::store::key::KeyPart;
use crate::engine::store::row_room::RowRoom;
use crate::engine::store::row_state::ChangedRow;
use crate::engine::store::row_state::RowState;
use crate::engine::store::row_write::Rows;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Table;
use crate::engine::store::table::weight_of;

/// What one turn has changed of a table.
pub(crate) struct TableChanges<T: Table> {
    /// The position before the first commit since the file was opened; stamps count from there.
    origin: Option<u64>,
    /// The commit that this turn becomes, as stamps count.
    position: u64,
    /// The first of the generation that is being filled, as stamps count.
    filling_from: u64,
    rows: Vec<ChangedRow<T>>,
    /// The room of rows that are written.
    room: RowRoom<T>,
    /// About how many bytes these rows take in the journal.
    weight: u64,
}

impl<T: Table> Default for TableChanges<T> {
    fn default() -> TableChanges<T> {
        let (rows, room) = (Vec::new(), RowRoom::default());
        TableChanges { origin: None, position: 0, filling_from: 1, rows, room, weight: 0 }
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
        let weight = weight_of::<T>(value.as_ref());
        let now = match value {
            Some(value) => RowState::Put(value),
            None if stamp.is_on_disk(self.position) => RowState::Deleted,
            None => RowState::AsBefore,
        };
        if stamp.position() == self.position {
            self.rows[stamp.index()].1 = now;
            return false;
        }
        self.weight += weight;
        let is_first = stamp.position() < self.filling_from;
        stamp.change(self.position, self.rows.len());
        self.rows.push(((prefix.clone(), key.clone()), now));
        is_first
    }

    /// Ends the turn: what its commit is to write, and about how many bytes that is.
    pub(crate) fn take(&mut self) -> Option<(Rows<T>, u64)> {
        if self.rows.is_empty() {
            return None;
        }
        let rows = std::mem::replace(&mut self.rows, self.room.take());
        Some((self.written_from(rows), std::mem::take(&mut self.weight)))
    }

    /// Rows whose room comes back here when they are written.
    pub(crate) fn written_from(&self, rows: Vec<ChangedRow<T>>) -> Rows<T> {
        Rows { rows, room: self.room.clone() }
    }

    /// Gives the room of rows back that are written.
    pub(crate) fn release_room(&self) {
        self.room.take();
    }

    /// How much of the turn there is so far, for [`TableChanges::shorten`].
    pub(crate) fn mark(&self) -> (usize, u64) {
        (self.rows.len(), self.weight)
    }

    /// What a row that this turn had touched before the mark was, is to be written again.
    pub(crate) fn restore(
        &mut self,
        (len, _): (usize, u64),
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
    pub(crate) fn shorten(&mut self, (len, weight): (usize, u64)) {
        self.rows.truncate(len);
        self.weight = weight;
    }

    /// Ends a turn that is on disk already.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.weight = 0;
    }

    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        for ((prefix, _), now) in &mut self.rows {
            if prefix.of_queue() == Some(queue) {
                *now = RowState::AsBefore;
            }
        }
    }
}
