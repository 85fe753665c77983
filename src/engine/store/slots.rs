//! Slots: what the window has of one thing in several tables, in one place.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Bound;

use crate::engine::rules::record::QueueId;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::table::Table;

/// The rest of a key of a table as its flushed rows are looked for.
pub(crate) type KeyInQueue<T> = <<T as Table>::Flushed as Table>::Key;

/// A table with one row a slot. Flushed, its rows stand by queue.
pub(crate) trait RowInSlots: Table<Key = (), Flushed: Table<Prefix = QueueId>> {
    /// The key of a slot.
    fn slot_key(queue: QueueId, key: &KeyInQueue<Self>) -> Self::Prefix;
}

/// Slots whose rows can be asked for in order.
pub(crate) trait OrderedSlots<T: RowInSlots>: Groups<T> {
    /// The first key of the queue from a bound on that has a row in the window.
    fn first_of_queue(&self, queue: QueueId, from: Bound<&KeyInQueue<T>>) -> Option<KeyInQueue<T>>;

    /// Whether the window has its own word on a key, so that a flushed row does not count.
    fn shadows(&self, queue: QueueId, key: &KeyInQueue<T>) -> bool {
        self.group(&T::slot_key(queue, key)).is_some_and(|group| group.shadows(&()))
    }
}

/// The slots that may have a row of a table, in order: made when it is first asked for, and kept until it is tidied up. Those that
/// have none any more go when somebody passes them.
pub(crate) struct KeysInOrder<K>(RefCell<Option<BTreeSet<K>>>);

impl<K> Default for KeysInOrder<K> {
    fn default() -> KeysInOrder<K> {
        KeysInOrder(RefCell::default())
    }
}

impl<K: Clone + Ord> KeysInOrder<K> {
    /// Whether anybody has asked.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Notes that a slot may have a row from now on.
    pub(crate) fn note(&self, key: &K) {
        if let Some(keys) = self.0.borrow_mut().as_mut() {
            keys.insert(key.clone());
        }
    }

    /// The first slot from a bound on that has a row, of `all` that have one now.
    pub(crate) fn first(
        &self,
        from: Bound<&K>,
        all: impl FnOnce() -> BTreeSet<K>,
        has_row: impl Fn(&K) -> bool,
    ) -> Option<K> {
        let mut keys = self.0.borrow_mut();
        let keys = keys.get_or_insert_with(all);
        loop {
            let next = keys.range((from, Bound::Unbounded)).next()?.clone();
            if has_row(&next) {
                return Some(next);
            }
            keys.remove(&next);
        }
    }
}

/// Whether a group has rows, or none is there.
pub(crate) fn has_rows<T: Table>(group: Option<&PrefixGroup<T>>) -> bool {
    group.is_some_and(|group| !group.rows.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_in_order_whatever_has_come_and_gone(
            steps in proptest::collection::vec((0..5_u8, 0..20_u64), 0..120)
        ) {
            let (mut rows, mut keys) = (BTreeSet::new(), KeysInOrder::default());
            for (step, key) in steps {
                match step {
                    0 | 1 => {
                        rows.insert(key);
                        keys.note(&key);
                    }
                    2 => {
                        rows.remove(&key);
                    }
                    3 => keys = KeysInOrder::default(),
                    _ => {
                        for from in [Bound::Unbounded, Bound::Included(&key), Bound::Excluded(&key)] {
                            let first = keys.first(from, || rows.clone(), |key| rows.contains(key));
                            prop_assert_eq!(first, rows.range((from, Bound::Unbounded)).next().copied());
                            prop_assert!(keys.is_kept());
                        }
                    }
                }
            }
        }
    }
}
