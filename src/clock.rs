//! Time as the engine sees it: the one module that asks the operating system for it.

use std::fmt;
use std::ops::Add;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::Serialize;

/// An instant as whole milliseconds since the Unix epoch.
///
/// Durable instants (a retry, a schedule, an expiry) are of this type. Adding a [`Duration`] rounds it up to the
/// next millisecond, so that nothing fires early, and stops at the last representable instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The last representable instant.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// Makes an instant from milliseconds since the Unix epoch.
    pub const fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this instant is; zero when it is not after it.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Timestamp {
    /// The next whole millisecond, so that nothing fires early; before 1970, the epoch.
    fn from(instant: SystemTime) -> Timestamp {
        Timestamp::default() + instant.duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl From<Timestamp> for SystemTime {
    /// The same instant, or the last one that the system can say.
    fn from(instant: Timestamp) -> SystemTime {
        let since = Duration::from_millis(instant.0);
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH + Duration::from_millis(i64::MAX.unsigned_abs()))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Duration) -> Timestamp {
        let rounded_up = duration.as_nanos().div_ceil(1_000_000);
        Timestamp(self.0.saturating_add(u64::try_from(rounded_up).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Where an engine reads the time.
///
/// [`SystemClock`] is the default; `seriatim::testing::ManualClock` stands still until a test moves it. The engine
/// measures durations (locks, delays, waits, times to live) with [`Clock::elapsed`] and compares given instants
/// (schedules, cron ticks) with [`Clock::now`]; it never mixes the two.
pub trait Clock: Send + Sync + 'static {
    /// What the wall clock shows. It may be set forward or back at any time.
    fn now(&self) -> Timestamp;

    /// Time that has passed since some fixed moment; it never runs backwards, whatever the wall clock does.
    fn elapsed(&self) -> Duration;

    /// Whether the clock stands still until it is moved, as that of the tests does.
    #[doc(hidden)]
    fn is_manual(&self) -> bool {
        false
    }

    /// Registers what to call when the clock was moved by hand.
    #[doc(hidden)]
    fn on_change(&self, _wake: Box<dyn Fn() + Send + Sync>) {}
}

/// A span of time in whole milliseconds.
pub(crate) fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// The operating system's clocks: the wall clock, and one that is never set.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks for the time")]
    fn default() -> SystemClock {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks for the time")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(whole_millis(since_epoch))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks for the time")]
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A step of the wall clock: somebody set it, or the machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClockStep {
    /// What it should have shown.
    pub expected: Timestamp,
    /// What it showed.
    pub shown: Timestamp,
}

impl ClockStep {
    /// Whether it was set forward.
    pub fn is_forward(self) -> bool {
        self.shown > self.expected
    }

    /// By how much it was set, forward or back.
    pub fn size(self) -> Duration {
        self.shown.since(self.expected).max(self.expected.since(self.shown))
    }
}

impl fmt::Display for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.is_forward() { "forward" } else { "back" };
        write!(f, "{direction} by {:?} to {}", self.size(), self.shown)
    }
}

/// The steps of the wall clock of more than a minute that an engine has noticed since its file was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClockSteps {
    /// How often it was set forward.
    pub forward: u64,
    /// How often it was set back.
    pub back: u64,
    /// The last step.
    pub last: Option<ClockStep>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_millisecond_is_rounded_up_so_that_nothing_is_early() {
        let start = Timestamp::from_millis(1_000);
        assert_eq!(start + Duration::from_micros(1), Timestamp::from_millis(1_001));
        assert_eq!(start + Duration::from_millis(5), Timestamp::from_millis(1_005));
    }

    #[test]
    fn an_endless_delay_ends_at_the_last_instant() {
        assert_eq!(Timestamp::from_millis(7) + Duration::MAX, Timestamp::MAX);
    }
}
