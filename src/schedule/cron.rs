//! A cron line in a time zone, and the instants at which it ticks.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use jiff::tz::TimeZone;

use crate::clock::Timestamp;
use crate::limits;
use crate::schedule::cron_civil::CivilTimes;
use crate::schedule::cron_line::CronError;
use crate::schedule::cron_line::CronLine;

/// A cron line in a time zone: when a schedule ticks.
///
/// A line has five fields (minute, hour, day of month, month, weekday) or six, with the second first; or a name such as
/// `@daily`. Months and weekdays have names; 0 and 7 are both Sunday. When days of the month *and* weekdays are
/// restricted, one of them has to fit, as in Vixie's cron. A field that begins with `*` does not count as restricted, not even `*/2`:
/// then both have to fit.
///
/// # When clocks are changed
/// A line with fixed hours ticks once for each of its civil times: in a night that skips it, at the first instant after
/// the gap (and only once there, however many of its times were skipped); in a night that has it twice, the first time.
/// A line whose hours are a wildcard or have a step (`*`, `*/2`, `0-23`) ticks by elapsed time: in both passes of an hour
/// that comes twice, and not at all in one that does not come.
///
/// A tick is known by its nominal instant, which is the same however often and whenever it is computed.
#[derive(Clone, Debug)]
pub struct Cron {
    line: String,
    zone: TimeZone,
    zone_name: String,
    times: CivilTimes,
}

impl PartialEq for Cron {
    fn eq(&self, other: &Cron) -> bool {
        self.line == other.line && self.zone_name == other.zone_name
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.line, self.zone_name)
    }
}

impl Cron {
    /// Reads a line, to be understood in the time zone of this name (`Europe/Berlin`, `UTC`).
    ///
    /// # Errors
    /// [`CronError`] when the line is malformed or never ticks, or when the time zone is not known.
    pub fn parse(line: &str, time_zone: &str) -> Result<Cron, CronError> {
        let zone = zone_named(time_zone)?;
        let times = CivilTimes::new(&CronLine::parse(line)?);
        if let Some((message, help)) = times.never() {
            return Err(CronError { message, help: Some(help), part: Some(0..line.len()) });
        }
        let zone_name = zone.iana_name().unwrap_or(time_zone).to_owned();
        Ok(Cron { line: line.trim().to_owned(), zone, zone_name, times })
    }

    /// The line as it was written.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The name of its time zone.
    pub fn time_zone(&self) -> &str {
        &self.zone_name
    }

    /// An instant as the clocks of its time zone show it: `2027-01-31T02:00:00+01:00`.
    pub fn local(&self, instant: Timestamp) -> String {
        let millis = i64::try_from(instant.as_millis()).ok();
        match millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()) {
            Some(instant) => instant.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            None => instant.to_string(),
        }
    }

    /// The first tick later than `instant`; `None` beyond the year 9999.
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let second = i64::try_from(instant.as_millis() / 1_000).ok()?.checked_add(1)?;
        let from = jiff::Timestamp::from_second(second).ok()?;
        let tick = match self.times.has_fixed_hours() {
            true => self.first_of_fixed_hours(from)?,
            false => self.first_by_elapsed_time(from)?,
        };
        u64::try_from(tick.as_millisecond()).ok().map(Timestamp::from_millis)
    }

    /// The ticks later than `after` and not later than `until`, the earliest first, at most `limit`.
    pub fn ticks_between(&self, after: Timestamp, until: Timestamp, limit: usize) -> Vec<Timestamp> {
        let ticks = std::iter::successors(self.next_after(after), |tick| self.next_after(*tick));
        ticks.take_while(|tick| *tick <= until).take(limit).collect()
    }

    /// The last tick later than `after` and not later than `until`.
    ///
    /// It is found by halving the time between, so that a long absence costs no more than a short one.
    pub fn last_between(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let mut last = self.next_after(after).filter(|tick| *tick <= until)?;
        let mut no_tick_after = until;
        while last < no_tick_after {
            let middle = Timestamp::from_millis(last.as_millis().midpoint(no_tick_after.as_millis()));
            match self.next_after(middle).filter(|tick| *tick <= no_tick_after) {
                Some(tick) => last = tick,
                None => no_tick_after = middle,
            }
        }
        Some(last)
    }

    /// The first instant, not before `from`, that stands for a civil time of the line.
    fn first_of_fixed_hours(&self, from: jiff::Timestamp) -> Option<jiff::Timestamp> {
        // What follows the second before: where clocks were set forward, that is where the gap begins.
        let before = from.checked_sub(SECOND).ok()?;
        let mut civil = self.zone.to_datetime(before).checked_add(SECOND).ok()?;
        loop {
            civil = self.times.first_from(civil)?;
            let tick = self.instant_of(civil)?;
            if tick >= from {
                return Some(tick);
            }
            // A time that comes twice, and this is its second pass: go on behind it.
            civil = self.end_of_overlap(tick)?;
        }
    }

    /// The instant of a civil time: the first one if there are two; the end of the gap if there is none.
    fn instant_of(&self, civil: DateTime) -> Option<jiff::Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(civil);
        match ambiguous.offset() {
            AmbiguousOffset::Gap { after, .. } => {
                let before_the_gap = after.to_timestamp(civil).ok()?;
                Some(self.zone.following(before_the_gap).next()?.timestamp())
            }
            _ => ambiguous.earlier().ok(),
        }
    }

    /// The civil time at which the overlap ends that holds `instant` in its first pass.
    fn end_of_overlap(&self, instant: jiff::Timestamp) -> Option<DateTime> {
        let turned_back_at = self.zone.following(instant).next()?.timestamp();
        Some(self.zone.to_offset(instant).to_datetime(turned_back_at))
    }

    /// The first instant, not before `from`, whose civil time the line has. Between two changes of the clocks civil time
    /// runs evenly, so each such stretch is looked at by itself.
    fn first_by_elapsed_time(&self, mut from: jiff::Timestamp) -> Option<jiff::Timestamp> {
        for _ in 0..limits::CLOCK_CHANGES_MAX {
            let offset = self.zone.to_offset(from);
            let civil = self.times.first_from(offset.to_datetime(from))?;
            let tick = offset.to_timestamp(civil).ok()?;
            match self.zone.following(from).next() {
                Some(change) if change.timestamp() <= tick => from = change.timestamp(),
                _ => return Some(tick),
            }
        }
        None
    }
}

/// The names of the time zones that are known here.
pub fn time_zones() -> Vec<String> {
    jiff::tz::db().available().map(|zone| zone.as_str().to_owned()).collect()
}

/// Lets time zones be read anew from the system's data when they are next named: that may have been brought up to date.
pub(crate) fn forget_time_zones() {
    jiff::tz::db().reset();
}

/// The time zone of a name, from the system's data or, where that is missing, from what the program carries.
fn zone_named(name: &str) -> Result<TimeZone, CronError> {
    let unknown = |_| CronError {
        message: format!("there is no time zone `{name}`"),
        help: Some("write a name of the IANA time zone database, such as Europe/Berlin or UTC".to_owned()),
        part: None,
    };
    TimeZone::get(name).map_err(unknown)
}

const SECOND: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);
