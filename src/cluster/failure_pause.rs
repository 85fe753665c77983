//! How long a partition is left alone with which something could not go on: twice as long each time.

use std::time::Duration;

/// The longest pause before it is tried again, in times of the first.
const PAUSE_TIMES_MAX: u32 = 64;

/// The pauses of a partition.
pub(crate) struct FailurePause {
    first: Duration,
    failures: u32,
    /// Since when it has gone on, if this attempt has come so far.
    since: Option<Duration>,
}

impl FailurePause {
    /// The first pause is so long.
    pub(crate) fn new(first: Duration) -> FailurePause {
        FailurePause { first, failures: 0, since: None }
    }

    /// Begins another attempt: what it takes until it goes on is part of its failure, if that is what becomes of it.
    pub(crate) fn begin(&mut self) {
        self.since = None;
    }

    /// Notes that it goes on, by the time that has passed.
    pub(crate) fn note_going_on(&mut self, now: Duration) {
        self.since = self.since.or(Some(now));
    }

    /// The pause after another failure; whoever went on for longer than the longest pause begins anew.
    pub(crate) fn after(&mut self, now: Duration) -> Duration {
        let lasted = self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
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
        pause.note_going_on(seconds(100));
        pause.note_going_on(seconds(150));
        assert_eq!(pause.after(seconds(164)), seconds(64));
        assert_eq!(pause.after(seconds(165)), seconds(1));
    }

    #[test]
    fn a_pause_grows_however_long_each_attempt_takes_to_fail() {
        let seconds = Duration::from_secs;
        let mut pause = FailurePause::new(seconds(1));
        pause.note_going_on(Duration::ZERO);
        for (attempt, grown) in [1, 2, 4, 8].map(seconds).into_iter().enumerate() {
            pause.begin();
            assert_eq!(pause.after(seconds(1_000 * (attempt as u64 + 1))), grown);
        }
    }
}
