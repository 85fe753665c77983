//! Instants and spans as this API writes them: dates of HTTP, and whole seconds.

use std::time::Duration;

use jiff::Timestamp as Instant;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::clock::Timestamp;

/// The expiry of a message that never expires.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// An instant, rounded down to whole seconds.
pub(crate) fn date(at: Timestamp) -> String {
    seconds_as_date(at.as_millis() / 1_000)
}

/// An instant that nothing comes before, rounded up to whole seconds.
pub(crate) fn date_not_before(at: Timestamp) -> String {
    seconds_as_date(at.as_millis().div_ceil(1_000))
}

/// An instant as access policies write it, to the tenth of a microsecond.
pub(crate) fn instant(at: Instant) -> String {
    format!("{at:.7}")
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
    seconds_from(text, shortest).filter(|span| *span <= longest)
}

/// A span of whole seconds that is not shorter than so many, however long; one that no integer holds is the longest.
pub(crate) fn seconds_from(text: &str, shortest: u64) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = is_number.then(|| text.parse().unwrap_or(u64::MAX))?;
    (seconds >= shortest).then(|| Duration::from_secs(seconds))
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
    fn instants_have_seven_digits_of_a_second() {
        let at = "1994-11-06T08:49:37.12345678Z".parse().unwrap();
        assert_eq!(instant(at), "1994-11-06T08:49:37.1234567Z");
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

    #[test]
    fn a_span_without_an_upper_bound_has_a_lower_one() {
        assert_eq!(seconds_from("4294967295", 1), Some(Duration::from_secs(4_294_967_295)));
        assert_eq!(seconds_from("99999999999999999999", 1), Some(Duration::from_secs(u64::MAX)));
        for wrong in ["0", "-2", "+1", "", "1.5", "x"] {
            assert_eq!(seconds_from(wrong, 1), None, "{wrong}");
        }
    }
}
