//! Every row of a table, for tests: the same, however much of it is flushed.

use std::collections::BTreeMap;

use crate::engine::store::base::Base;
use crate::engine::store::codec;
use crate::engine::store::flush::WholeTable;
use crate::engine::store::groups::Groups;
use crate::engine::store::key::key_of;
use crate::engine::store::rows::RowMap;
use crate::engine::store::table::Table;
use crate::error::Fault;

/// Rows by key, without their checksums.
pub(crate) type RowsByKey = BTreeMap<Vec<u8>, Vec<u8>>;

impl<T: Table, G: Groups<T>> WholeTable<'_, T, G> {
    /// Every row of the table: the flushed ones, and over them those of the window.
    pub(crate) fn all_rows(&self, base: &Base<'_>) -> Result<RowsByKey, Fault> {
        let mut rows = RowsByKey::new();
        for (key, value) in base.all_rows::<T>()? {
            rows.insert(key, codec::encode(&value));
        }
        self.groups.each_group(&mut |prefix, group| {
            group.rows.each(&mut |key, slot| {
                rows.insert(key_of(prefix, key), codec::encode(&slot.value));
            });
            group.gone.each(&mut |key, _| {
                rows.remove(&key_of(prefix, key));
            });
        });
        Ok(rows)
    }
}
