//! One table inside one turn: opened at its first use, keys raw, values sealed.

use std::cell::RefCell;
use std::ops::Bound;

use redb::ReadableTable;
use redb::Table;
use redb::WriteTransaction;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::store::codec;
use crate::engine::store::key::Key;
use crate::engine::store::schema::Definition;
use crate::engine::store::seal::damaged;
use crate::engine::store::seal::seal;
use crate::engine::store::seal::unseal;
use crate::error::Fault;

type OpenTable<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// One table inside one turn.
pub(crate) struct Shelf<'t> {
    definition: Definition,
    transaction: &'t WriteTransaction,
    table: RefCell<Option<OpenTable<'t>>>,
}

/// A row's key and record.
pub(crate) type Row<V> = (Vec<u8>, V);

impl<'t> Shelf<'t> {
    pub(crate) fn new(transaction: &'t WriteTransaction, definition: Definition) -> Shelf<'t> {
        Shelf { definition, transaction, table: RefCell::new(None) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut OpenTable<'t>) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut table = self.table.borrow_mut();
        match &mut *table {
            Some(table) => work(table),
            none => {
                let opened = self.transaction.open_table(self.definition).map_err(store_fault)?;
                work(none.insert(opened))
            }
        }
    }

    /// The fault of a key that cannot be what was written.
    pub(crate) fn bad_key(&self) -> Fault {
        damaged(&self.definition, "a key makes no sense")
    }

    fn record<V: DeserializeOwned>(&self, key: &[u8], sealed: &[u8]) -> Result<V, Fault> {
        let payload = unseal(&self.definition, key, sealed)?;
        codec::decode(payload).ok_or_else(|| damaged(&self.definition, "a record makes no sense"))
    }

    pub(crate) fn get<V: DeserializeOwned>(&self, key: &Key) -> Result<Option<V>, Fault> {
        self.with(|table| match table.get(key.bytes()).map_err(store_fault)? {
            Some(sealed) => self.record(key.bytes(), sealed.value()).map(Some),
            None => Ok(None),
        })
    }

    /// Puts or deletes a row.
    pub(crate) fn set<V: Serialize>(&self, key: &Key, record: Option<&V>) -> Result<(), Fault> {
        self.with(|table| {
            match record {
                Some(record) => {
                    let sealed = seal(&self.definition, key.bytes(), codec::encode(record));
                    table.insert(key.bytes(), sealed.as_slice()).map_err(store_fault)?;
                }
                None => drop(table.remove(key.bytes()).map_err(store_fault)?),
            }
            Ok(())
        })
    }

    /// The first row at or after `from`, if it begins with `prefix`.
    pub(crate) fn first<V: DeserializeOwned>(
        &self,
        prefix: &Key,
        from: &Key,
    ) -> Result<Option<Row<V>>, Fault> {
        Ok(self.page(prefix, Bound::Included(from), 1)?.pop())
    }

    /// The last row at or before `to`, if it begins with `prefix`.
    pub(crate) fn last<V: DeserializeOwned>(&self, prefix: &Key, to: &Key) -> Result<Option<Row<V>>, Fault> {
        self.with(|table| {
            let mut rows = table.range::<&[u8]>(..=to.bytes()).map_err(store_fault)?;
            let Some(row) = rows.next_back() else {
                return Ok(None);
            };
            let (key, sealed) = row.map_err(store_fault)?;
            if !key.value().starts_with(prefix.bytes()) {
                return Ok(None);
            }
            Ok(Some((key.value().to_vec(), self.record(key.value(), sealed.value())?)))
        })
    }

    /// Up to `limit` rows from a bound on, as far as they begin with `prefix`.
    pub(crate) fn page<V: DeserializeOwned>(
        &self,
        prefix: &Key,
        from: Bound<&Key>,
        limit: usize,
    ) -> Result<Vec<Row<V>>, Fault> {
        self.with(|table| {
            let from = from.map(Key::bytes);
            let rows = table.range::<&[u8]>((from, Bound::Unbounded)).map_err(store_fault)?;
            let mut page = Vec::new();
            for row in rows.take(limit) {
                let (key, sealed) = row.map_err(store_fault)?;
                if !key.value().starts_with(prefix.bytes()) {
                    break;
                }
                page.push((key.value().to_vec(), self.record(key.value(), sealed.value())?));
            }
            Ok(page)
        })
    }

    /// Deletes every row whose key is wanted.
    pub(crate) fn delete_where(&self, unwanted: impl Fn(&[u8]) -> bool) -> Result<(), Fault> {
        self.with(|table| table.retain(|key, _| !unwanted(key)).map_err(store_fault))
    }

    /// Deletes every row that begins with `prefix`.
    pub(crate) fn delete_prefix(&self, prefix: &Key) -> Result<(), Fault> {
        self.with(|table| {
            let from = Bound::Included(prefix.bytes());
            let end = prefix_end(prefix.bytes());
            let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            table.retain_in::<&[u8], _>((from, to), |_, _| false).map_err(store_fault)
        })
    }
}

/// The first key after all that begin with `prefix`.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// A failure of redb as a fault.
pub(crate) fn store_fault(error: impl Into<redb::Error>) -> Fault {
    Fault::Store(std::sync::Arc::new(error.into()))
}
