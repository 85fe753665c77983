//! Everything a store holds, for tests: the same content, however much of it is flushed, has the same hash.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::Xxh3;

use crate::engine::store::base::Base;
use crate::engine::store::codec;
use crate::engine::store::key::key_of;
use crate::engine::store::memtable::Memtable;
use crate::engine::store::rows::RowMap;
use crate::engine::store::schema::Table;
use crate::engine::store::store::Store;
use crate::error::Fault;

/// Rows by key, without their checksums.
pub(crate) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

impl<T: Table> Memtable<T> {
    /// Every row of the table: the flushed ones, and over them those of the window.
    pub(crate) fn all_rows(&self, base: &Base<'_>) -> Result<Content, Fault> {
        let mut rows = Content::new();
        for (key, value) in base.all_rows::<T>()? {
            rows.insert(key, codec::encode(&value));
        }
        for (prefix, group) in &self.groups {
            group.rows.each(&mut |key, slot| {
                rows.insert(key_of(prefix, key), codec::encode(&slot.value));
            });
            group.gone.each(&mut |key, _| {
                rows.remove(&key_of(prefix, key));
            });
        }
        Ok(rows)
    }
}

impl Store {
    /// The hash of every row, counter and queue.
    pub(crate) fn content_hash(&mut self) -> Result<u64, Fault> {
        let mut hasher = Xxh3::new();
        let base = Base::new(&self.database);
        for memtable in self.memtables.each() {
            for (key, value) in memtable.content(&base)? {
                hasher.update(&(key.len() as u64).to_le_bytes());
                hasher.update(&key);
                hasher.update(&value);
            }
        }
        hasher.update(&codec::encode(&self.kept.numbers));
        for (queue, tally) in &self.kept.tallies {
            hasher.update(&codec::encode(&(queue, tally)));
        }
        for record in self.kept.queues.values() {
            hasher.update(&codec::encode(&**record));
        }
        Ok(hasher.digest())
    }
}
