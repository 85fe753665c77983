//! What a turn changes of a table, and what its commit is to write of it.

use crate::engine::rules::record::QueueId;
use crate::engine::store::groups::Groups;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::key::KeyPart;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::SlotStamp;
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
    /// Where the rows are that have changed. What has become of them is in the window.
    rows: Vec<ChangedRow<T>>,
}

/// A row that has changed.
struct ChangedRow<T: Table> {
    place: T::Place,
    key: T::Key,
    /// Whether the disk knows a row with this key, so that its deletion has to be written.
    is_on_disk: bool,
}

impl<T: Table> Default for TableChanges<T> {
    fn default() -> TableChanges<T> {
        TableChanges { origin: None, position: 0, filling_from: 1, rows: Vec::new() }
    }
}

impl<T: Table> TableChanges<T> {
    /// Begins the turn whose commit has this position.
    #[inline]
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

    /// Notes that a row is put or deleted. True when that is its first change in its generation.
    #[inline]
    pub(crate) fn note(&mut self, stamp: &mut SlotStamp, place: &T::Place, key: &T::Key) -> bool {
        if stamp.position() == self.position {
            return false;
        }
        let is_first = stamp.position() < self.filling_from;
        let is_on_disk = stamp.is_on_disk(self.position);
        stamp.change(self.position, self.rows.len());
        self.rows.push(ChangedRow { place: place.clone(), key: key.clone(), is_on_disk });
        is_first
    }

    /// Ends the turn: its rows are appended to its journal row, as they are now.
    pub(crate) fn journal(&mut self, groups: &impl Groups<T>, row: &mut RowWriter) {
        if self.rows.is_empty() {
            return;
        }
        row.begin_table(T::NUMBER);
        for (index, ChangedRow { place, key, is_on_disk }) in self.rows.drain(..).enumerate() {
            let slot = groups.group_at(&place).and_then(|group| group.rows.get(&key));
            let value = slot.map(|slot| &slot.value);
            // One that was deleted and put again is noted twice, and written once.
            let is_due = match slot {
                Some(slot) => slot.stamp.position() == self.position && slot.stamp.index() == index,
                None => is_on_disk,
            };
            if is_due && let Some(prefix) = groups.prefix_at(&place) {
                row.write(prefix, &key, value);
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

    /// Forgets what the turn has touched since a mark.
    pub(crate) fn shorten(&mut self, len: usize) {
        self.rows.truncate(len);
    }

    /// Ends a turn that is on disk already.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Notes that nothing is to be written of a queue's rows, before they are forgotten.
    pub(crate) fn forget_queue(&mut self, groups: &impl Groups<T>, queue: QueueId) {
        for row in &mut self.rows {
            // Slots are of several tables, and the first of them has forgotten what it is.
            let prefix = groups.prefix_at(&row.place);
            row.is_on_disk &= prefix.is_some_and(|prefix| prefix.of_queue() != Some(queue));
        }
    }
}
