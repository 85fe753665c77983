//! Instants as a person reads them: in local time, and how long ago.

use std::time::Duration;

use jiff::tz::TimeZone;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::Timestamp;
use seriatim::api::WireTime;

/// The present, and where we are.
pub(crate) struct LocalTime {
    now: Timestamp,
    zone: TimeZone,
}

impl LocalTime {
    /// Now, here.
    pub(crate) fn here() -> LocalTime {
        LocalTime { now: SystemClock::default().now(), zone: TimeZone::system() }
    }

    /// An instant in UTC.
    #[cfg(test)]
    pub(crate) fn at(millis: u64) -> LocalTime {
        LocalTime { now: Timestamp::from_millis(millis), zone: TimeZone::UTC }
    }

    /// `3m 12s ago`, `in 4m`, `now`.
    pub(crate) fn age(&self, at: WireTime) -> String {
        let (past, future) = (self.now.since(at.0), at.0.since(self.now));
        if past.as_secs() == 0 && future.as_secs() == 0 {
            return "now".to_owned();
        }
        match past.is_zero() {
            true => format!("in {}", span(future)),
            false => format!("{} ago", span(past)),
        }
    }

    /// The instant in local time, to the second.
    pub(crate) fn local(&self, at: WireTime) -> String {
        let millis = i64::try_from(at.0.as_millis()).ok();
        let instant = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        let Some(instant) = instant else { return at.to_string() };
        instant.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// Both: `2027-01-31T12:00:00+01:00 (3m 12s ago)`.
    pub(crate) fn full(&self, at: WireTime) -> String {
        format!("{} ({})", self.local(at), self.age(at))
    }

    /// Whether an instant has come.
    pub(crate) fn is_past(&self, at: WireTime) -> bool {
        at.0 <= self.now
    }

    /// How far a clock is from ours.
    pub(crate) fn apart(&self, at: WireTime) -> Duration {
        self.now.since(at.0).max(at.0.since(self.now))
    }
}

/// A span of time in its two largest units.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let Some(first) = units.iter().position(|(_, unit)| seconds >= *unit) else {
        return format!("{}ms", span.as_millis());
    };
    let (name, unit) = units[first];
    let largest = format!("{}{name}", seconds / unit);
    match units.get(first + 1) {
        Some((name, smaller)) if seconds % unit / smaller > 0 => {
            format!("{largest} {}{name}", seconds % unit / smaller)
        }
        _ => largest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_its_two_largest_units() {
        let present = LocalTime::at(1_000_000_000);
        let at = |seconds: i64| {
            WireTime(Timestamp::from_millis(1_000_000_000_u64.saturating_add_signed(seconds * 1_000)))
        };
        for (seconds, age) in [
            (0, "now"),
            (-5, "5s ago"),
            (-192, "3m 12s ago"),
            (240, "in 4m"),
            (-7_210, "2h ago"),
            (-90_061, "1d 1h ago"),
        ] {
            assert_eq!(present.age(at(seconds)), age);
        }
        assert_eq!([-1, 0, 1].map(|seconds| present.is_past(at(seconds))), [true, true, false]);
        assert_eq!(present.full(at(-5)), "1970-01-12T13:46:35+00:00 (5s ago)");
        assert_eq!(span(Duration::from_millis(40)), "40ms");
    }
}
