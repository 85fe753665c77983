//! Rows of a prefix that come and go at its ends as a rule, such as the line of a workflow or a queue's list of what is ready: side by
//! side, and in chunks once something comes or goes in the midst of many. A line of one takes no room of its own.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;

use crate::engine::store::rare_rows::RareRows;
use crate::engine::store::rows::RowMap;
use crate::engine::store::sorted_chunks::SortedChunks;

/// No more rows than these are moved for one that comes or goes: it takes no longer than to find a place in a chunk. Tests have chunks
/// sooner.
const MOVED_MAX: usize = if cfg!(test) { 8 } else { 256 };

/// No more rows than these lie side by side: making room for twice as many stops whoever waits for less than a millisecond.
const FEW_MAX: usize = if cfg!(test) { 32 } else { 32 * 1024 };

/// Room for so many is kept even if nothing is in it.
const ROOM_KEPT: usize = 16;

/// Rows by key. A line grows at its end and shrinks at its front, and is empty again and again: its room is kept until it is
/// trimmed.
pub(crate) struct LineRows<K, V> {
    few: FewRows<K, V>,
    /// All of them, once these are no longer few.
    many: RareRows<SortedChunks<K, V>>,
    none_flushed: Cell<bool>,
}

impl<K: Default, V> Default for LineRows<K, V> {
    fn default() -> LineRows<K, V> {
        LineRows { few: FewRows::default(), many: RareRows::default(), none_flushed: Cell::new(false) }
    }
}

/// Rows side by side, in order. The first is where the line itself is, with the key of the last: who looks at a line of one, or
/// puts something to the end of a longer one, waits for one place in memory and not for two.
struct FewRows<K, V> {
    first: Option<(K, V)>,
    /// Those behind the first.
    behind: VecDeque<(K, V)>,
    /// The key of the last, if there is a first.
    last: K,
    /// Where the last one that was looked for is, behind the first: the next is its neighbour as a rule.
    near: Cell<usize>,
}

impl<K: Default, V> Default for FewRows<K, V> {
    fn default() -> FewRows<K, V> {
        FewRows { first: None, behind: VecDeque::new(), last: K::default(), near: Cell::new(0) }
    }
}

impl<K: Copy + Default + Ord, V> FewRows<K, V> {
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.behind.len()
    }

    /// Where a key is, or would be.
    #[inline]
    fn find(&self, key: &K) -> Result<usize, usize> {
        let Some((first, _)) = &self.first else { return Err(0) };
        match key.cmp(first) {
            Ordering::Less => Err(0),
            Ordering::Equal => Ok(0),
            Ordering::Greater => match key.cmp(&self.last) {
                Ordering::Greater => Err(self.len()),
                Ordering::Equal => Ok(self.len() - 1),
                Ordering::Less => self.find_behind(key).map(|place| place + 1).map_err(|place| place + 1),
            },
        }
    }

    fn find_behind(&self, key: &K) -> Result<usize, usize> {
        let near = self.near.get();
        let is_at = |place: &usize| self.behind.get(*place).is_some_and(|(other, _)| other == key);
        let found = [near, near + 1].into_iter().find(is_at);
        let place = match found {
            Some(place) => Ok(place),
            None => self.behind.binary_search_by(|(other, _)| other.cmp(key)),
        };
        self.near.set(place.unwrap_or_else(|place| place));
        place
    }

    #[inline]
    fn get(&self, place: usize) -> Option<(&K, &V)> {
        let row = match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.behind.get(place),
        };
        row.map(|(key, value)| (key, value))
    }

    #[inline]
    fn get_mut(&mut self, place: usize) -> Option<&mut V> {
        let row = match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(place) => self.behind.get_mut(place),
        };
        row.map(|(_, value)| value)
    }

    #[inline]
    fn insert(&mut self, place: usize, row: (K, V)) {
        if place == self.len() {
            self.last = row.0;
        }
        match place.checked_sub(1) {
            None => self.first.replace(row).into_iter().for_each(|first| self.behind.push_front(first)),
            Some(place) if place == self.behind.len() => self.behind.push_back(row),
            Some(place) => self.behind.insert(place, row),
        }
    }

    #[inline]
    fn remove(&mut self, place: usize) -> Option<(K, V)> {
        let removed = match place.checked_sub(1) {
            None => std::mem::replace(&mut self.first, self.behind.pop_front()),
            Some(place) => self.behind.remove(place),
        };
        if place == self.len()
            && let Some((last, _)) = self.behind.back().or(self.first.as_ref())
        {
            self.last = *last;
        }
        removed
    }

    /// Takes all of them; their room goes.
    fn take_all(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let FewRows { first, behind, .. } = std::mem::take(self);
        first.into_iter().chain(behind)
    }

    /// Gives back room that is not needed.
    fn trim(&mut self) {
        if self.behind.capacity() / 4 > self.behind.len().max(ROOM_KEPT / 4) {
            self.behind.shrink_to(self.behind.len().max(ROOM_KEPT));
        }
    }
}

impl<K: Copy + Default + Ord, V> LineRows<K, V> {
    /// Puts the few in chunks if a row that comes or goes at this place would move too many; whether there are few still.
    #[inline]
    fn stay_few(&mut self, place: usize) -> bool {
        let moved = place.min(self.few.len() - place);
        if moved > MOVED_MAX || self.few.len() >= FEW_MAX {
            self.few.take_all().for_each(|(key, value)| self.many.insert(key, value));
        }
        self.many.is_empty()
    }
}

impl<K: Copy + Default + Ord, V> RowMap<K, V> for LineRows<K, V> {
    #[inline]
    fn get(&self, key: &K) -> Option<&V> {
        match self.many.is_empty() {
            true => self.few.get(self.few.find(key).ok()?).map(|(_, value)| value),
            false => self.many.get(key),
        }
    }

    #[inline]
    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.many.is_empty() {
            true => self.few.get_mut(self.few.find(key).ok()?),
            false => self.many.get_mut(key),
        }
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) {
        if !self.many.is_empty() {
            self.many.insert(key, value);
            return;
        }
        match self.few.find(&key) {
            Ok(place) => *self.few.get_mut(place).expect("what was found is there") = value,
            Err(place) if self.stay_few(place) => self.few.insert(place, (key, value)),
            Err(_) => self.many.insert(key, value),
        }
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        match self.many.is_empty() {
            true => {
                let place = self.few.find(key).ok()?;
                match self.stay_few(place) {
                    true => self.few.remove(place).map(|(_, value)| value),
                    false => self.many.remove(key),
                }
            }
            false => self.many.remove(key),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    #[inline]
    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)> {
        if !self.many.is_empty() {
            return self.many.first(from);
        }
        let place = match from {
            Bound::Unbounded => 0,
            Bound::Included(from) => self.few.find(from).unwrap_or_else(|place| place),
            Bound::Excluded(from) => self.few.find(from).map_or_else(|place| place, |place| place + 1),
        };
        self.few.get(place)
    }

    fn last(&self, to: &K) -> Option<(&K, &V)> {
        if !self.many.is_empty() {
            return self.many.last(to);
        }
        match self.few.find(to) {
            Ok(place) => self.few.get(place),
            Err(place) => self.few.get(place.checked_sub(1)?),
        }
    }

    #[inline]
    fn none_flushed(&self) -> bool {
        self.none_flushed.get()
    }

    fn note_none_flushed(&self, is_none: bool) {
        self.none_flushed.set(is_none);
    }

    fn trim(&mut self) {
        self.few.trim();
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V)) {
        self.few.first.iter().chain(&self.few.behind).for_each(|(key, value)| with(key, value));
        self.many.each(with);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
