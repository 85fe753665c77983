//! What is kept of a table beside its rows of the window: what is flushed, and what changes.

use std::ops::Bound;

use crate::engine::store::base::Base;
use crate::engine::store::changed_keys::ChangedKeys;
use crate::engine::store::flushed_rows::FlushedRows;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Row;
use crate::engine::store::table::Table;
use crate::engine::store::table_changes::TableChanges;
use crate::engine::store::table_trial::TableTrial;
use crate::error::Fault;

/// One table, without its rows of the window: whoever looks something up, or changes it, says where these are.
pub(crate) struct TableBook<T: Table> {
    pub(crate) flushed: FlushedRows<T::Flushed>,
    /// What this turn has changed.
    pub(crate) touched: TableChanges<T>,
    pub(crate) changed: ChangedKeys<T>,
    /// What is to be taken back, while a trial runs.
    pub(crate) trial: Option<TableTrial<T>>,
}

impl<T: Table> TableBook<T> {
    pub(crate) fn new(base: &Base<'_>) -> Result<TableBook<T>, Fault> {
        Ok(TableBook {
            flushed: FlushedRows::new(base)?,
            touched: TableChanges::default(),
            changed: ChangedKeys::default(),
            trial: None,
        })
    }

    /// A row: that of the window, or else the flushed one.
    #[inline]
    pub(crate) fn get(
        &self,
        groups: &impl Groups<T>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
    ) -> Result<Option<T::Value>, Fault> {
        if let Some(group) = groups.group(prefix) {
            if let Some(slot) = group.rows.get(key) {
                return Ok(Some(slot.value.clone()));
            }
            if group.is_gone(key) {
                return Ok(None);
            }
        }
        if !self.flushed.any() {
            return Ok(None);
        }
        let (prefix, key) = T::flushed_key(prefix, key);
        self.flushed.get(base, prefix, key)
    }
}

impl<T: Table<Flushed = T>> TableBook<T> {
    /// The first row of the prefix with at least this key.
    #[inline]
    pub(crate) fn first(
        &self,
        groups: &impl Groups<T>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = groups.group(prefix);
        let own = group.and_then(|group| group.rows.first(Bound::Included(from)));
        let flushed = match self.flushed.any() && group.is_none_or(|group| !group.rows.none_flushed()) {
            true => self.first_flushed(group, base, prefix, from)?,
            false => None,
        };
        self.nearer(base, prefix, own, flushed, |own, flushed| own < flushed)
    }

    /// The first flushed key that counts; notes with the rows of the window when none is flushed at all.
    fn first_flushed(
        &self,
        group: Option<&PrefixGroup<T>>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: &T::Key,
    ) -> Result<Option<T::Key>, Fault> {
        let found = self.flushed.first(base, (prefix, from), |key| counts(group, key))?;
        if let (None, Some(group)) = (&found, group) {
            group.rows.note_none_flushed(self.flushed.has_none(base, prefix)?);
        }
        Ok(found)
    }

    /// The last row of the prefix with at most this key.
    pub(crate) fn last(
        &self,
        groups: &impl Groups<T>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        to: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = groups.group(prefix);
        let own = group.and_then(|group| group.rows.last(to));
        let flushed = match self.flushed.any() {
            true => self.flushed.last(base, (prefix, to), |key| counts(group, key))?,
            false => None,
        };
        self.nearer(base, prefix, own, flushed, |own, flushed| own > flushed)
    }

    /// Up to `limit` rows of the prefix from a bound on.
    pub(crate) fn page(
        &self,
        groups: &impl Groups<T>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
        limit: usize,
    ) -> Result<Vec<Row<T>>, Fault> {
        paged(from, limit, |from| self.next(groups, base, prefix, from))
    }

    fn next(
        &self,
        groups: &impl Groups<T>,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = groups.group(prefix);
        let own = group.and_then(|group| group.rows.first(from));
        let flushed = match self.flushed.any() {
            true => base.next_key::<T>(prefix, from, |key| counts(group, key))?,
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
                let value = self.flushed.get(base, prefix, &key)?;
                Ok(Some((key, value.expect("a flushed key that was found has its row"))))
            }
            _ => Ok(None),
        }
    }
}

fn counts<T: Table>(group: Option<&PrefixGroup<T>>, key: &T::Key) -> bool {
    group.is_none_or(|group| !group.shadows(key))
}

/// Up to `limit` rows from a bound on, each of which is the next behind the one before.
pub(crate) fn paged<K, V>(
    from: Bound<&K>,
    limit: usize,
    next: impl Fn(Bound<&K>) -> Result<Option<(K, V)>, Fault>,
) -> Result<Vec<(K, V)>, Fault> {
    let mut page: Vec<(K, V)> = Vec::new();
    while page.len() < limit {
        let from = page.last().map_or(from, |(last, _)| Bound::Excluded(last));
        let Some(row) = next(from)? else { break };
        page.push(row);
    }
    Ok(page)
}
