//! Instants and spans as this API writes them: dates of HTTP, and whole seconds.

use std::time::Duration;

use jiff::Timestamp as Instant;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::clock::Timestamp;

/// What is said of a message that never expires.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// An instant, rounded down to whole seconds.
pub(crate) fn date(at: Timestamp) -> String {
    seconds_as_date(at.as_millis() / 1_000)
}

/// An instant that nothing comes before, rounded up to whole seconds.
pub(crate) fn date_not_before(at: Timestamp) -> String {
    seconds_as_date(at.as_millis().div_ceil(1_000))
}

/// When something expires.
pub(crate) fn expiry(at: Option<Timestamp>) -> String {
    at.map_or_else(|| NEVER.to_owned(), date)
}

fn seconds_as_date(seconds: u64) -> String {
    let instant = i64::try_from(seconds).ok().and_then(|seconds| Instant::from_second(seconds).ok());
    let date = instant.and_then(|instant| DateTimePrinter::new().timestamp_to_rfc9110_string(&instant).ok());
    date.unwrap_or_else(|| NEVER.to_owned())
}

/// A span of whole seconds within a range, both ends included.
pub(crate) fn seconds_within(text: &str, shortest: u64, longest: Duration) -> Option<Duration> {
    let seconds: u64 = text.parse().ok()?;
    let span = Duration::from_secs(seconds);
    (seconds >= shortest && span <= longest).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(date(Timestamp::from_millis(784_111_777_999)), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date_not_before(Timestamp::from_millis(784_111_776_001)), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(Timestamp::MAX), NEVER);
        assert_eq!(expiry(None), NEVER);
    }

    #[test]
    fn a_span_outside_its_range_is_none() {
        let week = Duration::from_secs(604_800);
        assert_eq!(seconds_within("604800", 0, week), Some(week));
        for wrong in ["604801", "-1", "1.5", "", "x", "99999999999999999999"] {
            assert_eq!(seconds_within(wrong, 0, week), None, "{wrong}");
        }
        assert_eq!(seconds_within("0", 1, week), None);
    }
}
