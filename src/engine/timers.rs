//! The next instant at which something is due, as the time the hot loop may sleep.

use std::time::Duration;

use crate::clock::Clock;
use crate::engine::clocks::ClockReading;
use crate::engine::clocks::Clocks;
use crate::engine::rules::due::NextDue;
use crate::limits;

/// How long the loop may sleep; `None` until something comes.
///
/// Sleeping uses the monotonic clock. Whether something is due is decided afterwards, by the engine's clocks, so a sleep
/// that ends too soon fires nothing early.
pub(crate) fn sleep_time(
    clock: &dyn Clock,
    clocks: &Clocks,
    due: NextDue,
    receiver: Option<Duration>,
) -> Option<Duration> {
    let reading = ClockReading::of(clock);
    if clock.is_manual() {
        let passed =
            due.is_past(clocks.at(reading)) || receiver.is_some_and(|until| until <= reading.elapsed);
        return passed.then_some(Duration::ZERO);
    }
    let until_receiver = receiver.map(|until| until.saturating_sub(reading.elapsed));
    // The wall clock can be set, and a machine can sleep: the loop looks again before long.
    let waits = [clocks.until(due, reading), until_receiver].into_iter().flatten();
    waits.min().map(|wait| wait.min(limits::SLEEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::engine::rules::due::Due;
    use crate::engine::store::Stamp;

    #[test]
    fn a_sleep_is_short_although_nothing_is_due_for_long_because_the_clock_can_be_set() {
        let clock = SystemClock::default();
        let clocks = Clocks::open(Stamp::default(), ClockReading::of(&clock));
        let tomorrow = clock.now() + Duration::from_secs(86_400);
        let sleep_time = |due, receiver| sleep_time(&clock, &clocks, due, receiver);
        let of_wall = |at| NextDue { wall: Some(Due::wall(at)), ..NextDue::default() };
        let of_engine = |at| NextDue { engine: Some(Due::engine(at)), ..NextDue::default() };
        assert_eq!(sleep_time(of_wall(tomorrow), None), Some(limits::SLEEP_MAX));
        assert_eq!(sleep_time(of_engine(tomorrow), None), Some(limits::SLEEP_MAX));
        assert_eq!(
            sleep_time(NextDue::default(), Some(Duration::from_secs(86_400))),
            Some(limits::SLEEP_MAX)
        );
        assert_eq!(sleep_time(of_wall(clock.now()), None), Some(Duration::ZERO));
        assert_eq!(sleep_time(NextDue::default(), None), None, "until something comes");
    }
}
