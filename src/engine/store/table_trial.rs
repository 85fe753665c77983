//! What a trial has to take back of a table.

use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Table;

/// What a trial has to take back of one table.
pub(crate) struct TableTrial<T: Table> {
    pub(crate) rows: Vec<OldRow<T>>,
    /// How many changed rows the generation that is being filled had.
    pub(crate) changed: usize,
    /// How many rows the turn had touched.
    pub(crate) touched: usize,
}

/// A row as it was before a change.
pub(crate) struct OldRow<T: Table> {
    pub(crate) prefix: T::Prefix,
    pub(crate) key: T::Key,
    pub(crate) row: Option<WindowSlot<T::Value>>,
    pub(crate) gone: Option<SlotStamp>,
}
