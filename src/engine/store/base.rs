//! The rows that have been flushed: read through a transaction that lives no longer than one turn.

use std::cell::OnceCell;
use std::ops::Bound;

use redb::Database;
use redb::Range;
use redb::ReadOnlyTable;
use redb::ReadTransaction;
use redb::ReadableDatabase;
use redb::ReadableTableMetadata;
use serde::de::DeserializeOwned;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::checksum::damaged;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::codec;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::key::key_of;
use crate::engine::store::key::parts_of;
use crate::engine::store::key::prefix_end;
use crate::engine::store::key::prefix_of;
use crate::engine::store::table::MEMTABLES;
use crate::engine::store::table::Row;
use crate::engine::store::table::Table;
use crate::error::Fault;

type OpenTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

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
        sensibly::<T, _>(|| match self.table::<T>()?.get(key).map_err(store_fault)? {
            Some(checksummed) => record(&T::DEFINITION, key, checksummed.value()).map(Some),
            None => Ok(None),
        })
    }

    /// Every row.
    #[cfg(test)]
    pub(crate) fn all_rows<T: Table>(&self) -> Result<Vec<RawRow<T>>, Fault> {
        let mut rows = Vec::new();
        for row in redb::ReadableTable::iter(self.table::<T>()?).map_err(store_fault)? {
            let (key, checksummed) = row.map_err(store_fault)?;
            rows.push((key.value().to_vec(), record(&T::DEFINITION, key.value(), checksummed.value())?));
        }
        Ok(rows)
    }

    pub(crate) fn contains<T: Table>(&self, key: &[u8]) -> Result<bool, Fault> {
        sensibly::<T, _>(|| Ok(self.table::<T>()?.get(key).map_err(store_fault)?.is_some()))
    }

    /// Up to `limit` rows from a bound on whose keys begin with `prefix`, and no further than to the one with which they have so many
    /// bytes.
    pub(crate) fn rows<T: Table>(
        &self,
        prefix: &[u8],
        from: Bound<&[u8]>,
        (limit, bytes): (usize, usize),
    ) -> Result<Vec<Row<T>>, Fault> {
        sensibly::<T, _>(|| {
            let (mut rows, mut bytes_read) = (Vec::new(), 0);
            for row in self.range::<T>(prefix, from)?.take(limit) {
                note_row();
                let (key, checksummed) = row.map_err(store_fault)?;
                let value = record(&T::DEFINITION, key.value(), checksummed.value())?;
                rows.push((rest_of::<T>(key.value())?, value));
                bytes_read += checksummed.value().len();
                if bytes_read >= bytes {
                    break;
                }
            }
            Ok(rows)
        })
    }

    /// The first key of a prefix from a bound on that is wanted.
    pub(crate) fn next_key<T: Table>(
        &self,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
        wanted: impl Fn(&T::Key) -> bool,
    ) -> Result<Option<T::Key>, Fault> {
        let start = prefix_of(prefix);
        let key = from.map(|key| key_of(prefix, key));
        let from = match &key {
            Bound::Unbounded => Bound::Included(start.as_slice()),
            bound => bound.as_ref().map(Vec::as_slice),
        };
        sensibly::<T, _>(|| {
            for row in self.range::<T>(&start, from)? {
                note_row();
                let key = rest_of::<T>(row.map_err(store_fault)?.0.value())?;
                if wanted(&key) {
                    return Ok(Some(key));
                }
            }
            Ok(None)
        })
    }

    /// The last key that begins with `prefix`.
    pub(crate) fn last_key_of<T: Table>(&self, prefix: &[u8]) -> Result<Option<T::Key>, Fault> {
        sensibly::<T, _>(|| match self.range::<T>(prefix, Bound::Included(prefix))?.next_back() {
            Some(row) => rest_of::<T>(row.map_err(store_fault)?.0.value()).map(Some),
            None => Ok(None),
        })
    }

    fn range<T: Table>(
        &self,
        prefix: &[u8],
        from: Bound<&[u8]>,
    ) -> Result<Range<'_, &'static [u8], &'static [u8]>, Fault> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.table::<T>()?.range::<&[u8]>((from, to)).map_err(store_fault)
    }

    /// The last key up to `to` that begins with `prefix` and is wanted.
    pub(crate) fn last_key<T: Table>(
        &self,
        prefix: &[u8],
        to: &[u8],
        wanted: impl Fn(&T::Key) -> bool,
    ) -> Result<Option<T::Key>, Fault> {
        sensibly::<T, _>(|| {
            for row in self.table::<T>()?.range::<&[u8]>(prefix..=to).map_err(store_fault)?.rev() {
                note_row();
                let key = rest_of::<T>(row.map_err(store_fault)?.0.value())?;
                if wanted(&key) {
                    return Ok(Some(key));
                }
            }
            Ok(None)
        })
    }
}

/// Reads a table. Where its pages contradict each other redb panics, and that is damage, no defect.
fn sensibly<T: Table, R>(read: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    guarded(read).unwrap_or_else(|_| Err(damaged(&T::DEFINITION, PAGES_MAKE_NO_SENSE)))
}

#[cfg(test)]
thread_local! {
    /// Rows of tables that this thread has passed on its way to others, or read at once with them.
    static ROWS_READ: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many rows this thread has walked over so far, so that tests can tell a look-up from a scan.
#[cfg(test)]
pub(crate) fn rows_read() -> u64 {
    ROWS_READ.get()
}

fn note_row() {
    #[cfg(test)]
    ROWS_READ.set(ROWS_READ.get() + 1);
}

fn rest_of<T: Table>(key: &[u8]) -> Result<T::Key, Fault> {
    match parts_of::<T::Prefix, T::Key>(key) {
        Some((_, rest)) => Ok(rest),
        None => Err(damaged(&T::DEFINITION, "a key makes no sense")),
    }
}

/// A checksummed row's record.
pub(crate) fn record<V: DeserializeOwned>(
    table: &RawTableDefinition,
    key: &[u8],
    checksummed: &[u8],
) -> Result<V, Fault> {
    let payload = verify_checksum(table, key, checksummed)?;
    codec::decode(payload).ok_or_else(|| damaged(table, "a record makes no sense"))
}
