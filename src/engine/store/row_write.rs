//! Rows that are flushed, on their way to their tables: encoded by whoever commits them.

use redb::WriteTransaction;

use crate::engine::store::block_changes::BlockChanges;
use crate::engine::store::blocks::BlockTable;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::checksum;
use crate::engine::store::codec;
use crate::engine::store::key::key_of;
use crate::engine::store::key::put_key;
use crate::engine::store::table::PrefixedKey;
use crate::engine::store::table::Table;
use crate::error::Fault;

/// Rows of one table; those without a value are deleted.
pub(crate) struct Rows<T: Table>(pub(crate) Vec<(PrefixedKey<T>, Option<T::Value>)>);

/// What is done with rows of any table.
pub(crate) trait RowWrite: Send {
    /// Writes them to their table.
    fn flush(&self, transaction: &WriteTransaction) -> Result<(), Fault>;
}

impl<T: Table> RowWrite for Rows<T> {
    fn flush(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        if T::IN_BLOCKS {
            let mut changes = BlockChanges::default();
            for ((prefix, key), value) in &self.0 {
                let put_value = value.as_ref().map(|value| |bytes: &mut _| codec::encode_to(value, bytes));
                changes.add(|bytes| put_key(prefix, key, bytes), put_value);
            }
            return BlockTable::open(transaction, T::DEFINITION)?.merge(&changes.rows());
        }
        let mut table = transaction.open_table(T::DEFINITION).map_err(store_fault)?;
        for ((prefix, key), value) in &self.0 {
            let key = key_of(prefix, key);
            match value {
                Some(value) => {
                    let checksummed = checksum(&T::DEFINITION, &key, codec::encode(value));
                    table.insert(&*key, &*checksummed).map_err(store_fault)?;
                }
                None => drop(table.remove(&*key).map_err(store_fault)?),
            }
        }
        Ok(())
    }
}
