//! When a receiver wants a post again.

use std::time::Duration;

use http::HeaderMap;
use http::header::DATE;
use http::header::RETRY_AFTER;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::clock::Timestamp;
use crate::limits;

/// Reads `Retry-After`: seconds, or a date, which is measured by the clock of whoever has written it, if the answer says that. One
/// that makes no sense is as good as none; so is one that names no later time, because all attempts would be used up in a moment.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let delay = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let written = headers.get(DATE).and_then(|date| read_date(date.to_str().ok()?.trim()));
            read_date(value)?.since(written.unwrap_or(now))
        }
    };
    (!delay.is_zero()).then(|| delay.min(limits::RETRY_AFTER_MAX))
}

fn read_date(text: &str) -> Option<Timestamp> {
    let date = DateTimeParser::new().parse_timestamp(text).ok()?;
    u64::try_from(date.as_millisecond()).ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wed, 21 Oct 2015 07:28:00 GMT
    const NOW: Timestamp = Timestamp::from_millis(1_445_412_480_000);

    fn read(value: &'static str) -> Option<Duration> {
        retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]), NOW)
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:10 GMT"), Some(Duration::from_secs(10)));
        for nonsense in ["soon", "-1", "1.5", ""] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_delay_of_nothing_and_a_date_that_is_over_leave_the_delays_of_the_definition() {
        for over in ["0", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:27:00 GMT"] {
            assert_eq!(read(over), None, "{over}");
        }
    }

    #[test]
    fn a_date_is_measured_by_the_clock_of_whoever_has_written_it() {
        let read = |date: &'static str, value: &'static str| {
            let headers = [(DATE, date.parse().unwrap()), (RETRY_AFTER, value.parse().unwrap())];
            retry_after(&HeaderMap::from_iter(headers), NOW)
        };
        let behind = "Wed, 21 Oct 2015 07:20:00 GMT";
        assert_eq!(read(behind, "Wed, 21 Oct 2015 07:20:10 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(read(behind, "Wed, 21 Oct 2015 07:19:50 GMT"), None);
        assert_eq!(read("today", "Wed, 21 Oct 2015 07:28:10 GMT"), Some(Duration::from_secs(10)));
    }

    #[test]
    fn nobody_can_ask_for_a_delay_without_end() {
        assert_eq!(read("99999999999"), Some(limits::RETRY_AFTER_MAX));
        assert_eq!(read("Fri, 31 Dec 2100 23:59:59 GMT"), Some(limits::RETRY_AFTER_MAX));
    }
}
