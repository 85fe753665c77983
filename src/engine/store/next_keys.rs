//! The flushed keys of a prefix that come next, read several at once.

use std::collections::VecDeque;
use std::ops::Bound;

use crate::limits;

/// Keys read at once at first, and at most: who reads on gets more.
const AHEAD_MIN: usize = 2;
pub(crate) const AHEAD_MAX: usize = 64;

/// Keys known of a prefix: more than a run has, since those of a run are passed over once more when it ends.
pub(crate) const KEPT_MAX: usize = 4 * limits::RECEIVE_MAX;

/// All flushed keys from `from` on, as far as they have been read, but for some that the window shadows.
pub(crate) struct NextKeys<K> {
    from: K,
    keys: VecDeque<K>,
    upto: KnownUpTo<K>,
    /// How many are read at once when it goes on.
    count: usize,
}

enum KnownUpTo<K> {
    /// None has been read yet.
    Nothing,
    Key(K),
    End,
}

impl<K: Clone + Ord> NextKeys<K> {
    /// Keys of which none has been read yet.
    pub(crate) fn none(from: K) -> NextKeys<K> {
        NextKeys { from, keys: VecDeque::new(), upto: KnownUpTo::Nothing, count: AHEAD_MIN }
    }

    /// Whether it is known if a key is flushed.
    pub(crate) fn covers(&self, key: &K) -> bool {
        let is_read = match &self.upto {
            KnownUpTo::Nothing => false,
            KnownUpTo::Key(upto) => key <= upto,
            KnownUpTo::End => true,
        };
        is_read && *key >= self.from
    }

    /// Whether a key comes behind those that have been read.
    pub(crate) fn ends_before(&self, key: &K) -> bool {
        matches!(&self.upto, KnownUpTo::Key(upto) if key > upto)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.keys.binary_search(key).is_ok()
    }

    /// The first known key from `from` on that counts, and whether others were passed over.
    pub(crate) fn first(&mut self, from: &K, counts: impl Fn(&K) -> bool) -> (Option<&K>, bool) {
        // What does not count at the beginning is settled, and never asked for again.
        while self.keys.front().is_some_and(|key| key < from && !counts(key)) {
            self.keys.pop_front();
        }
        let at = self.keys.partition_point(|key| key < from);
        let found = self.keys.range(at..).position(counts);
        let has_passed = found != Some(0) && at < self.keys.len();
        (found.map(|behind| &self.keys[at + behind]), has_passed)
    }

    /// Where the next keys are to be read, and how many; `None` at the end of the table.
    pub(crate) fn next_read(&self) -> Option<(Bound<&K>, usize)> {
        match &self.upto {
            KnownUpTo::Nothing => Some((Bound::Included(&self.from), self.count)),
            KnownUpTo::Key(upto) => Some((Bound::Excluded(upto), self.count)),
            KnownUpTo::End => None,
        }
    }

    /// Notes what was read there; fewer than were asked for are the last.
    pub(crate) fn note_read(&mut self, keys: impl Iterator<Item = K>) {
        let before = self.keys.len();
        self.keys.extend(keys);
        let is_end = self.keys.len() - before < self.count;
        self.upto = match self.keys.back() {
            Some(last) if !is_end => KnownUpTo::Key(last.clone()),
            _ => KnownUpTo::End,
        };
        self.count = (self.count * 4).min(AHEAD_MAX);
        if self.keys.len() > KEPT_MAX {
            self.keys.drain(..KEPT_MAX / 2);
            self.from = self.keys[0].clone();
        }
    }

    /// Notes that a key has been flushed.
    pub(crate) fn note_put(&mut self, key: &K) {
        if !self.covers(key) {
            return;
        }
        if let Err(at) = self.keys.binary_search(key) {
            self.keys.insert(at, key.clone());
        }
        if self.keys.len() > KEPT_MAX {
            self.keys.truncate(KEPT_MAX / 2);
            self.upto = KnownUpTo::Key(self.keys[KEPT_MAX / 2 - 1].clone());
        }
    }

    /// Notes that a flushed key has been deleted.
    pub(crate) fn note_deleted(&mut self, key: &K) {
        if let Ok(at) = self.keys.binary_search(key) {
            self.keys.remove(at);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_on_reads_more_at_once() {
        let mut next = NextKeys::none(0);
        let mut counts = vec![];
        for _ in 0..5 {
            let (from, count) = next.next_read().unwrap();
            let start = match from {
                Bound::Excluded(key) => key + 1,
                Bound::Included(key) => *key,
                Bound::Unbounded => unreachable!("there is a beginning"),
            };
            next.note_read(start..start + count);
            counts.push(count);
        }
        assert_eq!(counts, [2, 8, 32, 64, 64]);
        assert!(next.covers(&0) && next.covers(&169) && !next.covers(&170) && next.ends_before(&170));
        next.note_read(170..200);
        assert!(next.next_read().is_none() && next.covers(&999) && !next.ends_before(&999));
    }

    /// Reads even keys until there are so many.
    fn read_even(next: &mut NextKeys<u64>, len: usize) {
        for _ in 0..2 * KEPT_MAX {
            if next.len() >= len {
                break;
            }
            let (first, count) = (next.keys.back().map_or(0, |key| key + 2), next.count as u64);
            next.note_read((0..count).map(|at| first + 2 * at));
        }
    }

    #[test]
    fn what_is_put_among_known_keys_is_known_and_the_last_of_too_many_are_not() {
        let mut next = NextKeys::none(0);
        read_even(&mut next, KEPT_MAX - AHEAD_MAX);
        let last = *next.keys.back().unwrap();
        for odd in (1..last).step_by(2) {
            let is_known = next.covers(&odd);
            next.note_put(&odd);
            assert!(next.len() <= KEPT_MAX && next.covers(&0));
            assert_eq!(next.contains(&odd), is_known && next.covers(&odd));
        }
        assert!(next.ends_before(&last), "the last are not known any more");
        next.note_put(&last);
        assert!(!next.contains(&last), "what comes behind the known keys is read");
    }

    #[test]
    fn the_first_of_too_many_keys_are_not_known_any_more_once_others_are_read() {
        let mut next = NextKeys::none(0);
        read_even(&mut next, KEPT_MAX - AHEAD_MAX + 1);
        assert!(next.covers(&0));
        read_even(&mut next, KEPT_MAX);
        let first = next.keys[0];
        assert!(first > 0 && next.len() <= KEPT_MAX);
        assert!(!next.covers(&0) && next.covers(&first) && !next.ends_before(&0));
    }
}
