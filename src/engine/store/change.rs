//! How a row of the window changes.

use crate::engine::rules::record::QueueId;
use crate::engine::store::base::Base;
use crate::engine::store::flushed_rows::FlushedRows;
use crate::engine::store::key::KeyPart;
use crate::engine::store::memtable::Memtable;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Table;
use crate::engine::store::table_changes::TableChanges;
use crate::error::Fault;

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
