//! When a receiver wants a post again.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::clock::Timestamp;
use crate::limits;

/// Reads `Retry-After`: seconds, or a date. One that makes no sense is as good as none.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let delay = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = DateTimeParser::new().parse_timestamp(value).ok()?;
            Timestamp::from_millis(u64::try_from(date.as_millisecond()).ok()?).since(now)
        }
    };
    Some(delay.min(limits::RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &'static str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
        // Wed, 21 Oct 2015 07:28:00 GMT
        retry_after(&headers, Timestamp::from_millis(1_445_412_480_000))
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:10 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(read("Wed, 21 Oct 2015 07:27:00 GMT"), Some(Duration::ZERO));
        for nonsense in ["soon", "-1", "1.5", ""] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn nobody_can_ask_for_a_delay_without_end() {
        assert_eq!(read("99999999999"), Some(limits::RETRY_AFTER_MAX));
        assert_eq!(read("Fri, 31 Dec 2100 23:59:59 GMT"), Some(limits::RETRY_AFTER_MAX));
    }
}
