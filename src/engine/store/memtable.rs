//! One table: its rows of the window in memory, before the rows that are flushed.

use std::ops::Bound;

use crate::engine::store::base::Base;
use crate::engine::store::groups::PrefixGroups;
use crate::engine::store::table::Row;
use crate::engine::store::table::Table;
use crate::engine::store::table_book::TableBook;
use crate::error::Fault;
use crate::lookup::RecentKey;
use crate::lookup::SlotNumber;

/// One table with rows of its own.
pub(crate) struct Memtable<T: Table> {
    pub(crate) groups: PrefixGroups<T>,
    pub(crate) book: TableBook<T>,
}

impl<T: Table<Flushed = T, Place = SlotNumber, Prefix: RecentKey>> Memtable<T> {
    pub(crate) fn new(base: &Base<'_>) -> Result<Memtable<T>, Fault> {
        Ok(Memtable { groups: PrefixGroups::<T>::default(), book: TableBook::new(base)? })
    }

    /// Whether there is no row at all, as in most tables of what is seldom.
    #[inline]
    fn has_none(&self) -> bool {
        self.groups.is_empty() && !self.book.flushed.any()
    }

    #[inline]
    pub(crate) fn get(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
    ) -> Result<Option<T::Value>, Fault> {
        if self.has_none() {
            return Ok(None);
        }
        self.book.get(&self.groups, base, prefix, key)
    }

    /// The first row of the prefix with at least this key.
    #[inline]
    pub(crate) fn first(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        if self.has_none() {
            return Ok(None);
        }
        self.book.first(&self.groups, base, prefix, from)
    }

    /// The last row of the prefix with at most this key.
    #[inline]
    pub(crate) fn last(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        to: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        if self.has_none() {
            return Ok(None);
        }
        self.book.last(&self.groups, base, prefix, to)
    }

    /// Up to `limit` rows of the prefix from a bound on.
    pub(crate) fn page(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
        limit: usize,
    ) -> Result<Vec<Row<T>>, Fault> {
        self.book.page(&self.groups, base, prefix, from, limit)
    }

    /// Puts or deletes a row.
    pub(crate) fn set(
        &mut self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
        value: Option<T::Value>,
    ) -> Result<(), Fault> {
        self.book.set(&mut self.groups, base, prefix, key, value)
    }
}
