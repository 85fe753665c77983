//! A hash by which numbers that follow each other are found beside each other.

use std::hash::BuildHasherDefault;
use std::hash::Hasher;

/// Hashes numbers that the engine gives out itself, one after the other.
///
/// Messages that came together are handed out and settled near to each other in time; kept beside each other, most of their
/// rows are in the processor's cache when they are looked for. Only so many are kept together: were it all of them, new
/// numbers that have come round to where old ones lie would find room only behind the last of those. Senders choose nothing of
/// these numbers but the distance between two of one queue, and what is not kept together is spread.
pub(crate) type Neighbours = BuildHasherDefault<NeighbourHasher>;

/// The bits of a number by which neighbours are told apart: 16 rows lie together.
const NEAR: u64 = 0xf;

/// Numbers that follow each other and are the same for [`neighbourhood`].
const NEIGHBOURS: u64 = 64;

/// The top bits of a hash, by which `hashbrown` tells rows apart that fell to one place.
const TAG: u64 = 0x7f << 57;

/// An odd number without a pattern: two to the 64th by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The same number for numbers that lie together, and the next one for those after them.
#[inline]
pub(crate) fn neighbourhood(number: u64) -> u64 {
    number / NEIGHBOURS
}

#[derive(Default)]
pub(crate) struct NeighbourHasher(u64);

impl Hasher for NeighbourHasher {
    #[inline]
    fn write_u32(&mut self, queue: u32) {
        self.0 = u64::from(queue).wrapping_mul(SPREAD) & !NEAR;
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.wrapping_add(number);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only the numbers of queues and messages are hashed like this");
    }

    #[inline]
    fn finish(&self) -> u64 {
        // Of what a table has in common in the low bits of all its numbers, only the upper half of a product makes a difference.
        let product = u128::from(self.0 >> NEAR.count_ones()) * u128::from(SPREAD);
        let spread = product as u64 ^ (product >> 64) as u64;
        let place = spread << NEAR.count_ones() | self.0 & NEAR;
        place & !TAG | self.0.wrapping_mul(SPREAD) & TAG
    }
}
