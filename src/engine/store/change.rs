//! How a row of the window changes.

use crate::engine::store::base::Base;
use crate::engine::store::flushed_rows::FlushedRows;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Table;
use crate::engine::store::table_book::TableBook;
use crate::engine::store::table_changes::TableChanges;
use crate::error::Fault;

impl<T: Table> TableBook<T> {
    /// Puts or deletes a row.
    #[inline]
    pub(crate) fn set(
        &mut self,
        groups: &mut impl Groups<T>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
        value: Option<T::Value>,
    ) -> Result<(), Fault> {
        let is_flushed = |flushed: &FlushedRows<T::Flushed>| {
            let (prefix, key) = T::flushed_key(prefix, key);
            Ok(flushed.any() && flushed.shadow(base, prefix, key)?)
        };
        self.place_with(groups, (prefix, key), value, is_flushed)
    }

    /// Puts or deletes a row; `based` says whether one is flushed, for a key of which the window knows nothing.
    pub(crate) fn place(
        &mut self,
        groups: &mut impl Groups<T>,
        prefix: &T::Prefix,
        key: &T::Key,
        value: Option<T::Value>,
        based: bool,
    ) {
        let placed = self.place_with(groups, (prefix, key), value, |_| Ok(based));
        placed.expect("nothing is read for it");
    }

    /// Changes a row of the window in its place; `None` if the window has none with this key.
    #[inline]
    pub(crate) fn update<R>(
        &mut self,
        groups: &mut impl Groups<T>,
        prefix: &T::Prefix,
        key: &T::Key,
        change: impl FnOnce(&mut T::Value) -> R,
    ) -> Option<R> {
        if self.trial.is_some() {
            self.remember(groups, prefix, key);
        }
        let (place, group) = groups.group_to_change(prefix);
        let Some(slot) = group.rows.get_mut(key) else {
            if group.is_empty() {
                groups.give_up(prefix);
            }
            return None;
        };
        let changed = change(&mut slot.value);
        if self.touched.note(&mut slot.stamp, &place, key) {
            self.changed.note((place, key.clone()));
        }
        Some(changed)
    }

    #[inline]
    fn place_with(
        &mut self,
        groups: &mut impl Groups<T>,
        (prefix, key): (&T::Prefix, &T::Key),
        value: Option<T::Value>,
        is_flushed: impl FnOnce(&FlushedRows<T::Flushed>) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        if self.trial.is_some() {
            self.remember(groups, prefix, key);
        }
        let (place, group) = groups.group_to_change(prefix);
        let none_flushed = group.rows.none_flushed();
        let is_flushed = || Ok(!none_flushed && is_flushed(&self.flushed)?);
        let is_first = match value {
            Some(value) => group.put(&mut self.touched, &place, key, value, is_flushed)?,
            None => group.delete(&mut self.touched, &place, key, is_flushed)?,
        };
        let is_empty = group.is_empty();
        if is_first {
            self.changed.note((place, key.clone()));
        }
        if is_empty {
            groups.give_up(prefix);
        }
        Ok(())
    }
}

impl<T: Table> PrefixGroup<T> {
    /// Puts a row. True when that is its first change in its generation.
    #[inline]
    fn put(
        &mut self,
        touched: &mut TableChanges<T>,
        place: &T::Place,
        key: &T::Key,
        value: T::Value,
        is_flushed: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        if let Some(slot) = self.rows.get_mut(key) {
            slot.value = value;
            return Ok(touched.note(&mut slot.stamp, place, key));
        }
        let gone = if self.gone.is_empty() { None } else { self.gone.remove(key) };
        let mut stamp = match gone {
            Some(stamp) => stamp,
            None => SlotStamp::fresh(is_flushed()?),
        };
        let is_first = touched.note(&mut stamp, place, key);
        self.rows.insert(key.clone(), WindowSlot { stamp, value });
        Ok(is_first)
    }

    /// Deletes a row. True when that is its first change in its generation, and worth flushing.
    #[inline]
    fn delete(
        &mut self,
        touched: &mut TableChanges<T>,
        place: &T::Place,
        key: &T::Key,
        is_flushed: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut stamp = match self.rows.remove(key) {
            Some(slot) => slot.stamp,
            None if !self.is_gone(key) && is_flushed()? => SlotStamp::fresh(true),
            None => return Ok(false),
        };
        let is_first = touched.note(&mut stamp, place, key);
        if stamp.is_based() {
            self.gone.insert(key.clone(), stamp);
        }
        Ok(is_first && stamp.is_based())
    }
}
