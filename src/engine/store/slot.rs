//! A row of the window, and where it stands.

use std::num::NonZeroU64;

/// Bits of a stamp that tell a place among what a turn has changed: more rows of a table than the requests of one turn can
/// change.
const INDEX_BITS: u32 = 22;

/// Whether a row with this key may be flushed.
const BASED: u64 = 1;
/// Whether a commit before the last change has put it into the journal.
const JOURNALED: u64 = 1 << 1;
const FLAG_BITS: u32 = 2;

/// Bits of a stamp that tell a commit: a file that commits 10,000 times a second for three years without being closed.
const POSITION_BITS: u32 = u64::BITS - INDEX_BITS - FLAG_BITS;

/// Where a row of the window stands: the commit that has its last change, counted from when the file was opened, and what
/// that turn has changed before it. One number, because every change moves it with its row, and a processor waits for a
/// value that is read whole after it was written in parts.
///
/// It is kept with all its bits turned over, which is never zero, so that a stamp that may not be there takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotStamp(NonZeroU64);

impl SlotStamp {
    /// The stamp of a row before its first change.
    #[inline]
    pub(crate) fn fresh(based: bool) -> SlotStamp {
        SlotStamp::of(if based { BASED } else { 0 })
    }

    #[inline]
    fn of(bits: u64) -> SlotStamp {
        SlotStamp(NonZeroU64::new(!bits).expect("a file is closed before it has seen so many commits"))
    }

    #[inline]
    fn bits(self) -> u64 {
        !self.0.get()
    }

    /// The commit that has its last change; zero before its first.
    #[inline]
    pub(crate) fn position(self) -> u64 {
        self.bits() >> (INDEX_BITS + FLAG_BITS)
    }

    /// Its place among what that turn has changed.
    #[inline]
    pub(crate) fn index(self) -> usize {
        (self.bits() >> FLAG_BITS & ((1 << INDEX_BITS) - 1)) as usize
    }

    /// Whether a row with this key may be flushed, so that deleting it is worth remembering.
    #[inline]
    pub(crate) fn is_based(self) -> bool {
        self.bits() & BASED != 0
    }

    /// Notes that the row is flushed.
    #[inline]
    pub(crate) fn set_based(&mut self) {
        *self = SlotStamp::of(self.bits() | BASED);
    }

    /// Notes a change in another turn, as its `index`-th.
    #[inline]
    pub(crate) fn change(&mut self, position: u64, index: usize) {
        assert!(position >> POSITION_BITS == 0, "a file is closed before it has seen so many commits");
        assert!(index >> INDEX_BITS == 0, "a turn is of limited size");
        let journaled = if self.position() > 0 { JOURNALED } else { 0 };
        let place = position << (INDEX_BITS + FLAG_BITS) | (index as u64) << FLAG_BITS;
        *self = SlotStamp::of(place | journaled | self.bits() & BASED);
    }

    /// Whether the disk knows a row with this key, so that its deletion in a turn has to be written.
    #[inline]
    pub(crate) fn is_on_disk(self, turn: u64) -> bool {
        self.bits() & (BASED | JOURNALED) != 0 || (self.position() > 0 && self.position() < turn)
    }
}

/// A row of the window.
pub(crate) struct WindowSlot<V> {
    pub(crate) stamp: SlotStamp,
    pub(crate) value: V,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_the_last_change_and_what_came_before_it() {
        for based in [false, true] {
            let mut stamp = SlotStamp::fresh(based);
            assert_eq!((stamp.position(), stamp.is_based(), stamp.is_on_disk(1)), (0, based, based));
            let (position, index) = ((1 << POSITION_BITS) - 2, (1 << INDEX_BITS) - 1);
            stamp.change(position, index);
            assert_eq!((stamp.position(), stamp.index(), stamp.is_based()), (position, index, based));
            assert_eq!(stamp.is_on_disk(position), based, "what came with this turn is in no journal yet");
            assert!(stamp.is_on_disk(position + 1), "what came with an earlier one is");
            stamp.change(position + 1, 0);
            assert_eq!((stamp.position(), stamp.index(), stamp.is_based()), (position + 1, 0, based));
            assert!(stamp.is_on_disk(position + 1), "an earlier one has put it into the journal");
            stamp.set_based();
            assert!(stamp.is_based() && stamp.position() == position + 1);
        }
    }

    #[test]
    fn a_stamp_that_may_not_be_there_takes_no_more_room() {
        assert_eq!(size_of::<Option<SlotStamp>>(), size_of::<u64>());
    }

    #[test]
    #[should_panic(expected = "a turn is of limited size")]
    fn a_turn_without_end_is_noticed() {
        SlotStamp::fresh(false).change(1, 1 << INDEX_BITS);
    }
}
