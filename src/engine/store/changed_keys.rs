//! Which rows are to be flushed: the keys that each generation of the journal has changed.

use std::collections::VecDeque;

use crate::engine::store::table::PlacedKey;
use crate::engine::store::table::PrefixedKey;
use crate::engine::store::table::Table;

/// The keys of the rows that the journal has changed, by generation, each where it was last put first.
pub(crate) struct ChangedKeys<T: Table> {
    pub(crate) filling: Vec<PlacedKey<T>>,
    pub(crate) full: VecDeque<Vec<PlacedKey<T>>>,
    /// Of the generation being flushed: keys not looked at yet.
    pub(crate) candidates: Vec<PlacedKey<T>>,
    /// Keys to be written, the last first; in order once no candidate is left.
    pub(crate) survivors: Vec<PrefixedKey<T>>,
    pub(crate) sorted: bool,
    /// Rows that commits under way flush.
    pub(crate) under_way: VecDeque<FlushingRow<T>>,
    /// The room of keys that were looked at, for those of the next generation: new room costs a fault for each of its pages.
    pub(crate) spare: Vec<PlacedKey<T>>,
}

/// A row that a commit under way flushes.
pub(crate) struct FlushingRow<T: Table> {
    pub(crate) position: u64,
    /// The end of the generation that has its last change, unless it has changed since; as stamps count.
    pub(crate) upto: u64,
    pub(crate) place: PrefixedKey<T>,
}

impl<T: Table> Default for ChangedKeys<T> {
    fn default() -> ChangedKeys<T> {
        ChangedKeys {
            filling: Vec::new(),
            full: VecDeque::new(),
            candidates: Vec::new(),
            survivors: Vec::new(),
            sorted: false,
            under_way: VecDeque::new(),
            spare: Vec::new(),
        }
    }
}

impl<T: Table> ChangedKeys<T> {
    /// Notes a row that changes for the first time in the generation that is being filled.
    #[inline]
    pub(crate) fn note(&mut self, place: PlacedKey<T>) {
        self.filling.push(place);
    }

    /// How many rows have changed in the generation that is being filled.
    pub(crate) fn len(&self) -> usize {
        self.filling.len()
    }

    /// Gives room back when the last generation has been looked at, and nothing has changed since: whoever is idle is small.
    /// True when that is so.
    pub(crate) fn release_room(&mut self) -> bool {
        let is_idle = self.full.is_empty() && self.filling.is_empty();
        if is_idle {
            (self.filling, self.candidates, self.spare) = Default::default();
        }
        is_idle
    }

    /// Forgets those that were noted after there were so many.
    pub(crate) fn shorten(&mut self, len: usize) {
        self.filling.truncate(len);
    }
}
