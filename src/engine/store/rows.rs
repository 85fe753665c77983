//! Where a group keeps its rows: sorted by key, or found by hash where an order is hardly ever asked for.

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Bound;

use foldhash::fast::RandomState;

/// Rows by key.
pub(crate) trait RowMap<K, V>: Default {
    fn get(&self, key: &K) -> Option<&V>;
    fn get_mut(&mut self, key: &K) -> Option<&mut V>;
    fn insert(&mut self, key: K, value: V);
    fn remove(&mut self, key: &K) -> Option<V>;
    fn len(&self) -> usize;
    /// The first row from a bound on.
    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)>;
    /// The last row up to a key.
    fn last(&self, to: &K) -> Option<(&K, &V)>;
    /// Whether it was found that no row of their prefix is flushed, so that nobody has to look there again. Rows of a kind of which
    /// there are many, or of which this is not asked, note nothing.
    #[inline]
    fn none_flushed(&self) -> bool {
        false
    }
    /// Notes whether no row of their prefix is flushed.
    #[inline]
    fn note_none_flushed(&self, _is_none: bool) {}
    /// Gives back what only makes look-ups in order faster.
    fn trim(&mut self) {}
    /// Every row, in no order.
    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V));

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Ord, V> RowMap<K, V> for BTreeMap<K, V> {
    #[inline]
    fn get(&self, key: &K) -> Option<&V> {
        BTreeMap::get(self, key)
    }

    #[inline]
    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        BTreeMap::get_mut(self, key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) {
        BTreeMap::insert(self, key, value);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        BTreeMap::remove(self, key)
    }

    #[inline]
    fn len(&self) -> usize {
        BTreeMap::len(self)
    }

    #[inline]
    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)> {
        // Most ask from the very beginning, and a range is looked for from both its ends.
        let (key, value) = self.first_key_value()?;
        let is_in = match from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        if is_in { Some((key, value)) } else { self.range((from, Bound::Unbounded)).next() }
    }

    fn last(&self, to: &K) -> Option<(&K, &V)> {
        let (key, value) = self.last_key_value()?;
        match key <= to {
            true => Some((key, value)),
            false => self.range((Bound::Unbounded, Bound::Included(to.borrow()))).next_back(),
        }
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V)) {
        self.iter().for_each(|(key, value)| with(key, value));
    }
}

/// Rows found by hash. Their order is made when it is first asked for, and kept until it is trimmed.
pub(crate) struct HashRows<K, V> {
    rows: HashMap<K, V, RandomState>,
    order: OnceCell<BTreeSet<K>>,
}

impl<K, V> Default for HashRows<K, V> {
    fn default() -> HashRows<K, V> {
        HashRows { rows: HashMap::default(), order: OnceCell::new() }
    }
}

impl<K: Clone + Ord + Hash, V> HashRows<K, V> {
    fn order(&self) -> &BTreeSet<K> {
        self.order.get_or_init(|| self.rows.keys().cloned().collect())
    }
}

impl<K: Clone + Ord + Hash, V> RowMap<K, V> for HashRows<K, V> {
    #[inline]
    fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    #[inline]
    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.rows.get_mut(key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) {
        if let Some(order) = self.order.get_mut() {
            order.insert(key.clone());
        }
        self.rows.insert(key, value);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        if let Some(order) = self.order.get_mut() {
            order.remove(key);
        }
        self.rows.remove(key)
    }

    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)> {
        let key = self.order().range((from, Bound::Unbounded)).next()?;
        self.rows.get_key_value(key)
    }

    fn last(&self, to: &K) -> Option<(&K, &V)> {
        let key = self.order().range((Bound::Unbounded, Bound::Included(to))).next_back()?;
        self.rows.get_key_value(key)
    }

    fn trim(&mut self) {
        self.order.take();
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V)) {
        self.rows.iter().for_each(|(key, value)| with(key, value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hashed_rows_answer_as_sorted_ones(steps in proptest::collection::vec((0..6_u8, 0..12_u64), 1..60)) {
            let mut sorted = BTreeMap::new();
            let mut hashed = HashRows::default();
            for (step, key) in steps {
                match step {
                    0 | 1 => {
                        RowMap::insert(&mut sorted, key, step);
                        hashed.insert(key, step);
                    }
                    2 => {
                        prop_assert_eq!(RowMap::remove(&mut sorted, &key), hashed.remove(&key));
                    }
                    3 => prop_assert_eq!(sorted.first(Bound::Excluded(&key)), hashed.first(Bound::Excluded(&key))),
                    4 => prop_assert_eq!(RowMap::last(&sorted, &key), hashed.last(&key)),
                    _ => hashed.trim(),
                }
                prop_assert_eq!(RowMap::get(&sorted, &key), hashed.get(&key));
                prop_assert_eq!(RowMap::len(&sorted), hashed.len());
            }
        }
    }
}
