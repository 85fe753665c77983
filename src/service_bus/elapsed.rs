//! Milliseconds, in which AMQP counts time.

use crate::clock::Clock;
use crate::clock::whole_millis;

/// Milliseconds by the clock that never runs backwards.
pub(crate) fn elapsed_ms(clock: &dyn Clock) -> u64 {
    whole_millis(clock.elapsed())
}
