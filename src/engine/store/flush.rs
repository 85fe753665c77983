//! Flushing: what the oldest generation changed last goes to its table, in key order, a slice with each commit.

use crate::engine::rules::record::QueueId;
#[cfg(any(test, feature = "cluster"))]
use crate::engine::store::base::Base;
use crate::engine::store::changed_keys::FlushingRow;
use crate::engine::store::checksum::damaged;
use crate::engine::store::codec;
#[cfg(test)]
use crate::engine::store::content::RowsByKey;
use crate::engine::store::groups::Groups;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::key::KeyPart;
use crate::engine::store::key::parts_of;
use crate::engine::store::row_write::RowWrite;
use crate::engine::store::row_write::Rows;
use crate::engine::store::rows::RowMap;
use crate::engine::store::table::Table;
use crate::engine::store::table::weight_of;
use crate::engine::store::table_book::TableBook;
use crate::engine::store::window::Budget;
use crate::error::Fault;

/// Looking whether a row is still as its generation left it costs one unit of work; writing it costs this many.
const UNITS_PER_ROW: u64 = 8;

/// One table with all its rows, wherever those of the window are.
pub(crate) struct WholeTable<'m, T: Table, G> {
    pub(crate) groups: &'m mut G,
    pub(crate) book: &'m mut TableBook<T>,
}

/// What all memtables do alike, whatever their rows are.
pub(crate) trait AnyMemtable {
    /// Begins the turn whose commit has this position.
    fn begin_turn(&mut self, position: u64);
    /// Ends a turn: what it has changed is appended to its journal row.
    fn journal(&mut self, row: &mut RowWriter);
    /// Reads the next table's part of the journal row at a position.
    fn replay(&mut self, row: &mut RowReader<'_>, position: u64) -> Result<(), Fault>;
    /// Applies the next table's part of an entry of another's, whose position it is.
    #[cfg(any(test, feature = "cluster"))]
    fn follow(&mut self, base: &Base<'_>, row: &mut RowReader<'_>, position: u64) -> Result<(), Fault>;
    /// Forgets what it has read and need not remember, if that is too much.
    fn trim(&mut self);
    /// Ends a generation with the commit at this position.
    fn end_generation(&mut self, position: u64);
    /// Begins to flush the oldest full generation.
    fn begin_flush(&mut self);
    /// How many units of work are left of the flush.
    fn units_left(&self) -> u64;
    /// Works off a budget of the flush: of the generation that ends with `upto`, rows that the commit at this position is
    /// to flush.
    fn flush(&mut self, upto: u64, position: u64, budget: &mut Budget) -> Option<Box<dyn RowWrite>>;
    /// Gives up rows that are found in the table, now that the commits up to a position are done.
    fn mark_committed(&mut self, position: u64);
    /// Puts every row of the table, flushed or not, into a map.
    #[cfg(test)]
    fn content(&self, base: &Base<'_>) -> Result<RowsByKey, Fault>;
    /// Forgets every row of a queue.
    fn forget_queue(&mut self, queue: QueueId);
    /// Forgets every row of a queue that is not wanted.
    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool);
    /// Begins a turn that will be taken back.
    fn begin_trial(&mut self);
    /// Takes back what the turn has changed; how many rows that were.
    fn roll_back(&mut self) -> usize;
    /// Gives up what is empty, and room that is not needed.
    fn tidy(&mut self);
}

impl<T: Table, G: Groups<T>> AnyMemtable for WholeTable<'_, T, G> {
    fn begin_turn(&mut self, position: u64) {
        self.book.touched.begin(position);
    }

    fn journal(&mut self, row: &mut RowWriter) {
        self.book.touched.journal(self.groups, row);
    }

    fn replay(&mut self, row: &mut RowReader<'_>, position: u64) -> Result<(), Fault> {
        self.book.touched.begin(position);
        while let Some((prefix, key, value)) = next_row::<T>(row)? {
            self.book.place(self.groups, &prefix, &key, value, self.book.flushed.any());
        }
        self.book.touched.clear();
        Ok(())
    }

    #[cfg(any(test, feature = "cluster"))]
    fn follow(&mut self, base: &Base<'_>, row: &mut RowReader<'_>, position: u64) -> Result<(), Fault> {
        self.book.touched.begin(position);
        while let Some((prefix, key, value)) = next_row::<T>(row)? {
            self.book.set(self.groups, base, &prefix, &key, value)?;
        }
        self.book.touched.clear();
        Ok(())
    }

    fn trim(&mut self) {
        self.book.flushed.trim();
    }

    fn end_generation(&mut self, position: u64) {
        let room = std::mem::take(&mut self.book.changed.spare);
        self.book.changed.full.push_back(std::mem::replace(&mut self.book.changed.filling, room));
        self.book.touched.end_generation(position);
    }

    fn begin_flush(&mut self) {
        let candidates = self.book.changed.full.pop_front().unwrap_or_default();
        self.book.changed.spare = std::mem::replace(&mut self.book.changed.candidates, candidates);
        self.book.changed.sorted = false;
    }

    fn units_left(&self) -> u64 {
        let (candidates, survivors) = (self.book.changed.candidates.len(), self.book.changed.survivors.len());
        candidates as u64 * (1 + UNITS_PER_ROW) + survivors as u64 * UNITS_PER_ROW
    }

    fn flush(&mut self, upto: u64, position: u64, budget: &mut Budget) -> Option<Box<dyn RowWrite>> {
        let upto = self.book.touched.in_stamps(upto);
        self.book.pick_survivors(self.groups, upto, &mut budget.units);
        let mut rows = Vec::new();
        while !budget.is_used_up()
            && let Some((prefix, key)) = self.book.changed.survivors.pop()
        {
            budget.units = budget.units.saturating_sub(UNITS_PER_ROW);
            let Some(group) = self.groups.group_mut(&prefix) else { continue };
            if group.stamp(&key).is_none_or(|stamp| stamp.position() > upto) {
                continue;
            }
            let value = match group.rows.get_mut(&key) {
                Some(slot) => {
                    // From now on, deleting it has to delete what is flushed.
                    slot.stamp.set_based();
                    budget.bytes = budget.bytes.saturating_sub(weight_of::<T>(Some(&slot.value)));
                    Some(slot.value.clone())
                }
                None => None,
            };
            rows.push(((prefix.clone(), key.clone()), value));
            self.book.changed.under_way.push_back(FlushingRow { position, upto, place: (prefix, key) });
        }
        (!rows.is_empty()).then(|| Box::new(Rows::<T>(rows)) as Box<dyn RowWrite>)
    }

    fn mark_committed(&mut self, position: u64) {
        while self.book.changed.under_way.front().is_some_and(|row| row.position <= position)
            && let Some(row) = self.book.changed.under_way.pop_front()
        {
            let (prefix, key) = row.place;
            let Some(group) = self.groups.group_mut(&prefix) else { continue };
            if group.stamp(&key).is_none_or(|stamp| stamp.position() > row.upto) {
                continue;
            }
            let was_put = group.rows.remove(&key).is_some();
            match was_put {
                true => group.rows.note_none_flushed(false),
                false => {
                    group.gone.remove(&key);
                }
            }
            if group.is_empty() {
                self.groups.give_up(&prefix);
            }
            let (prefix, key) = T::flushed_key(&prefix, &key);
            match was_put {
                true => self.book.flushed.note_put(prefix, key),
                false => self.book.flushed.note_deleted(prefix, key),
            }
        }
    }

    #[cfg(test)]
    fn content(&self, base: &Base<'_>) -> Result<RowsByKey, Fault> {
        self.all_rows(base)
    }

    fn forget_queue(&mut self, queue: QueueId) {
        self.book.touched.forget_queue(self.groups, queue);
        self.groups.retain_queues(&|other| other != queue);
        self.book.flushed.retain(|prefix| prefix.of_queue() != Some(queue));
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.groups.retain_queues(wanted);
    }

    fn begin_trial(&mut self) {
        self.book.begin_trial();
    }

    fn roll_back(&mut self) -> usize {
        self.book.roll_back(self.groups)
    }

    fn tidy(&mut self) {
        self.groups.tidy();
    }
}

/// The next row of a table in a journal row: its key, and its value unless it is deleted.
#[expect(clippy::type_complexity, reason = "a row in its parts")]
fn next_row<T: Table>(
    row: &mut RowReader<'_>,
) -> Result<Option<(T::Prefix, T::Key, Option<T::Value>)>, Fault> {
    let nonsense = || damaged(&T::DEFINITION, "a row in the journal makes no sense");
    let Some((key, value)) = row.next_row()? else { return Ok(None) };
    let (prefix, key) = parts_of::<T::Prefix, T::Key>(key).ok_or_else(nonsense)?;
    let value = value.map(|bytes| codec::decode(bytes).ok_or_else(nonsense)).transpose()?;
    Ok(Some((prefix, key, value)))
}

impl<T: Table> TableBook<T> {
    /// Keeps of the generation's keys those whose rows have not changed since; most messages have come and gone.
    fn pick_survivors(&mut self, groups: &impl Groups<T>, upto: u64, units: &mut u64) {
        while *units > 0
            && let Some((place, key)) = self.changed.candidates.pop()
        {
            *units -= 1;
            let stamp = groups.group_at(&place).and_then(|group| group.stamp(&key));
            if stamp.is_some_and(|stamp| stamp.position() <= upto) {
                let prefix = groups.prefix_at(&place).expect("a group has its prefix");
                self.changed.survivors.push((prefix.clone(), key));
            }
        }
        if self.changed.candidates.is_empty() && !self.changed.sorted {
            // The last first, because they are taken from the end.
            self.changed.survivors.sort_unstable_by(|a, b| b.cmp(a));
            self.changed.survivors.dedup();
            self.changed.sorted = true;
            if self.changed.release_room() {
                self.touched.release_room();
            }
        }
    }
}
