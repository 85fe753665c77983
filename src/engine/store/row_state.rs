//! What a turn has made of a row.

use crate::engine::store::table::PrefixedKey;
use crate::engine::store::table::Table;

/// What a row has become.
pub(crate) enum RowState<V> {
    Put(V),
    Deleted,
    /// It came and went within the turn, so that there is nothing to write.
    AsBefore,
}

/// A row that has changed, with its key.
pub(crate) type ChangedRow<T> = (PrefixedKey<T>, RowState<<T as Table>::Value>);
