//! Rows that are seldom there: without any, they take no more than a pointer.

use std::ops::Bound;

use crate::engine::store::rows::RowMap;

/// Rows in a map of their own, which is made with the first and goes with the last. What is kept for each of many prefixes is
/// small that way, and more of them fit into a processor's cache.
pub(crate) struct RareRows<R>(Option<Box<R>>);

impl<R> Default for RareRows<R> {
    fn default() -> RareRows<R> {
        RareRows(None)
    }
}

impl<K, V, R: RowMap<K, V>> RowMap<K, V> for RareRows<R> {
    #[inline]
    fn get(&self, key: &K) -> Option<&V> {
        self.0.as_ref()?.get(key)
    }

    #[inline]
    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.as_mut()?.get_mut(key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) {
        self.0.get_or_insert_default().insert(key, value);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.0.as_mut()?.remove(key);
        self.0.take_if(|rows| rows.is_empty());
        removed
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |rows| rows.len())
    }

    #[inline]
    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)> {
        self.0.as_ref()?.first(from)
    }

    fn last(&self, to: &K) -> Option<(&K, &V)> {
        self.0.as_ref()?.last(to)
    }

    fn trim(&mut self) {
        if let Some(rows) = &mut self.0 {
            rows.trim();
        }
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V)) {
        self.0.iter().for_each(|rows| rows.each(with));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_goes_leaves_nothing_behind() {
        let mut rows = RareRows::<BTreeMap<u64, &str>>::default();
        assert!(rows.is_empty() && rows.first(Bound::Unbounded).is_none() && rows.last(&9).is_none());
        assert!(rows.get_mut(&1).is_none() && rows.remove(&1).is_none());
        rows.insert(1, "one");
        rows.insert(2, "two");
        assert_eq!((rows.len(), rows.get(&2), rows.last(&1)), (2, Some(&"two"), Some((&1, &"one"))));
        assert_eq!((rows.remove(&1), rows.remove(&3), rows.remove(&2)), (Some("one"), None, Some("two")));
        assert!(rows.0.is_none(), "no map without rows");
    }
}
