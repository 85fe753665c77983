//! A map that can be asked but not walked, so that the order of its entries can never matter.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Values found by key. It has no iterator on purpose: the order of a hash map differs from run to run.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<K, V>(HashMap<K, V, RandomState>);

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Lookup<K, V> {
        Lookup(HashMap::default())
    }
}

impl<K: Eq + Hash, V> Lookup<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// The value of a key, made if it is not there.
    pub(crate) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V
    where
        K: Clone,
    {
        // Two look-ups for a new key, so that a known one costs no copy of it.
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), make());
        }
        self.0.get_mut(key).expect("it was just put there")
    }

    /// Puts a value; returns the one that was there.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
