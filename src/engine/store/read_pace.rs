//! How many rows are read at once where rows are asked for by their keys.

/// Most rows that are read at once.
const ROWS_MAX: usize = 64;

/// More rows are read at once while those behind the one that is asked for are asked for next, and fewer while they are not: what
/// comes in order is read with few look-ups, and who picks rows here and there reads few in vain.
pub(crate) struct ReadPace<K> {
    rows: usize,
    /// How many of those that were read last were asked for.
    used: usize,
    /// The last of them that was.
    last: Option<K>,
}

impl<K> Default for ReadPace<K> {
    fn default() -> ReadPace<K> {
        ReadPace { rows: 1, used: 0, last: None }
    }
}

impl<K: Ord + Clone> ReadPace<K> {
    /// Notes that a row was asked for that had been read before. Only who goes on counts, not who asks for the same again.
    pub(crate) fn note_used(&mut self, key: &K) {
        if self.last.as_ref().is_none_or(|last| key > last) {
            self.used += 1;
            self.last = Some(key.clone());
        }
    }

    /// How many rows are read from a key on that had not been read.
    pub(crate) fn begin(&mut self, key: &K) -> usize {
        let most_were_used = self.used * 2 > self.rows;
        self.rows = if most_were_used { (self.rows * 2).min(ROWS_MAX) } else { (self.rows / 2).max(1) };
        (self.used, self.last) = (1, Some(key.clone()));
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many rows are read for keys that are asked for, and in how many look-ups.
    fn read(keys: impl IntoIterator<Item = u64>) -> (usize, usize) {
        let (mut pace, mut known) = (ReadPace::default(), Vec::new());
        let (mut rows, mut look_ups) = (0, 0);
        for key in keys {
            if known.contains(&key) {
                pace.note_used(&key);
                continue;
            }
            let count = pace.begin(&key);
            known.extend(key..key + count as u64);
            (rows, look_ups) = (rows + count, look_ups + 1);
        }
        (rows, look_ups)
    }

    #[test]
    fn what_is_asked_for_in_order_is_read_with_few_look_ups() {
        let (rows, look_ups) = read(0..1_000);
        assert!(
            rows < 1_000 + ROWS_MAX && look_ups < 1_000 / ROWS_MAX + 10,
            "{rows} rows, {look_ups} look-ups"
        );
    }

    #[test]
    fn who_picks_rows_here_and_there_reads_few_in_vain() {
        let (rows, _) = read((0..1_000).flat_map(|key| [key * 100, key * 100, key * 100]));
        assert!(rows <= 1_500, "{rows} rows for 1,000");
    }

    #[test]
    fn who_stops_going_on_reads_fewer_again() {
        let (rows, _) = read((0..1_000).chain((20..1_020).map(|key| key * 100)));
        assert!(rows <= 2_000 + 500 + 3 * ROWS_MAX, "{rows} rows for 2,000");
    }
}
