//! The room in which rows are on their way to the disk: it comes back once they are written.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::engine::store::row_state::ChangedRow;
use crate::engine::store::table::Table;

/// Room for so many rows is kept: more than a turn usually changes of a table, and little of what the engine takes.
const KEPT_ROWS_MAX: usize = 4096;

/// Room for the rows of one table that nobody uses, shared by who fills it and who has written what was in it: new room costs
/// a fault for each of its pages.
pub(crate) struct RowRoom<T: Table>(Arc<Mutex<Vec<ChangedRow<T>>>>);

impl<T: Table> Clone for RowRoom<T> {
    fn clone(&self) -> RowRoom<T> {
        RowRoom(self.0.clone())
    }
}

impl<T: Table> Default for RowRoom<T> {
    fn default() -> RowRoom<T> {
        RowRoom(Arc::default())
    }
}

impl<T: Table> RowRoom<T> {
    /// Empty room, and as much as was needed before if there is any.
    pub(crate) fn take(&self) -> Vec<ChangedRow<T>> {
        std::mem::take(&mut *self.lock())
    }

    /// Gives room back with what is in it; the larger of two is kept.
    pub(crate) fn give_back(&self, mut rows: Vec<ChangedRow<T>>) {
        rows.clear();
        let mut kept = self.lock();
        if (kept.capacity()..=KEPT_ROWS_MAX).contains(&rows.capacity()) {
            *kept = rows;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ChangedRow<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
