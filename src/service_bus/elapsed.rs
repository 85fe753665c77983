//! Milliseconds, in which AMQP counts time.

use std::time::Duration;

use crate::clock::Clock;

/// Milliseconds by the clock that never runs backwards.
pub(crate) fn elapsed_ms(clock: &dyn Clock) -> u64 {
    millis(clock.elapsed())
}

/// A span in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
