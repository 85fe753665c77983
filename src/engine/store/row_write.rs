//! Rows on their way to the disk, as they were when their turn ended: encoded by whoever commits them.

use redb::WriteTransaction;

use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::checksum;
use crate::engine::store::codec;
use crate::engine::store::key::key_of;
use crate::engine::store::row_state::ChangedRow;
use crate::engine::store::row_state::RowState;
use crate::engine::store::table::Table;
use crate::error::Fault;

/// Rows of one table.
pub(crate) struct Rows<T: Table>(pub(crate) Vec<ChangedRow<T>>);

/// What is done with rows of any table.
pub(crate) trait RowWrite: Send {
    /// Writes them to their table.
    fn flush(&self, transaction: &WriteTransaction) -> Result<(), Fault>;
}

impl<T: Table> RowWrite for Rows<T> {
    fn flush(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        let mut table = transaction.open_table(T::DEFINITION).map_err(store_fault)?;
        for ((prefix, key), now) in &self.0 {
            let key = key_of(prefix, key);
            match now {
                RowState::Put(value) => {
                    let checksummed = checksum(&T::DEFINITION, &key, codec::encode(value));
                    table.insert(&*key, &*checksummed).map_err(store_fault)?;
                }
                RowState::Deleted => drop(table.remove(&*key).map_err(store_fault)?),
                RowState::AsBefore => {}
            }
        }
        Ok(())
    }
}
