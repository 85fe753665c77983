//! Maps the order of whose entries can never matter: they can be asked, and are hardly ever walked over.

use std::cell::Cell;
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
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// Makes room for so many more at once.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.0.reserve(more);
    }

    /// The value of a key, made if it is not there.
    #[inline]
    pub(crate) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.0.entry(key).or_insert_with(make)
    }

    /// Puts a value; returns the one that was there.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A key that is asked for several times within a short while.
pub(crate) trait RecentKey {
    /// A number that clones of a key have in common, told without a look at all of it: neighbours in time have different ones. It only
    /// says where to look first.
    fn hint(&self) -> usize;
}

impl RecentKey for () {
    fn hint(&self) -> usize {
        0
    }
}

/// Places for recently found slots at first, and at most: some for each entry, so that hardly any two that are worked on share one,
/// and no more than fit into a processor's nearer caches.
const RECENT_MIN: usize = 128;
const RECENT_PER_SLOT: usize = 4;
/// See [`RECENT_MIN`].
const RECENT_MAX: usize = 32_768;

/// Where an entry of a [`SlotLookup`] is, until it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotNumber(usize);

/// A [`Lookup`] that is asked for the same keys several times within a short while: each entry has a slot, and those that were found
/// recently are looked at first, without a hash.
#[derive(Debug)]
pub(crate) struct SlotLookup<K, V> {
    slots: Vec<Option<(K, V)>>,
    /// Slots that nobody has.
    free: Vec<usize>,
    by_key: HashMap<K, usize, RandomState>,
    /// The slots that were found last, by the hints of their keys: a power of two of places.
    recent: Box<[Cell<u32>]>,
}

impl<K, V> Default for SlotLookup<K, V> {
    fn default() -> SlotLookup<K, V> {
        let recent = vec![Cell::new(0); RECENT_MIN].into();
        SlotLookup { slots: Vec::new(), free: Vec::new(), by_key: HashMap::default(), recent }
    }
}

impl<K: Clone + Eq + Hash + RecentKey, V> SlotLookup<K, V> {
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// A value, with its key as it is kept.
    #[inline]
    pub(crate) fn get_key_value(&self, key: &K) -> Option<(&K, &V)> {
        match self.slots.get(self.recent(key).get() as usize) {
            Some(Some((known, value))) if known == key => Some((known, value)),
            _ => self.at(SlotNumber(self.find_by_hash(key)?)),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let slot = self.find(key)?;
        self.slots[slot].as_mut().map(|(_, value)| value)
    }

    /// The value of a key, made if it is not there, and its slot.
    #[inline]
    pub(crate) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> (SlotNumber, &mut V) {
        let slot = match self.find(key) {
            Some(slot) => slot,
            None => self.add(key.clone(), make()),
        };
        let (_, value) = self.slots[slot].as_mut().expect("whoever has a slot is in it");
        (SlotNumber(slot), value)
    }

    /// Who has a slot: another one than before, if that was given up since.
    #[inline]
    pub(crate) fn at(&self, slot: SlotNumber) -> Option<(&K, &V)> {
        self.slots.get(slot.0)?.as_ref().map(|(key, value)| (key, value))
    }

    /// Puts a value; returns the one that was there.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        self.add(key, value);
        None
    }

    /// Gives an entry that is not there yet a slot.
    pub(crate) fn add(&mut self, key: K, value: V) -> usize {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
            self.make_room_for_recent();
        }
        let known = self.by_key.insert(key.clone(), slot);
        assert!(known.is_none(), "a key has one slot");
        self.note_recent(&key, slot);
        self.slots[slot] = Some((key, value));
        slot
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let slot = self.by_key.remove(key)?;
        self.free.push(slot);
        self.slots[slot].take().map(|(_, value)| value)
    }

    /// Gives up whatever is not wanted.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&K, &mut V) -> bool) {
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if let Some((key, _)) = slot.take_if(|(key, value)| !wanted(key, value)) {
                self.by_key.remove(&key);
                self.free.push(number);
            }
        }
        if self.by_key.is_empty() {
            *self = SlotLookup::default();
        }
    }

    /// Every entry, in the order of their slots, which says nothing of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.slots.iter().flatten().map(|(key, value)| (key, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    #[inline]
    fn find(&self, key: &K) -> Option<usize> {
        let recent = self.recent(key).get() as usize;
        match self.slots.get(recent) {
            Some(Some((known, _))) if known == key => Some(recent),
            _ => self.find_by_hash(key),
        }
    }

    #[inline(never)]
    fn find_by_hash(&self, key: &K) -> Option<usize> {
        let found = *self.by_key.get(key)?;
        if let Some((known, _)) = &self.slots[found] {
            self.note_recent(known, found);
        }
        // Whoever asks with a key of its own mostly does so twice.
        self.note_recent(key, found);
        Some(found)
    }

    /// Where to look first for a key.
    #[inline]
    fn recent(&self, key: &K) -> &Cell<u32> {
        &self.recent[key.hint() & (self.recent.len() - 1)]
    }

    /// Notes where to look first for a key. A slot with a larger number than there is room for is found by its hash.
    #[inline]
    fn note_recent(&self, key: &K, slot: usize) {
        self.recent(key).set(u32::try_from(slot).unwrap_or(u32::MAX));
    }

    /// More places if there are fewer than some for each slot.
    fn make_room_for_recent(&mut self) {
        let places = self.recent.len();
        if RECENT_PER_SLOT * self.slots.len() > places && places < RECENT_MAX {
            self.recent = vec![Cell::new(0); 2 * places].into();
            for (slot, entry) in self.slots.iter().enumerate() {
                if let Some((key, _)) = entry {
                    self.note_recent(key, slot);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl RecentKey for u64 {
        fn hint(&self) -> usize {
            // Some keys share a hint.
            (*self / 2) as usize
        }
    }

    proptest! {
        #[test]
        fn slots_answer_as_a_map(steps in proptest::collection::vec((0..7_u8, 0..9_u64), 0..80)) {
            let (mut map, mut slots) = (BTreeMap::new(), SlotLookup::default());
            for (at, (step, key)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => prop_assert_eq!(map.insert(key, at), slots.insert(key, at)),
                    2 => prop_assert_eq!(map.remove(&key), slots.remove(&key)),
                    3 => {
                        map.retain(|other, _| other % 3 != key % 3);
                        slots.retain(|other, _| other % 3 != key % 3);
                    }
                    4 => {
                        let (slot, value) = slots.get_or_insert_with(&key, || at);
                        prop_assert_eq!(map.entry(key).or_insert(at), value);
                        prop_assert_eq!(slots.at(slot), map.get_key_value(&key));
                    }
                    _ => prop_assert_eq!(map.get_mut(&key), slots.get_mut(&key)),
                }
                prop_assert_eq!(map.get(&key), slots.get(&key));
                prop_assert_eq!(map.len(), slots.len());
                prop_assert_eq!(&map, &slots.iter().map(|(key, value)| (*key, *value)).collect());
            }
        }
    }
}
