//! How often servers and nodes misbehave, out of the seed of their test.

use crate::engine::tests::crash::random::Random;

impl Random {
    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
