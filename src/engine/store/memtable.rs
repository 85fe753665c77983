//! One table: its rows of the window in memory, before the rows that are flushed.

use std::collections::HashMap;
use std::ops::Bound;

use foldhash::fast::RandomState;

use crate::engine::store::base::Base;
use crate::engine::store::changed_keys::ChangedKeys;
use crate::engine::store::flushed_rows::FlushedRows;
use crate::engine::store::key::key_of;
use crate::engine::store::key::prefix_of;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Row;
use crate::engine::store::table::Table;
use crate::engine::store::table_changes::TableChanges;
use crate::engine::store::table_trial::TableTrial;
use crate::error::Fault;

type PrefixGroups<T> = HashMap<<T as Table>::Prefix, PrefixGroup<T>, RandomState>;

/// One table.
pub(crate) struct Memtable<T: Table> {
    pub(crate) groups: PrefixGroups<T>,
    pub(crate) flushed: FlushedRows<T>,
    /// What this turn has changed.
    pub(crate) touched: TableChanges<T>,
    pub(crate) changed: ChangedKeys<T>,
    /// What is to be taken back, while a trial runs.
    pub(crate) trial: Option<TableTrial<T>>,
}

impl<T: Table> Memtable<T> {
    pub(crate) fn new(base: &Base<'_>) -> Result<Memtable<T>, Fault> {
        Ok(Memtable {
            groups: HashMap::default(),
            flushed: FlushedRows::new(base)?,
            touched: TableChanges::default(),
            changed: ChangedKeys::default(),
            trial: None,
        })
    }

    pub(crate) fn get(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
    ) -> Result<Option<T::Value>, Fault> {
        self.read(base, prefix, key, T::Value::clone)
    }

    /// A row of the window with its key as the window has it.
    pub(crate) fn in_memory(&self, prefix: &T::Prefix, key: &T::Key) -> Option<(&T::Key, &T::Value)> {
        let (key, slot) = self.groups.get(prefix)?.rows.get_key_value(key)?;
        Some((key, &slot.value))
    }

    /// What `read` makes of a row, if it is there.
    pub(crate) fn read<R>(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
        read: impl FnOnce(&T::Value) -> R,
    ) -> Result<Option<R>, Fault> {
        if let Some(group) = self.groups.get(prefix) {
            if let Some(slot) = group.rows.get(key) {
                return Ok(Some(read(&slot.value)));
            }
            if group.is_gone(key) {
                return Ok(None);
            }
        }
        if !self.flushed.any() {
            return Ok(None);
        }
        self.flushed.read(base, prefix, key, read)
    }

    /// The first row of the prefix with at least this key.
    pub(crate) fn first(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = self.groups.get(prefix);
        let own = group.and_then(|group| group.rows.first(Bound::Included(from)));
        let flushed = match self.flushed.any() {
            true => self.flushed.first(base, group, prefix, from)?,
            false => None,
        };
        self.nearer(base, prefix, own, flushed, |own, flushed| own < flushed)
    }

    /// The last row of the prefix with at most this key.
    pub(crate) fn last(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        to: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = self.groups.get(prefix);
        let own = group.and_then(|group| group.rows.last(to));
        let flushed = match self.flushed.any() {
            true => self.flushed.last(base, group, prefix, to)?,
            false => None,
        };
        self.nearer(base, prefix, own, flushed, |own, flushed| own > flushed)
    }

    /// Up to `limit` rows of the prefix from a bound on.
    pub(crate) fn page(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
        limit: usize,
    ) -> Result<Vec<Row<T>>, Fault> {
        let mut page: Vec<Row<T>> = Vec::new();
        while page.len() < limit {
            let from = page.last().map_or(from, |(last, _)| Bound::Excluded(last));
            let Some(row) = self.next(base, prefix, from)? else { break };
            page.push(row);
        }
        Ok(page)
    }

    fn next(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = self.groups.get(prefix);
        let own = group.and_then(|group| group.rows.first(from));
        let flushed = match self.flushed.any() {
            true => {
                let start = prefix_of(prefix);
                let key = from.map(|key| key_of(prefix, key));
                let from = match &key {
                    Bound::Unbounded => Bound::Included(start.as_slice()),
                    bound => bound.as_ref().map(Vec::as_slice),
                };
                base.first_key::<T>(&start, from, |key| counts(group, key))?
            }
            false => None,
        };
        self.nearer(base, prefix, own, flushed, |own, flushed| own < flushed)
    }

    /// Which of a row of the window and a flushed one comes first.
    fn nearer(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        own: Option<(&T::Key, &WindowSlot<T::Value>)>,
        flushed: Option<T::Key>,
        is_nearer: impl Fn(&T::Key, &T::Key) -> bool,
    ) -> Result<Option<Row<T>>, Fault> {
        match (own, flushed) {
            (Some((key, slot)), flushed)
                if flushed.as_ref().is_none_or(|flushed| is_nearer(key, flushed)) =>
            {
                Ok(Some((key.clone(), slot.value.clone())))
            }
            (_, Some(key)) => {
                let value = self.flushed.read(base, prefix, &key, T::Value::clone)?;
                Ok(Some((key, value.expect("a flushed key that was found has its row"))))
            }
            _ => Ok(None),
        }
    }
}

fn counts<T: Table>(group: Option<&PrefixGroup<T>>, key: &T::Key) -> bool {
    group.is_none_or(|group| !group.shadows(key))
}
