//! What is known of a table's flushed rows, so that most look-ups need not ask the disk.
//!
//! For each prefix that was asked for: the greatest key that may be flushed, so that new keys are known to be new; the
//! keys that come next from some place on, read several at once; and the rows read lately. All of it may be forgotten
//! at any time.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::ops::Bound;

use foldhash::fast::RandomState;

use crate::engine::store::base::Base;
use crate::engine::store::key::key_of;
use crate::engine::store::key::prefix_of;
use crate::engine::store::read_pace::ReadPace;
use crate::engine::store::table::Table;
use crate::engine::store::table::weight_of;
use crate::error::Fault;
use crate::limits;

/// Rows read at once at first; who goes on behind them gets so many times more each time.
const AHEAD_MIN: usize = 2;
const AHEAD_GROWTH: usize = 4;

/// Most rows read at once by who passes over those that count no more.
const PASSED_OVER_MAX: usize = 64;

/// Most rows read at once by who goes on alone: those of a block whose rows are small, which is verified, and walked over from its
/// beginning, for each reading.
const AHEAD_ALONE_MAX: usize = 512;

/// So many get a share of the room for rows that were read, and at least these.
const AHEAD_SHARED_MIN: usize = 8;

/// About what a small row takes that was read, with its key.
const SMALL_ROW_BYTES: usize = 128;

/// Stretches of shadowed keys known of a prefix: a line is looked at from its start and from a few places behind.
const STRETCHES_MAX: usize = 4;

/// The flushed rows of a table, as far as they are known.
pub(crate) struct FlushedRows<T: Table> {
    /// Whether any row may be flushed.
    any: bool,
    known: RefCell<HashMap<T::Prefix, KnownRows<T>, RandomState>>,
    /// About how many bytes the cached rows of all prefixes take.
    cached_bytes: Cell<u64>,
}

struct KnownRows<T: Table> {
    /// No greater key is flushed; none at all without it.
    last: Option<T::Key>,
    ahead: Option<NextKeys<T::Key>>,
    /// Stretches of keys that the window shadows, so that no look-up passes over them twice; the oldest goes first.
    shadowed: VecDeque<Stretch<T::Key>>,
    /// Rows read lately, as they are flushed.
    rows: HashMap<T::Key, T::Value, RandomState>,
    /// How many are read at once that are asked for by their keys.
    pace: ReadPace<T::Key>,
}

/// All flushed keys from `from` up to `upto`, or to the end.
struct NextKeys<K> {
    from: K,
    keys: VecDeque<K>,
    upto: Option<K>,
    /// How many were read at once.
    count: usize,
}

impl<K: Ord> NextKeys<K> {
    fn covers(&self, key: &K) -> bool {
        *key >= self.from && self.upto.as_ref().is_none_or(|upto| key <= upto)
    }

    /// How many to read at once from a key on: more for who goes on behind the last that is known.
    fn count_from(&self, key: &K) -> usize {
        match &self.upto {
            Some(upto) if key > upto => self.count * AHEAD_GROWTH,
            _ => AHEAD_MIN,
        }
    }
}

/// From `from` on, up to `upto` and without it, or to the end, the window shadows every flushed key.
struct Stretch<K> {
    from: K,
    upto: Option<K>,
}

impl<K: Ord> Stretch<K> {
    fn holds(&self, key: &K) -> bool {
        *key >= self.from && self.upto.as_ref().is_none_or(|upto| key < upto)
    }
}

impl<T: Table> KnownRows<T> {
    /// Nothing but the greatest key.
    fn new(last: Option<T::Key>) -> KnownRows<T> {
        let (ahead, shadowed, rows, pace) = Default::default();
        KnownRows { last, ahead, shadowed, rows, pace }
    }

    /// Where a look-up from a key on has to begin, as nothing counts before; `None` if nothing counts at all.
    fn begin<'k>(&'k self, from: &'k T::Key) -> Option<&'k T::Key> {
        let mut start = from;
        // One stretch may end within another: who looks from further on makes one of its own.
        while let Some(stretch) = self.shadowed.iter().find(|stretch| stretch.holds(start)) {
            start = stretch.upto.as_ref()?;
        }
        Some(start)
    }

    /// Notes that no key counts from `from` on, where a look-up had to begin, up to `upto`.
    fn note_shadowed(&mut self, from: T::Key, upto: Option<T::Key>) {
        if let Some(before) = self.shadowed.iter_mut().find(|stretch| stretch.upto.as_ref() == Some(&from)) {
            before.upto = upto;
            return;
        }
        if self.shadowed.len() == STRETCHES_MAX {
            self.shadowed.pop_front();
        }
        self.shadowed.push_back(Stretch { from, upto });
    }

    /// Ends a stretch at a key that counts from now on.
    fn end_stretch(&mut self, key: &T::Key) {
        for stretch in self.shadowed.iter_mut().filter(|stretch| stretch.holds(key)) {
            stretch.upto = Some(key.clone());
        }
    }

    /// Notes that a flushed key counts from now on.
    fn note_counts(&mut self, key: &T::Key) {
        self.end_stretch(key);
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.covers(key)) else { return };
        if let Err(at) = ahead.keys.binary_search(key) {
            ahead.keys.insert(at, key.clone());
        }
        if ahead.keys.len() > AHEAD_ALONE_MAX {
            ahead.keys.truncate(AHEAD_ALONE_MAX);
            ahead.upto = ahead.keys.back().cloned();
        }
    }

    /// Keeps a row that was read.
    fn keep_row(&mut self, key: T::Key, row: T::Value, cached_bytes: &Cell<u64>) {
        let room = room_of::<T>(&row);
        let before = self.rows.insert(key, row).map_or(0, |before| room_of::<T>(&before));
        cached_bytes.set(cached_bytes.get() + room - before);
    }

    /// Forgets a row, because it is about to change; true when it was known.
    fn forget_row(&mut self, key: &T::Key, cached_bytes: &Cell<u64>) -> bool {
        let Some(row) = self.rows.remove(key) else { return false };
        cached_bytes.set(cached_bytes.get() - room_of::<T>(&row));
        true
    }
}

/// Most rows that are read at once by who goes on: what each of so many lines has of the room if all of them are read on.
fn ahead_max(lines: usize) -> usize {
    let rows = limits::ROWS_READ_BYTES as usize / SMALL_ROW_BYTES;
    (rows / lines.max(1)).clamp(AHEAD_SHARED_MIN, AHEAD_ALONE_MAX)
}

/// About how many bytes a row takes in memory: about twice what it takes in the journal.
fn room_of<T: Table>(row: &T::Value) -> u64 {
    2 * weight_of::<T>(Some(row))
}

impl<T: Table> FlushedRows<T> {
    pub(crate) fn new(base: &Base<'_>) -> Result<FlushedRows<T>, Fault> {
        Ok(FlushedRows { any: base.has_rows::<T>()?, known: RefCell::default(), cached_bytes: Cell::new(0) })
    }

    /// Whether any row may be flushed.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Whether no row of a prefix is flushed, until the next of them is.
    pub(crate) fn has_none(&self, base: &Base<'_>, prefix: &T::Prefix) -> Result<bool, Fault> {
        self.with(base, prefix, |known| Ok(known.last.is_none()))
    }

    /// A flushed row that the window does not shadow.
    pub(crate) fn get(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
    ) -> Result<Option<T::Value>, Fault> {
        self.with(base, prefix, |known| {
            if known.last.as_ref().is_none_or(|last| key > last) {
                return Ok(None);
            }
            if let Some(row) = known.rows.get(key) {
                known.pace.note_used(key);
                return Ok(Some(row.clone()));
            }
            let count = known.pace.begin(key);
            if count > 1 && self.read_on(base, prefix, known, (key, count)).is_ok() {
                return Ok(known.rows.get(key).cloned());
            }
            let Some(row) = base.get::<T>(&key_of(prefix, key))? else { return Ok(None) };
            known.keep_row(key.clone(), row.clone(), &self.cached_bytes);
            Ok(Some(row))
        })
    }

    /// Reads a row and those behind it. What is damaged behind it is a fault only to whoever asks for it.
    fn read_on(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        known: &mut KnownRows<T>,
        (key, count): (&T::Key, usize),
    ) -> Result<(), Fault> {
        let from = key_of(prefix, key);
        let limits = (count, limits::READ_ON_BYTES);
        let (rows, _) = base.rows::<T>(&prefix_of(prefix), Bound::Included(&from), limits)?;
        for (key, row) in rows {
            known.keep_row(key, row, &self.cached_bytes);
        }
        Ok(())
    }

    /// Whether a row with this key is flushed; asked before the window shadows it.
    pub(crate) fn shadow(&self, base: &Base<'_>, prefix: &T::Prefix, key: &T::Key) -> Result<bool, Fault> {
        self.with(base, prefix, |known| {
            if known.last.as_ref().is_none_or(|last| key > last) {
                return Ok(false);
            }
            if known.forget_row(key, &self.cached_bytes) {
                return Ok(true);
            }
            match &known.ahead {
                Some(ahead) if ahead.covers(key) => Ok(ahead.keys.binary_search(key).is_ok()),
                _ => base.contains::<T>(&key_of(prefix, key)),
            }
        })
    }

    /// The first flushed key from `from` on that counts: the window does not shadow it.
    pub(crate) fn first(
        &self,
        base: &Base<'_>,
        (prefix, from): (&T::Prefix, &T::Key),
        counts: impl Fn(&T::Key) -> bool,
    ) -> Result<Option<T::Key>, Fault> {
        let lines = self.known.borrow().len();
        self.with(base, prefix, |known| {
            if known.last.as_ref().is_none_or(|last| from > last) {
                return Ok(None);
            }
            let Some(start) = known.begin(from).cloned() else { return Ok(None) };
            let (found, has_passed) = self.search(base, prefix, known, (&start, lines), counts)?;
            if has_passed {
                known.note_shadowed(start, found.clone());
            }
            Ok(found)
        })
    }

    /// The first key from `from` on that counts, and whether others were passed over. So many lines are read from, this one perhaps
    /// among them.
    fn search(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        known: &mut KnownRows<T>,
        (from, lines): (&T::Key, usize),
        counts: impl Fn(&T::Key) -> bool,
    ) -> Result<(Option<T::Key>, bool), Fault> {
        if known.ahead.as_ref().is_none_or(|ahead| !ahead.covers(from)) {
            let count =
                known.ahead.as_ref().map_or(AHEAD_MIN, |ahead| ahead.count_from(from)).min(ahead_max(lines));
            self.read_ahead(base, prefix, known, Bound::Included(from), count)?;
        }
        let mut has_passed = false;
        while let Some(ahead) = &mut known.ahead {
            // What is passed over here is settled, and asked for again only if that was a trial (`note_unshadowed`).
            while let Some(key) = ahead.keys.front().filter(|key| *key < from || !counts(key)) {
                has_passed |= key >= from;
                ahead.keys.pop_front();
            }
            ahead.from = from.clone();
            if let Some(key) = ahead.keys.front() {
                return Ok((Some(key.clone()), has_passed));
            }
            let Some(upto) = ahead.upto.clone() else { break };
            let count = (ahead.count * AHEAD_GROWTH).min(PASSED_OVER_MAX.max(ahead.count));
            self.read_ahead(base, prefix, known, Bound::Excluded(&upto), count)?;
        }
        Ok((None, has_passed))
    }

    fn read_ahead(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        known: &mut KnownRows<T>,
        from: Bound<&T::Key>,
        count: usize,
    ) -> Result<(), Fault> {
        let start = match from {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => unreachable!("a look-up begins somewhere"),
        };
        let bytes = from.map(|key| key_of(prefix, key));
        let limits = (count, limits::READ_ON_BYTES);
        let (rows, is_all) = base.rows::<T>(&prefix_of(prefix), bytes.as_ref().map(Vec::as_slice), limits)?;
        let upto = if is_all { None } else { rows.last().map(|(key, _)| key.clone()) };
        let keys = rows.iter().map(|(key, _)| key.clone()).collect();
        for (key, row) in rows {
            known.keep_row(key, row, &self.cached_bytes);
        }
        known.ahead = Some(NextKeys { from: start, keys, upto, count });
        Ok(())
    }

    /// The last flushed key up to `to` that counts.
    pub(crate) fn last(
        &self,
        base: &Base<'_>,
        (prefix, to): (&T::Prefix, &T::Key),
        counts: impl Fn(&T::Key) -> bool,
    ) -> Result<Option<T::Key>, Fault> {
        if self.has_none(base, prefix)? {
            return Ok(None);
        }
        base.last_key::<T>(&prefix_of(prefix), &key_of(prefix, to), counts)
    }

    /// Forgets a row that was read, because it is about to change.
    pub(crate) fn forget(&mut self, prefix: &T::Prefix, key: &T::Key) {
        if let Some(known) = self.known.get_mut().get_mut(prefix) {
            known.forget_row(key, &self.cached_bytes);
        }
    }

    /// Notes that a row has been flushed.
    pub(crate) fn note_put(&mut self, prefix: &T::Prefix, key: &T::Key) {
        self.any = true;
        let Some(known) = self.known.get_mut().get_mut(prefix) else { return };
        known.forget_row(key, &self.cached_bytes);
        known.note_counts(key);
        if known.last.as_ref().is_none_or(|last| key > last) {
            known.last = Some(key.clone());
        }
    }

    /// Notes that a flushed row has been deleted.
    pub(crate) fn note_deleted(&mut self, prefix: &T::Prefix, key: &T::Key) {
        let Some(known) = self.known.get_mut().get_mut(prefix) else { return };
        known.forget_row(key, &self.cached_bytes);
        if let Some(ahead) = &mut known.ahead
            && let Ok(at) = ahead.keys.binary_search(key)
        {
            ahead.keys.remove(at);
        }
    }

    /// Notes that the window does not shadow a flushed row any more, as if it were flushed anew: what was passed over is found again.
    pub(crate) fn note_unshadowed(&mut self, prefix: &T::Prefix, key: &T::Key) {
        if let Some(known) = self.known.get_mut().get_mut(prefix) {
            known.note_counts(key);
        }
    }

    /// Forgets the prefixes that are not wanted.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&T::Prefix) -> bool) {
        let known = self.known.get_mut();
        known.retain(|prefix, _| wanted(prefix));
        let rows = known.values().flat_map(|known| known.rows.values());
        self.cached_bytes.set(rows.map(room_of::<T>).sum());
    }

    /// Ends a turn: forgets what has become too much.
    pub(crate) fn trim(&mut self) {
        if self.cached_bytes.get() > limits::ROWS_READ_BYTES {
            for known in self.known.get_mut().values_mut() {
                known.rows = HashMap::default();
                // Whoever goes on reads the next rows together again, and not one by one.
                known.ahead = None;
            }
            self.cached_bytes.set(0);
        }
        if self.known.get_mut().len() > limits::PREFIXES_KNOWN {
            self.known.get_mut().clear();
            self.cached_bytes.set(0);
        }
    }

    fn with<R>(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        work: impl FnOnce(&mut KnownRows<T>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get_mut(prefix) {
            return work(known);
        }
        let last = base.last_key_of::<T>(&prefix_of(prefix))?;
        work(known.entry(prefix.clone()).or_insert(KnownRows::new(last)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use redb::Database;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::engine::rules::record::QueueId;
    use crate::engine::rules::record::WorkflowKey;
    use crate::engine::rules::record::WorkflowRef;
    use crate::engine::store::row_write::RowWrite;
    use crate::engine::store::row_write::Rows;
    use crate::engine::store::schema::Line;
    use crate::engine::store::schema::States;
    use crate::id::SequenceNumber;
    use crate::id::WorkflowId;

    #[test]
    fn who_looks_from_the_start_passes_over_what_others_have_passed_over_from_further_on() {
        let mut known = KnownRows::<Line>::new(None);
        known.note_shadowed(1, Some(10));
        known.note_shadowed(0, Some(5));
        assert_eq!(known.begin(&0), Some(&10));
        known.note_shadowed(10, Some(20));
        assert_eq!((known.begin(&0), known.begin(&20)), (Some(&20), Some(&20)));
        known.note_shadowed(20, None);
        assert_eq!(known.begin(&0), None);
        known.end_stretch(&30);
        assert_eq!((known.begin(&0), known.begin(&31)), (Some(&30), Some(&31)), "30 is flushed now");
    }

    #[test]
    fn who_goes_on_alone_reads_ever_more_at_once_and_many_share_the_room() {
        let workflow = |id: &str| WorkflowKey {
            queue: QueueId(1),
            stream: WorkflowRef::Named(WorkflowId::new(id).unwrap()),
        };
        let (line, ranks) = (workflow("line"), 0..2_000_u64);
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        let rows = ranks.clone().map(|rank| ((line.clone(), rank), Some(SequenceNumber::new(rank))));
        Rows::<Line>(rows.collect()).flush(&transaction).unwrap();
        transaction.commit().unwrap();
        for (others, most) in [(0, AHEAD_ALONE_MAX), (10_000, AHEAD_SHARED_MIN)] {
            let base = Base::new(&database);
            let flushed = FlushedRows::<Line>::new(&base).unwrap();
            let known = (0..others).map(|other| (workflow(&format!("{other}")), KnownRows::new(None)));
            flushed.known.borrow_mut().extend(known);
            for rank in ranks.clone() {
                let first = flushed.first(&base, (&line, &rank), |_| true).unwrap();
                assert_eq!(first, Some(rank));
            }
            let known = flushed.known.borrow();
            assert_eq!(known[&line].ahead.as_ref().unwrap().count, most, "beside {others} others");
        }
    }

    #[test]
    fn what_rows_take_is_counted_until_they_are_forgotten() {
        let (mut known, bytes) = (KnownRows::<Line>::new(None), Cell::new(0));
        for rank in [1, 2, 1] {
            known.keep_row(rank, SequenceNumber::new(rank), &bytes);
        }
        let one = room_of::<Line>(&SequenceNumber::new(1));
        assert_eq!(bytes.get(), 2 * one, "one was kept twice");
        assert!(known.forget_row(&1, &bytes) && !known.forget_row(&1, &bytes));
        assert_eq!(bytes.get(), one);
    }

    #[test]
    fn rows_are_forgotten_once_they_take_too_much() {
        let large = Bytes::from(vec![0; usize::try_from(limits::ROWS_READ_BYTES).unwrap() / 2]);
        let stream = WorkflowRef::Single(SequenceNumber::new(1));
        let mut known = KnownRows::<States>::new(None);
        let cached_bytes = Cell::new(0);
        known.keep_row(stream, large, &cached_bytes);
        let known = RefCell::new([(QueueId(1), known)].into_iter().collect());
        let mut flushed = FlushedRows { any: true, known, cached_bytes };
        flushed.trim();
        assert_eq!(flushed.cached_bytes.get(), 0);
        assert!(flushed.known.get_mut()[&QueueId(1)].rows.is_empty());
    }
}
