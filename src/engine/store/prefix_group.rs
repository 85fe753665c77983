//! The rows of the window that have one prefix.

use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::table::Table;

/// The rows of one prefix: those that are there, and those that are deleted but may still be flushed.
pub(crate) struct PrefixGroup<T: Table> {
    pub(crate) rows: T::Rows,
    pub(crate) gone: T::Gone,
}

impl<T: Table> Default for PrefixGroup<T> {
    #[inline]
    fn default() -> PrefixGroup<T> {
        PrefixGroup { rows: T::Rows::default(), gone: T::Gone::default() }
    }
}

impl<T: Table> PrefixGroup<T> {
    /// Whether the window says nothing of the prefix.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.gone.is_empty()
    }

    /// Whether the window has its own word on this key, so that a flushed row does not count.
    #[inline]
    pub(crate) fn shadows(&self, key: &T::Key) -> bool {
        self.rows.contains(key) || self.is_gone(key)
    }

    #[inline]
    pub(crate) fn is_gone(&self, key: &T::Key) -> bool {
        !self.gone.is_empty() && self.gone.contains(key)
    }

    /// Where a row stands, or where a deleted one did.
    #[inline]
    pub(crate) fn stamp(&self, key: &T::Key) -> Option<&SlotStamp> {
        match self.rows.get(key) {
            Some(slot) => Some(&slot.stamp),
            None if self.gone.is_empty() => None,
            None => self.gone.get(key),
        }
    }
}
