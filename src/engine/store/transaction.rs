//! Write transactions of redb.

use redb::Database;
use redb::Durability;
use redb::WriteTransaction;

use crate::engine::store::caught::store_fault;
use crate::engine::store::options::StoreOptions;
use crate::error::Fault;

/// Begins a transaction with the durability that the options ask for.
pub(crate) fn begin(database: &Database, options: StoreOptions) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write().map_err(store_fault)?;
    transaction.set_durability(Durability::Immediate).map_err(store_fault)?;
    transaction.set_two_phase_commit(options.strict);
    transaction.set_quick_repair(options.quick_repair);
    Ok(transaction)
}
