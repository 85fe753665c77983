//! How long a partition is left alone with which something could not go on: twice as long each time.

use std::time::Duration;

/// The longest pause before it is tried again, in times of the first.
const PAUSE_TIMES_MAX: u32 = 64;

/// The pauses of a partition.
pub(crate) struct FailurePause {
    first: Duration,
    failures: u32,
}

impl FailurePause {
    /// The first pause is so long.
    pub(crate) fn new(first: Duration) -> FailurePause {
        FailurePause { first, failures: 0 }
    }

    /// The pause after another failure; whoever went on for longer than the longest pause begins anew.
    pub(crate) fn after(&mut self, lasted: Duration) -> Duration {
        let longest = self.first * PAUSE_TIMES_MAX;
        if lasted > longest {
            self.failures = 0;
        }
        let pause = self.first.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures += 1;
        pause.min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_twice_as_long_each_time_until_it_went_on_for_long() {
        let seconds = Duration::from_secs;
        let mut pause = FailurePause::new(seconds(1));
        let after_none: Vec<Duration> = (0..8).map(|_| pause.after(Duration::ZERO)).collect();
        assert_eq!(after_none, [1, 2, 4, 8, 16, 32, 64, 64].map(seconds));
        assert_eq!(pause.after(seconds(64)), seconds(64));
        assert_eq!(pause.after(seconds(65)), seconds(1));
    }
}
