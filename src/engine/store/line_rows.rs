//! Rows of a prefix that come and go at its ends as a rule, such as the line of a workflow or a queue's list of what is ready: side by
//! side, and sorted in a tree once something comes or goes in the midst of many.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::Bound;

use crate::engine::store::rare_rows::RareRows;
use crate::engine::store::rows::RowMap;

/// No more rows than these are moved for one that comes or goes: it takes no longer than a few nodes of a tree. Tests have trees
/// sooner.
const MOVED_MAX: usize = if cfg!(test) { 8 } else { 256 };

/// No more rows than these lie side by side: making room for twice as many stops whoever waits for less than a millisecond.
const FEW_MAX: usize = if cfg!(test) { 32 } else { 32 * 1024 };

/// Room for so many is kept even if nothing is in it.
const ROOM_KEPT: usize = 16;

/// Rows by key. A line grows at its end and shrinks at its front, and is empty again and again: its room is kept until it is
/// trimmed.
pub(crate) struct LineRows<K, V> {
    /// In order; empty while there are `many`.
    few: VecDeque<(K, V)>,
    many: RareRows<BTreeMap<K, V>>,
}

impl<K, V> Default for LineRows<K, V> {
    fn default() -> LineRows<K, V> {
        LineRows { few: VecDeque::new(), many: RareRows::default() }
    }
}

impl<K: Ord, V> LineRows<K, V> {
    /// Where a key is among the few, or would be.
    fn find(&self, key: &K) -> Result<usize, usize> {
        match (self.few.front(), self.few.back()) {
            (Some((first, _)), _) if first == key => Ok(0),
            (_, Some((last, _))) if last < key => Err(self.few.len()),
            _ => self.few.binary_search_by(|(other, _)| other.cmp(key)),
        }
    }

    /// Makes a tree of the few if a row that comes or goes at this place would move too many; whether there are few still.
    fn stay_few(&mut self, place: usize) -> bool {
        let moved = place.min(self.few.len() - place);
        if moved > MOVED_MAX || self.few.len() >= FEW_MAX {
            self.few.drain(..).for_each(|(key, value)| self.many.insert(key, value));
            self.few.shrink_to(0);
        }
        self.many.is_empty()
    }

    /// The row at a place among the few.
    fn at(&self, place: usize) -> Option<(&K, &V)> {
        self.few.get(place).map(|(key, value)| (key, value))
    }
}

impl<K: Ord, V> RowMap<K, V> for LineRows<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        match self.many.is_empty() {
            true => self.at(self.find(key).ok()?).map(|(_, value)| value),
            false => self.many.get(key),
        }
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.many.is_empty() {
            true => {
                let place = self.find(key).ok()?;
                self.few.get_mut(place).map(|(_, value)| value)
            }
            false => self.many.get_mut(key),
        }
    }

    fn insert(&mut self, key: K, value: V) {
        if !self.many.is_empty() {
            self.many.insert(key, value);
            return;
        }
        match self.find(&key) {
            Ok(place) => self.few[place].1 = value,
            Err(place) if self.stay_few(place) => self.few.insert(place, (key, value)),
            Err(_) => self.many.insert(key, value),
        }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        match self.many.is_empty() {
            true => {
                let place = self.find(key).ok()?;
                match self.stay_few(place) {
                    true => self.few.remove(place).map(|(_, value)| value),
                    false => self.many.remove(key),
                }
            }
            false => self.many.remove(key),
        }
    }

    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)> {
        if !self.many.is_empty() {
            return self.many.first(from);
        }
        let place = match from {
            Bound::Unbounded => 0,
            Bound::Included(from) => self.find(from).unwrap_or_else(|place| place),
            Bound::Excluded(from) => self.find(from).map_or_else(|place| place, |place| place + 1),
        };
        self.at(place)
    }

    fn last(&self, to: &K) -> Option<(&K, &V)> {
        if !self.many.is_empty() {
            return self.many.last(to);
        }
        match self.find(to) {
            Ok(place) => self.at(place),
            Err(place) => self.at(place.checked_sub(1)?),
        }
    }

    fn trim(&mut self) {
        if self.few.capacity() / 4 > self.few.len().max(ROOM_KEPT / 4) {
            self.few.shrink_to(self.few.len().max(ROOM_KEPT));
        }
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V)) {
        self.few.iter().for_each(|(key, value)| with(key, value));
        self.many.each(with);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_line_answers_as_a_tree(steps in proptest::collection::vec((0..9_u8, 0..60_u64), 1..400)) {
            let (mut tree, mut line) = (BTreeMap::new(), LineRows::default());
            for (at, (step, key)) in steps.into_iter().enumerate() {
                match step {
                    0..=3 => {
                        RowMap::insert(&mut tree, key, at);
                        line.insert(key, at);
                    }
                    4 => prop_assert_eq!(RowMap::remove(&mut tree, &key), line.remove(&key)),
                    5 => {
                        let front = tree.first_key_value().map(|(key, _)| *key).unwrap_or_default();
                        prop_assert_eq!(RowMap::remove(&mut tree, &front), line.remove(&front));
                    }
                    6 => {
                        *RowMap::get_mut(&mut tree, &key).unwrap_or(&mut 0) = at;
                        *line.get_mut(&key).unwrap_or(&mut 0) = at;
                    }
                    7 => line.trim(),
                    _ if key > 50 => (tree, line) = (BTreeMap::new(), LineRows::default()),
                    _ => {}
                }
                for from in [Bound::Unbounded, Bound::Included(&key), Bound::Excluded(&key)] {
                    prop_assert_eq!(RowMap::first(&tree, from), line.first(from));
                }
                prop_assert_eq!(RowMap::last(&tree, &key), line.last(&key));
                prop_assert_eq!(RowMap::get(&tree, &key), line.get(&key));
                prop_assert_eq!(RowMap::len(&tree), line.len());
                let mut all = Vec::new();
                line.each(&mut |key, value| all.push((*key, *value)));
                prop_assert_eq!(tree.clone().into_iter().collect::<Vec<_>>(), all);
            }
        }
    }
}
