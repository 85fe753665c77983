//! The window over the journal: which generation is being filled, which are full, and how fast the oldest is flushed.

use std::collections::VecDeque;

/// Flushing is this much faster than filling, in tenths, so that it is over before the next generation is full.
const PACE_TENTHS: u64 = 13;

/// Units of work that each commit does while a flush is under way, however small the commit is.
const UNITS_MIN: u64 = 64;

/// Units of work of a commit that does nothing but flush: about a thousand rows, so that a request that comes meanwhile waits
/// for some milliseconds.
const IDLE_UNITS: u64 = 8 * 1024;

/// About so many bytes of rows such a commit flushes, for the same reason.
const IDLE_BYTES: u64 = 1024 * 1024;

/// From how many bytes on the generation that is being filled is flushed while nothing else is to be done: what trickles in is
/// not written twice message by message.
const IDLE_BYTES_MIN: u64 = 1024 * 1024;

/// The generations of the journal.
pub(crate) struct JournalWindow {
    /// How many bytes fill a generation.
    generation_bytes: u64,
    /// How many full generations wait before the oldest is flushed.
    full_max: usize,
    /// Bytes in the generation that is being filled.
    bytes: u64,
    /// The last position of each full generation, the oldest first.
    full: VecDeque<u64>,
    flushing: bool,
}

/// What flushing a commit has to do.
pub(crate) struct Slice {
    /// The last position of the generation that is flushed.
    pub(crate) upto: u64,
    /// Whether the flush of this generation begins.
    pub(crate) begins: bool,
    /// Of all units that are left, this many out of [`Slice::of`] are due now.
    share: u64,
    of: u64,
    /// At least so many units are due.
    least: u64,
    /// No row more once about so many bytes are flushed.
    bytes_max: u64,
}

/// What is left to be done of a slice.
pub(crate) struct Budget {
    pub(crate) units: u64,
    pub(crate) bytes: u64,
}

impl Budget {
    pub(crate) fn is_used_up(&self) -> bool {
        self.units == 0 || self.bytes == 0
    }
}

impl Slice {
    /// What is due with this commit, of so many units that are left.
    pub(crate) fn budget(&self, units_left: u64) -> Budget {
        Budget { units: self.units(units_left), bytes: self.bytes_max }
    }

    fn units(&self, units_left: u64) -> u64 {
        let due = u128::from(units_left) * u128::from(self.share) / u128::from(self.of.max(1));
        u64::try_from(due).unwrap_or(u64::MAX).max(self.least)
    }
}

impl JournalWindow {
    pub(crate) fn new(generation_bytes: u64, full_max: usize) -> JournalWindow {
        JournalWindow { generation_bytes, full_max, bytes: 0, full: VecDeque::new(), flushing: false }
    }

    /// Notes a journal row; true when it has filled its generation, which is then closed.
    pub(crate) fn append(&mut self, position: u64, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.bytes < self.generation_bytes {
            return false;
        }
        self.close(position);
        true
    }

    fn close(&mut self, position: u64) {
        self.full.push_back(position);
        self.bytes = 0;
    }

    /// Whether there is enough to flush while nothing else is to be done.
    pub(crate) fn has_idle_work(&self) -> bool {
        !self.full.is_empty() || self.bytes >= IDLE_BYTES_MIN
    }

    /// Notes the journal row of a commit that does nothing but flush; true when it has ended the generation that was being
    /// filled, because no other is left to be flushed.
    pub(crate) fn append_idle(&mut self, position: u64, bytes: u64) -> bool {
        self.bytes += bytes;
        let ends = self.full.is_empty();
        if ends {
            self.close(position);
        }
        ends
    }

    /// What is due of a flush with a commit that does nothing else.
    pub(crate) fn idle_slice(&mut self) -> Slice {
        Slice { least: IDLE_UNITS, bytes_max: IDLE_BYTES, ..self.begin_slice(0, 1) }
    }

    /// What is due of a flush with a commit of this many bytes.
    pub(crate) fn slice(&mut self, bytes: u64) -> Option<Slice> {
        if !self.flushing && self.full.len() <= self.full_max {
            return None;
        }
        let until_full = self.generation_bytes.saturating_sub(self.bytes).max(1);
        Some(self.begin_slice(bytes.saturating_mul(PACE_TENTHS), until_full.saturating_mul(10)))
    }

    fn begin_slice(&mut self, share: u64, of: u64) -> Slice {
        let begins = !std::mem::replace(&mut self.flushing, true);
        let upto = *self.full.front().expect("a generation is full before it is flushed");
        Slice { upto, begins, share, of, least: UNITS_MIN, bytes_max: u64::MAX }
    }

    /// Notes that the oldest generation is flushed.
    pub(crate) fn flushed(&mut self) {
        self.full.pop_front();
        self.flushing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_flushed_while_nothing_else_is_to_be_done() {
        let mut window = JournalWindow::new(IDLE_BYTES_MIN * 2, 2);
        assert!(!window.append(1, IDLE_BYTES_MIN - 1) && !window.has_idle_work(), "a trickle waits");
        assert!(!window.append(2, 1) && window.has_idle_work());
        assert!(window.append_idle(3, 10), "the generation ends before it is full");
        let slice = window.idle_slice();
        assert!((slice.upto, slice.begins) == (3, true) && slice.units(1_000_000) == IDLE_UNITS);
        assert_eq!(slice.budget(9).bytes, IDLE_BYTES, "large rows are few");
        assert!(!window.append_idle(4, 10) && !window.idle_slice().begins, "one flush at a time");
        window.flushed();
        assert!(!window.has_idle_work(), "the commits that flushed are no reason for another");
    }

    #[test]
    fn a_generation_of_any_size_is_flushed() {
        let mut window = JournalWindow::new(u64::MAX, 0);
        window.close(1);
        assert_eq!(window.slice(1_000).unwrap().units(1_000), UNITS_MIN);
        assert_eq!(window.slice(u64::MAX).unwrap().units(1_000), 1_000);
    }

    #[test]
    fn a_flush_is_over_before_the_next_generation_is_full() {
        for bytes in [1, 7, 100, 999] {
            let mut window = JournalWindow::new(1_000, 0);
            while !window.append(1, bytes) {}
            let mut left = 100_000;
            let mut commits = 0;
            while left > 0 {
                assert!(!window.append(2, bytes) || left == 0, "{left} units are left over at {bytes} bytes");
                left -= window.slice(bytes).unwrap().units(left).min(left);
                commits += 1;
            }
            assert!(commits <= 1_000 / bytes + 1);
        }
    }
}
