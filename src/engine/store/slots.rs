//! Slots: what the window has of one thing in several tables, in one place.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Bound;

use crate::engine::rules::record::QueueId;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::table::Table;

/// A table whose rows of one thing are in its slot.
pub(crate) trait InSlots: Table + Sized {
    /// All slots.
    type Slots: Groups<Self>;
    /// What the window has of one thing.
    type Slot;
    fn of(slot: &Self::Slot) -> &PrefixGroup<Self>;
    fn of_mut(slot: &mut Self::Slot) -> &mut PrefixGroup<Self>;
    /// The slots that have a row, if they can be asked for in order.
    fn in_order(slots: &Self::Slots) -> Option<&KeysInOrder<Self::Prefix>>;

    /// Notes that a row is about to change.
    #[inline]
    fn note_change(slots: &Self::Slots, key: &Self::Prefix) {
        if let Some(keys) = Self::in_order(slots)
            && keys.is_kept()
            && slots.group(key).is_none_or(|group: &PrefixGroup<Self>| group.rows.is_empty())
        {
            keys.note(key);
        }
    }
}

/// Says where in a slot the rows of each table are, and where their order is kept, if it is.
macro_rules! in_slots {
    ($slots:ident of $slot:ident { $($field:ident: $table:ident $(, in order: $keys:ident)?;)* }) => {
        $(impl InSlots for $table {
            type Slots = $slots;
            type Slot = $slot;

            #[inline]
            fn of(slot: &$slot) -> &PrefixGroup<$table> {
                &slot.$field
            }

            #[inline]
            fn of_mut(slot: &mut $slot) -> &mut PrefixGroup<$table> {
                &mut slot.$field
            }

            #[inline]
            fn in_order(slots: &$slots) -> Option<&KeysInOrder<Self::Prefix>> {
                in_slots!(order of slots $($keys)?)
            }
        })*
    };
    (order of $slots:ident $keys:ident) => {
        Some(&$slots.$keys)
    };
    (order of $slots:ident) => {{
        let _ = $slots;
        None
    }};
}

pub(crate) use in_slots;

/// The rest of a key of a table as its flushed rows are looked for.
pub(crate) type KeyInQueue<T> = <<T as Table>::Flushed as Table>::Key;

/// A table with one row a slot. Flushed, its rows stand by queue.
pub(crate) trait RowInSlots: InSlots + Table<Key = (), Flushed: Table<Prefix = QueueId>> {
    /// No key of a queue comes before it.
    const FIRST: KeyInQueue<Self>;

    /// The key of a slot.
    fn slot_key(queue: QueueId, key: &KeyInQueue<Self>) -> Self::Prefix;

    /// Whether the window has its own word on a key, so that a flushed row does not count.
    fn is_shadowed(slots: &Self::Slots, queue: QueueId, key: &KeyInQueue<Self>) -> bool {
        let group: Option<&PrefixGroup<Self>> = slots.group(&Self::slot_key(queue, key));
        group.is_some_and(|group| group.shadows(&()))
    }

    /// The first key of the queue from a bound on that has a row in the window.
    fn first_in_window(
        slots: &Self::Slots,
        queue: QueueId,
        from: Bound<&KeyInQueue<Self>>,
    ) -> Option<KeyInQueue<Self>> {
        let from = match from {
            Bound::Unbounded => Bound::Included(Self::slot_key(queue, &Self::FIRST)),
            bound => bound.map(|key| Self::slot_key(queue, key)),
        };
        let has_row = |group: &PrefixGroup<Self>| !group.rows.is_empty();
        let all = || {
            let mut keys = BTreeSet::new();
            slots.each_group(&mut |key, group| {
                if has_row(group) {
                    keys.insert(key.clone());
                }
            });
            keys
        };
        let keys = Self::in_order(slots).expect("only rows whose order is kept are asked for in order");
        let found = keys.first(from.as_ref(), all, |key| slots.group(key).is_some_and(has_row))?;
        let (of, key) = Self::flushed_key(&found, &());
        (*of == queue).then(|| key.clone())
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
    #[inline]
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
