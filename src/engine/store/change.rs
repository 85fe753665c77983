//! How a row of the window changes, and what a turn's commit is to write of it.

use crate::engine::rules::record::QueueId;
use crate::engine::store::base::Base;
use crate::engine::store::flushed_rows::FlushedRows;
use crate::engine::store::key::KeyPart;
use crate::engine::store::memtable::Memtable;
use crate::engine::store::memtable::PrefixGroup;
use crate::engine::store::row_write::RowState;
use crate::engine::store::row_write::Rows;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::PrefixedKey;
use crate::engine::store::table::Table;
use crate::engine::store::table::weight_of;
use crate::error::Fault;

/// What one turn has changed of a table.
pub(crate) struct TableChanges<T: Table> {
    /// The position before the first commit since the file was opened; stamps count from there.
    origin: Option<u64>,
    /// The commit that this turn becomes, as stamps count.
    position: u64,
    /// The first of the generation that is being filled, as stamps count.
    filling_from: u64,
    rows: Vec<(PrefixedKey<T>, RowState<T::Value>)>,
    /// About how many bytes these rows take in the journal.
    weight: u64,
}

impl<T: Table> Default for TableChanges<T> {
    fn default() -> TableChanges<T> {
        TableChanges { origin: None, position: 0, filling_from: 1, rows: Vec::new(), weight: 0 }
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
    fn note(
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
        let next = Vec::with_capacity(self.rows.len());
        Some((Rows { rows: std::mem::replace(&mut self.rows, next) }, std::mem::take(&mut self.weight)))
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

    fn forget_queue(&mut self, queue: QueueId) {
        for ((prefix, _), now) in &mut self.rows {
            if prefix.of_queue() == Some(queue) {
                *now = RowState::AsBefore;
            }
        }
    }
}

impl<T: Table> Memtable<T> {
    /// Puts or deletes a row.
    pub(crate) fn set(
        &mut self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
        value: Option<T::Value>,
    ) -> Result<(), Fault> {
        let is_flushed = |flushed: &FlushedRows<T>| Ok(flushed.any() && flushed.shadow(base, prefix, key)?);
        self.place_with(prefix, key, value, is_flushed)
    }

    /// Puts or deletes a row; `based` says whether one is flushed, for a key of which the window knows nothing.
    pub(crate) fn place(&mut self, prefix: &T::Prefix, key: &T::Key, value: Option<T::Value>, based: bool) {
        let placed = self.place_with(prefix, key, value, |_| Ok(based));
        placed.expect("nothing is read for it");
    }

    fn place_with(
        &mut self,
        prefix: &T::Prefix,
        key: &T::Key,
        value: Option<T::Value>,
        is_flushed: impl FnOnce(&FlushedRows<T>) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        self.remember(prefix, key);
        let is_flushed = || is_flushed(&self.flushed);
        // Two look-ups for a new prefix, so that a known one costs no copy of it.
        let group = match self.groups.get_mut(prefix) {
            Some(group) => group,
            None => self.groups.entry(prefix.clone()).or_default(),
        };
        let is_first = match value {
            Some(value) => group.put(&mut self.touched, prefix, key, value, is_flushed)?,
            None => group.delete(&mut self.touched, prefix, key, is_flushed)?,
        };
        if is_first {
            self.changed.note((prefix.clone(), key.clone()));
        }
        Ok(())
    }

    /// Forgets every row of a queue.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        self.groups.retain(|prefix, _| prefix.of_queue() != Some(queue));
        self.flushed.retain(|prefix| prefix.of_queue() != Some(queue));
        self.touched.forget_queue(queue);
    }

    /// Forgets every row of a queue that is not wanted.
    pub(crate) fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.groups.retain(|prefix, _| prefix.of_queue().is_none_or(wanted));
    }
}

impl<T: Table> PrefixGroup<T> {
    pub(crate) fn stamp(&self, key: &T::Key) -> Option<&SlotStamp> {
        match self.rows.get(key) {
            Some(slot) => Some(&slot.stamp),
            None if self.gone.is_empty() => None,
            None => self.gone.get(key),
        }
    }

    /// Puts a row. True when that is its first change in its generation.
    fn put(
        &mut self,
        touched: &mut TableChanges<T>,
        prefix: &T::Prefix,
        key: &T::Key,
        value: T::Value,
        is_flushed: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        if let Some(slot) = self.rows.get_mut(key) {
            slot.value = value.clone();
            return Ok(touched.note(&mut slot.stamp, prefix, key, Some(value)));
        }
        let gone = if self.gone.is_empty() { None } else { self.gone.remove(key) };
        let mut stamp = match gone {
            Some(stamp) => stamp,
            None => SlotStamp::fresh(is_flushed()?),
        };
        let is_first = touched.note(&mut stamp, prefix, key, Some(value.clone()));
        self.rows.insert(key.clone(), WindowSlot { stamp, value });
        Ok(is_first)
    }

    /// Deletes a row. True when that is its first change in its generation, and worth flushing.
    fn delete(
        &mut self,
        touched: &mut TableChanges<T>,
        prefix: &T::Prefix,
        key: &T::Key,
        is_flushed: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut stamp = match self.rows.remove(key) {
            Some(slot) => slot.stamp,
            None if !self.is_gone(key) && is_flushed()? => SlotStamp::fresh(true),
            None => return Ok(false),
        };
        let is_first = touched.note(&mut stamp, prefix, key, None);
        if stamp.is_based() {
            self.gone.insert(key.clone(), stamp);
        }
        Ok(is_first && stamp.is_based())
    }
}
