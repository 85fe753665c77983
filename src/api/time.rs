//! Instants and spans of time as people write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Span;
use jiff::SpanRelativeTo;
use jiff::fmt::friendly::Designator;
use jiff::fmt::friendly::SpanPrinter;
use schemars::JsonSchema;
use schemars::Schema;
use schemars::SchemaGenerator;
use schemars::json_schema;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;

use crate::clock::Timestamp;
use crate::error::Misuse;
use crate::limits;

/// The member of a schema that says in which notation a value is written.
pub(crate) const NOTATION: &str = "x-notation";

/// The notation of spans of time.
pub(crate) const DURATION_NOTATION: &str = "duration";

/// An instant: written as RFC 3339 text in UTC with milliseconds, read from RFC 3339 text or whole milliseconds since
/// the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireTime(pub Timestamp);

impl fmt::Display for WireTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0.as_millis()).ok();
        match millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()) {
            Some(instant) => write!(f, "{instant:.3}"),
            // Beyond the year 9999 no calendar helps.
            None => write!(f, "{}", self.0.as_millis()),
        }
    }
}

impl FromStr for WireTime {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<WireTime, Misuse> {
        if let Ok(millis) = text.parse() {
            return Ok(WireTime(Timestamp::from_millis(millis)));
        }
        let wrong = |problem: String| Misuse::new("instant", problem);
        let instant: jiff::Timestamp = text.parse().map_err(|_| {
            wrong(format!("{text:?} is not like 2027-01-31T12:00:00Z, nor milliseconds since 1970"))
        })?;
        let millis = u64::try_from(instant.as_millisecond());
        Ok(WireTime(Timestamp::from_millis(millis.map_err(|_| wrong(format!("{text:?} is before 1970")))?)))
    }
}

impl Serialize for WireTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WireTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireTime, D::Error> {
        match TextOrNumber::deserialize(deserializer)? {
            TextOrNumber::Text(text) => text.parse().map_err(de::Error::custom),
            TextOrNumber::Number(millis) => Ok(WireTime(Timestamp::from_millis(millis))),
        }
    }
}

impl JsonSchema for WireTime {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An instant: RFC 3339 text, or whole milliseconds since the Unix epoch",
            "oneOf": [{ "type": "string", "format": "date-time" }, { "type": "integer", "minimum": 0 }],
        })
    }
}

/// A span of time: written as text such as `1h 30m`, read from such text, from ISO 8601 (`PT5M`), or from whole
/// milliseconds. A day has 24 hours and a week seven days; months and years are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireDuration(pub Duration);

impl fmt::Display for WireDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PRINTER: SpanPrinter = SpanPrinter::new().designator(Designator::Compact);
        let millis = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
        let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
        let (hours, rest) = (rest / 3_600_000, rest % 3_600_000);
        let (minutes, rest) = (rest / 60_000, rest % 60_000);
        let span = Span::new()
            .try_days(days)
            .and_then(|span| span.try_hours(hours))
            .and_then(|span| span.try_minutes(minutes))
            .and_then(|span| span.try_seconds(rest / 1_000))
            .and_then(|span| span.try_milliseconds(rest % 1_000));
        match span {
            Ok(span) => f.write_str(&PRINTER.span_to_string(&span)),
            Err(_) => write!(f, "{millis}ms"),
        }
    }
}

impl FromStr for WireDuration {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<WireDuration, Misuse> {
        if let Ok(millis) = text.parse() {
            return checked(Duration::from_millis(millis));
        }
        let wrong = || Misuse::new("duration", format!("{text:?} is not like 30s, 5 min, 1h30m, 7d or PT5M"));
        let span: Span = text.trim().parse().map_err(|_| wrong())?;
        let days = SpanRelativeTo::days_are_24_hours();
        let duration = span.to_duration(days).map_err(|_| wrong())?;
        checked(Duration::try_from(duration).map_err(|_| Misuse::new("duration", "is negative"))?)
    }
}

fn checked(duration: Duration) -> Result<WireDuration, Misuse> {
    if duration > limits::DURATION_MAX {
        return Err(Misuse::new("duration", "is longer than 100 years"));
    }
    Ok(WireDuration(duration))
}

impl Serialize for WireDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WireDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireDuration, D::Error> {
        match TextOrNumber::deserialize(deserializer)? {
            TextOrNumber::Text(text) => text.parse().map_err(de::Error::custom),
            TextOrNumber::Number(millis) => checked(Duration::from_millis(millis)).map_err(de::Error::custom),
        }
    }
}

impl JsonSchema for WireDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            (NOTATION): DURATION_NOTATION,
            "description": "A span of time: text like 30s, 5 min, 1h30m, 7d or PT5M, or whole milliseconds",
            "oneOf": [{ "type": "string" }, { "type": "integer", "minimum": 0 }],
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "text or a whole number of milliseconds")]
enum TextOrNumber {
    Text(String),
    Number(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_as_operators_write_it_and_written_back_the_same() {
        let read = |text: &str| text.parse::<WireDuration>().unwrap().0;
        for (text, seconds) in
            [("30s", 30), ("5 min", 300), ("1h30m", 5_400), ("PT5M", 300), ("7d", 604_800), ("1w", 604_800)]
        {
            assert_eq!(read(text), Duration::from_secs(seconds), "{text}");
            assert_eq!(read(&WireDuration(read(text)).to_string()), read(text));
        }
        assert_eq!(read("250"), Duration::from_millis(250));
        assert_eq!(WireDuration(Duration::from_millis(90_061_001)).to_string(), "1d 1h 1m 1s 1ms");
        for wrong in ["", "5 fortnights", "-5s", "1 month", "200 years"] {
            assert!(wrong.parse::<WireDuration>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_instant_is_written_in_utc_with_milliseconds() {
        let instant: WireTime = "2027-03-28T02:30:00+02:00".parse().unwrap();
        assert_eq!(instant.to_string(), "2027-03-28T00:30:00.000Z");
        assert_eq!(instant, instant.0.as_millis().to_string().parse().unwrap());
        assert!("yesterday".parse::<WireTime>().is_err());
        assert!("1969-12-31T00:00:00Z".parse::<WireTime>().is_err());
    }
}
