//! The rows that have been flushed: read through a transaction that lives no longer than one turn.

use std::cell::OnceCell;
use std::ops::Bound;
use std::ops::ControlFlow;

use redb::Database;
use redb::ReadTransaction;
use redb::ReadableDatabase;
use redb::ReadableTableMetadata;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::damaged;
use crate::engine::store::flushed_row::FlushedRow;
use crate::engine::store::key::key_of;
use crate::engine::store::key::parts_of;
use crate::engine::store::key::prefix_end;
use crate::engine::store::key::prefix_of;
use crate::engine::store::table::MEMTABLES;
use crate::engine::store::table::Row;
use crate::engine::store::table::Table;
use crate::engine::store::table_rows;
use crate::engine::store::table_rows::OpenTable;
use crate::error::Fault;

/// A row with its key as bytes.
#[cfg(test)]
pub(crate) type RawRow<T> = (Vec<u8>, <T as Table>::Value);

/// The flushed rows as of the last commit. Nothing is opened before the first look-up, because most turns need none;
/// nothing is held over a commit, because a held reader keeps redb from using freed pages again.
pub(crate) struct Base<'d> {
    database: &'d Database,
    transaction: OnceCell<ReadTransaction>,
    tables: [OnceCell<OpenTable>; MEMTABLES],
}

impl<'d> Base<'d> {
    pub(crate) fn new(database: &'d Database) -> Base<'d> {
        Base { database, transaction: OnceCell::new(), tables: [const { OnceCell::new() }; MEMTABLES] }
    }

    /// Whether anything was looked up.
    pub(crate) fn has_read(&self) -> bool {
        self.transaction.get().is_some()
    }

    fn transaction(&self) -> Result<&ReadTransaction, Fault> {
        if self.transaction.get().is_none() {
            let begun = self.database.begin_read().map_err(store_fault)?;
            return Ok(self.transaction.get_or_init(|| begun));
        }
        Ok(self.transaction.get().expect("it was just looked at"))
    }

    fn table<T: Table>(&self) -> Result<&OpenTable, Fault> {
        let place = &self.tables[usize::from(T::NUMBER)];
        if place.get().is_none() {
            let opened = self.transaction()?.open_table(T::DEFINITION).map_err(store_fault)?;
            return Ok(place.get_or_init(|| opened));
        }
        Ok(place.get().expect("it was just looked at"))
    }

    /// Whether the table has any row.
    pub(crate) fn has_rows<T: Table>(&self) -> Result<bool, Fault> {
        sensibly::<T, _>(|| Ok(!self.table::<T>()?.is_empty().map_err(store_fault)?))
    }

    pub(crate) fn get<T: Table>(&self, key: &[u8]) -> Result<Option<T::Value>, Fault> {
        self.find::<T, _>(key, |row| row.record::<T::Value>(&T::DEFINITION, key))
    }

    /// Every row.
    #[cfg(test)]
    pub(crate) fn all_rows<T: Table>(&self) -> Result<Vec<RawRow<T>>, Fault> {
        let mut rows = Vec::new();
        self.walk::<T>((Bound::Unbounded, Bound::Unbounded), |key, row| {
            rows.push((key.to_vec(), row.record(&T::DEFINITION, key)?));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    pub(crate) fn contains<T: Table>(&self, key: &[u8]) -> Result<bool, Fault> {
        Ok(self.find::<T, _>(key, |_| Ok(()))?.is_some())
    }

    fn find<T: Table, R>(
        &self,
        key: &[u8],
        found: impl FnOnce(FlushedRow<'_>) -> Result<R, Fault>,
    ) -> Result<Option<R>, Fault> {
        sensibly::<T, _>(|| table_rows::find::<T, _>(self.table::<T>()?, key, found))
    }

    /// Up to `limit` rows from a bound on whose keys begin with `prefix`, and no further than to the one with which they have so many
    /// bytes; and whether these are all.
    pub(crate) fn rows<T: Table>(
        &self,
        prefix: &[u8],
        from: Bound<&[u8]>,
        (limit, bytes): (usize, usize),
    ) -> Result<(Vec<Row<T>>, bool), Fault> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut rows, mut bytes_read, mut goes_on) = (Vec::new(), 0, true);
        self.walk::<T>((from, to), |key, row| {
            rows.push((rest_of::<T>(prefix, key)?, row.record(&T::DEFINITION, key)?));
            bytes_read += row.len();
            goes_on = rows.len() < limit && bytes_read < bytes;
            Ok(go_on_while(goes_on))
        })?;
        Ok((rows, goes_on))
    }

    /// The first key of a prefix from a bound on that is wanted.
    pub(crate) fn next_key<T: Table>(
        &self,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
        wanted: impl Fn(&T::Key) -> bool,
    ) -> Result<Option<T::Key>, Fault> {
        let start = prefix_of(prefix);
        let end = prefix_end(&start);
        let key = from.map(|key| key_of(prefix, key));
        let from = match &key {
            Bound::Unbounded => Bound::Included(start.as_slice()),
            bound => bound.as_ref().map(Vec::as_slice),
        };
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = None;
        self.walk::<T>((from, to), |key, _| {
            found = Some(rest_of::<T>(&start, key)?).filter(&wanted);
            Ok(go_on_while(found.is_none()))
        })?;
        Ok(found)
    }

    /// The last key that begins with `prefix`.
    pub(crate) fn last_key_of<T: Table>(&self, prefix: &[u8]) -> Result<Option<T::Key>, Fault> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = None;
        self.walk_back::<T>((Bound::Included(prefix), to), |key| {
            found = Some(rest_of::<T>(prefix, key)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The last key up to `to` that begins with `prefix` and is wanted.
    pub(crate) fn last_key<T: Table>(
        &self,
        prefix: &[u8],
        to: &[u8],
        wanted: impl Fn(&T::Key) -> bool,
    ) -> Result<Option<T::Key>, Fault> {
        let mut found = None;
        self.walk_back::<T>((Bound::Included(prefix), Bound::Included(to)), |key| {
            found = Some(rest_of::<T>(prefix, key)?).filter(&wanted);
            Ok(go_on_while(found.is_none()))
        })?;
        Ok(found)
    }

    /// Goes through the rows between two bounds, until it is enough.
    fn walk<T: Table>(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        mut each: impl FnMut(&[u8], FlushedRow<'_>) -> Result<ControlFlow<()>, Fault>,
    ) -> Result<(), Fault> {
        let each = |key: &[u8], row: FlushedRow<'_>| {
            note_row();
            each(key, row)
        };
        sensibly::<T, _>(|| table_rows::walk::<T>(self.table::<T>()?, bounds, each))
    }

    /// Goes through the keys between two bounds from the last on, until it is enough.
    fn walk_back<T: Table>(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        mut each: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Fault>,
    ) -> Result<(), Fault> {
        let each = |key: &[u8]| {
            note_row();
            each(key)
        };
        sensibly::<T, _>(|| table_rows::walk_back::<T>(self.table::<T>()?, bounds, each))
    }
}

fn go_on_while(more: bool) -> ControlFlow<()> {
    if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Reads a table. Where its pages contradict each other redb panics, and that is damage, no defect.
fn sensibly<T: Table, R>(read: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    guarded(read).unwrap_or_else(|panic| Err(panic.fault_in(&T::DEFINITION)))
}

#[cfg(test)]
thread_local! {
    /// Rows of tables that this thread has passed on its way to others, or read at once with them.
    static ROWS_READ: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many rows this thread has walked over so far, so that tests can tell a look-up from a scan. Those of a block before the first
/// that was asked for are not counted.
#[cfg(test)]
pub(crate) fn rows_read() -> u64 {
    ROWS_READ.get()
}

fn note_row() {
    #[cfg(test)]
    ROWS_READ.set(ROWS_READ.get() + 1);
}

/// What a key has behind its prefix. The prefix is that of whoever asks: it is compared and not read.
fn rest_of<T: Table>(prefix: &[u8], key: &[u8]) -> Result<T::Key, Fault> {
    match key.strip_prefix(prefix).and_then(parts_of::<(), T::Key>) {
        Some(((), rest)) => Ok(rest),
        None => Err(damaged(&T::DEFINITION, "a key makes no sense")),
    }
}
