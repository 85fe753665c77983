//! The rows of a file that is looked at, as an engine would see them: what is flushed, and over it the journal.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::iter::Peekable;
use std::marker::PhantomData;

use redb::ReadOnlyTable;
use redb::ReadTransaction;
use redb::TableError;

use crate::engine::store::all_rows::AllRows;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::damaged;
use crate::engine::store::codec;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::flushed_row;
use crate::engine::store::key::key_of;
use crate::engine::store::key::parts_of;
use crate::engine::store::schema;
use crate::engine::store::table::MEMTABLES;
use crate::engine::store::table::Table;
use crate::engine::store::table_rows;
use crate::error::Fault;

type RowBytes = &'static [u8];

/// What the journal says of each table: the last value of a key, or that it is deleted.
pub(crate) type Overlay = [BTreeMap<Vec<u8>, Option<Vec<u8>>>; MEMTABLES];

/// A row in its parts.
pub(crate) type MergedEntry<T> = (<T as Table>::Prefix, <T as Table>::Key, <T as Table>::Value);

/// All tables.
pub(crate) struct MergedTables<'o> {
    tables: [Option<ReadOnlyTable<RowBytes, RowBytes>>; MEMTABLES],
    overlay: &'o Overlay,
}

impl<'o> MergedTables<'o> {
    pub(crate) fn new(
        transaction: &ReadTransaction,
        overlay: &'o Overlay,
    ) -> Result<MergedTables<'o>, Fault> {
        let mut tables = [const { None }; MEMTABLES];
        for (table, definition) in tables.iter_mut().zip(schema::MEMTABLE) {
            *table = open_table(transaction, definition)?;
        }
        Ok(MergedTables { tables, overlay })
    }

    /// One row.
    pub(crate) fn get<T: Table>(&self, prefix: &T::Prefix, key: &T::Key) -> Result<Option<T::Value>, Fault> {
        let bytes = key_of(prefix, key);
        if let Some(value) = self.overlay[usize::from(T::NUMBER)].get(&bytes) {
            return value.as_deref().map(decoded::<T>).transpose();
        }
        let Some(table) = &self.tables[usize::from(T::NUMBER)] else { return Ok(None) };
        table_rows::find::<T, _>(table, &bytes, |row| row.record(&T::DEFINITION, &bytes))
    }

    /// Every row of a table, in the order of its keys.
    pub(crate) fn rows<T: Table>(&self) -> Result<MergedRows<'_, T>, Fault> {
        let flushed = match &self.tables[usize::from(T::NUMBER)] {
            Some(table) => Some(AllRows::of::<T>(table)?.peekable()),
            None => None,
        };
        let window = self.overlay[usize::from(T::NUMBER)].iter().peekable();
        Ok(MergedRows { flushed, window, of: PhantomData })
    }
}

/// A table of the file, if it is there.
pub(crate) fn open_table(
    transaction: &ReadTransaction,
    definition: RawTableDefinition,
) -> Result<Option<ReadOnlyTable<RowBytes, RowBytes>>, Fault> {
    match transaction.open_table(definition) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(store_fault(error)),
    }
}

/// The rows of one table.
pub(crate) struct MergedRows<'m, T> {
    flushed: Option<Peekable<AllRows<'m>>>,
    window: Peekable<btree_map::Iter<'m, Vec<u8>, Option<Vec<u8>>>>,
    of: PhantomData<T>,
}

impl<T: Table> MergedRows<'_, T> {
    fn next_row(&mut self) -> Result<Option<MergedEntry<T>>, Fault> {
        loop {
            let flushed = self.flushed.as_mut().and_then(Peekable::peek);
            let nearer = match (flushed, self.window.peek()) {
                (None, None) => return Ok(None),
                (Some(Ok((key, _))), Some((own, _))) => key.cmp(own),
                (Some(_), _) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            let flushed = if nearer.is_le() { self.flushed.as_mut().and_then(Iterator::next) } else { None };
            let own = if nearer.is_ge() { self.window.next() } else { None };
            match (own, flushed.transpose()?) {
                (Some((key, Some(value))), _) => return entry::<T>(key, decoded::<T>(value)?).map(Some),
                (None, Some((key, payload))) => {
                    return entry::<T>(&key, flushed_row::decoded(&T::DEFINITION, &payload)?).map(Some);
                }
                // Deleted.
                (Some((_, None)), _) | (None, None) => {}
            }
        }
    }
}

impl<T: Table> Iterator for MergedRows<'_, T> {
    type Item = Result<MergedEntry<T>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}

fn entry<T: Table>(key: &[u8], value: T::Value) -> Result<MergedEntry<T>, Fault> {
    let nonsense = || damaged(&T::DEFINITION, "a key makes no sense");
    let (prefix, key) = parts_of(key).ok_or_else(nonsense)?;
    Ok((prefix, key, value))
}

/// A row's value as the journal has it.
pub(crate) fn decoded<T: Table>(bytes: &[u8]) -> Result<T::Value, Fault> {
    codec::decode(bytes).ok_or_else(|| damaged(&T::DEFINITION, "a row in the journal makes no sense"))
}
