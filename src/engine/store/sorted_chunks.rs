//! Many rows in order, in chunks side by side: who goes on finds the next row beside the last one, and none is moved far for one that
//! comes or goes in the midst.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Bound;

use crate::engine::store::rows::RowMap;

/// Most rows of a chunk; a full one is cut in two for a row in its midst.
const CHUNK_ROWS: usize = if cfg!(test) { 4 } else { 256 };

/// Rows by key.
pub(crate) struct SortedChunks<K, V> {
    /// In order, and none of them empty.
    chunks: VecDeque<VecDeque<(K, V)>>,
    len: usize,
    /// Where the last row that was looked for is: the next is its neighbour as a rule.
    near: Cell<ChunkPlace>,
}

/// A chunk, and a row of it.
#[derive(Clone, Copy, Default)]
struct ChunkPlace {
    chunk: usize,
    row: usize,
}

impl<K, V> Default for SortedChunks<K, V> {
    fn default() -> SortedChunks<K, V> {
        SortedChunks { chunks: VecDeque::new(), len: 0, near: Cell::default() }
    }
}

impl<K: Copy + Ord, V> SortedChunks<K, V> {
    fn at(&self, place: ChunkPlace) -> Option<&(K, V)> {
        self.chunks.get(place.chunk)?.get(place.row)
    }

    /// The place behind a row.
    fn behind(&self, ChunkPlace { chunk, row }: ChunkPlace) -> ChunkPlace {
        match self.chunks.get(chunk).is_some_and(|rows| row + 1 < rows.len()) {
            true => ChunkPlace { chunk, row: row + 1 },
            false => ChunkPlace { chunk: chunk + 1, row: 0 },
        }
    }

    /// The place before a place; `None` if that is the first.
    fn before(&self, ChunkPlace { chunk, row }: ChunkPlace) -> Option<ChunkPlace> {
        if row > 0 {
            return Some(ChunkPlace { chunk, row: row - 1 });
        }
        let chunk = chunk.checked_sub(1)?;
        Some(ChunkPlace { chunk, row: self.chunks.get(chunk)?.len() - 1 })
    }

    /// Where a key is; or else the first row behind it, or the end of the last chunk.
    fn find(&self, key: &K) -> Result<ChunkPlace, ChunkPlace> {
        let near = self.near.get();
        let is_at = |place: &ChunkPlace| self.at(*place).is_some_and(|(other, _)| other == key);
        let neighbours = [Some(near), Some(self.behind(near)), self.before(near)];
        let found = neighbours.into_iter().flatten().find(is_at);
        let place = found.map_or_else(|| self.search(key), Ok);
        self.near.set(place.unwrap_or_else(|place| place));
        place
    }

    fn search(&self, key: &K) -> Result<ChunkPlace, ChunkPlace> {
        let Some(last) = self.chunks.back() else { return Err(ChunkPlace::default()) };
        if last.back().is_some_and(|(last, _)| last < key) {
            return Err(ChunkPlace { chunk: self.chunks.len() - 1, row: last.len() });
        }
        let ends_before = |rows: &VecDeque<(K, V)>| rows.back().is_some_and(|(last, _)| last < key);
        let chunk = self.chunks.partition_point(ends_before);
        let row = self.chunks[chunk].binary_search_by(|(other, _)| other.cmp(key));
        row.map(|row| ChunkPlace { chunk, row }).map_err(|row| ChunkPlace { chunk, row })
    }

    /// Puts a row to where its key was looked for and not found.
    fn put(&mut self, ChunkPlace { chunk, row }: ChunkPlace, new: (K, V)) {
        self.len += 1;
        let Some(rows) = self.chunks.get_mut(chunk) else {
            return self.chunks.push_back(chunk_of(new));
        };
        if rows.len() < CHUNK_ROWS {
            return rows.insert(row, new);
        }
        // What is appended leaves full chunks behind.
        if row == rows.len() {
            return self.chunks.insert(chunk + 1, chunk_of(new));
        }
        let mut later = VecDeque::with_capacity(CHUNK_ROWS);
        later.extend(rows.drain(CHUNK_ROWS / 2..));
        match row.checked_sub(rows.len()) {
            Some(row) => later.insert(row, new),
            None => rows.insert(row, new),
        }
        self.chunks.insert(chunk + 1, later);
    }

    fn take(&mut self, ChunkPlace { chunk, row }: ChunkPlace) -> Option<V> {
        let rows = &mut self.chunks[chunk];
        let taken = rows.remove(row).map(|(_, value)| value);
        if rows.is_empty() {
            self.chunks.remove(chunk);
        }
        self.len -= usize::from(taken.is_some());
        taken
    }
}

fn chunk_of<K, V>(row: (K, V)) -> VecDeque<(K, V)> {
    let mut chunk = VecDeque::with_capacity(CHUNK_ROWS);
    chunk.push_back(row);
    chunk
}

impl<K: Copy + Ord, V> RowMap<K, V> for SortedChunks<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.at(self.find(key).ok()?).map(|(_, value)| value)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let ChunkPlace { chunk, row } = self.find(key).ok()?;
        self.chunks[chunk].get_mut(row).map(|(_, value)| value)
    }

    fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Ok(ChunkPlace { chunk, row }) => self.chunks[chunk][row].1 = value,
            Err(place) => self.put(place, (key, value)),
        }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.find(key).ok()?;
        self.take(place)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn first(&self, from: Bound<&K>) -> Option<(&K, &V)> {
        let place = match from {
            Bound::Unbounded => ChunkPlace::default(),
            Bound::Included(from) => self.find(from).unwrap_or_else(|place| place),
            Bound::Excluded(from) => self.find(from).map_or_else(|place| place, |place| self.behind(place)),
        };
        self.at(place).map(|(key, value)| (key, value))
    }

    fn last(&self, to: &K) -> Option<(&K, &V)> {
        let place = self.find(to).map_or_else(|place| self.before(place), Some);
        self.at(place?).map(|(key, value)| (key, value))
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a K, &'a V)) {
        self.chunks.iter().flatten().for_each(|(key, value)| with(key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_leaves_full_chunks_behind_and_what_goes_leaves_none() {
        let mut rows = SortedChunks::default();
        (0..10 * CHUNK_ROWS).for_each(|key| rows.insert(key, key));
        assert_eq!(rows.chunks.len(), 10);
        (0..10 * CHUNK_ROWS).for_each(|key| assert_eq!(rows.remove(&key), Some(key)));
        assert!(rows.chunks.is_empty() && rows.is_empty() && rows.first(Bound::Unbounded).is_none());
    }

    #[test]
    fn what_comes_in_the_midst_of_a_full_chunk_cuts_it_in_two() {
        let mut rows = SortedChunks::default();
        (0..CHUNK_ROWS).for_each(|key| rows.insert(2 * key, key));
        rows.insert(1, 9);
        let lens: Vec<_> = rows.chunks.iter().map(VecDeque::len).collect();
        assert_eq!(lens, [CHUNK_ROWS / 2 + 1, CHUNK_ROWS / 2]);
    }
}
