//! The next instant at which something is due, as the time the hot loop may sleep.

use std::time::Duration;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::limits;

/// How long the loop may sleep; `None` until something comes.
///
/// Sleeping uses the monotonic clock. Whether something is due is decided afterwards, by the engine's time, so a
/// sleep that ends too soon fires nothing early.
pub(crate) fn patience(
    clock: &dyn Clock,
    time: Timestamp,
    due: Option<Timestamp>,
    receiver: Option<Duration>,
) -> Option<Duration> {
    if clock.is_manual() {
        let passed = due.is_some_and(|due| due <= clock.now().max(time))
            || receiver.is_some_and(|until| until <= clock.elapsed());
        return passed.then_some(Duration::ZERO);
    }
    let until_due = due.map(|due| due.since(clock.now().max(time)));
    let until_receiver = receiver.map(|until| until.saturating_sub(clock.elapsed()));
    // The wall clock can be set, and a machine can sleep: the loop looks again before long.
    [until_due, until_receiver].into_iter().flatten().min().map(|wait| wait.min(limits::PATIENCE_MAX))
}
