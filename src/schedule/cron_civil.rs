//! The civil times at which a cron line ticks, whatever the time zone.

use cron::TimeUnitSpec;
use jiff::civil::Date;
use jiff::civil::DateTime;
use jiff::civil::Time;

use crate::schedule::cron_line::CronLine;

/// Days that are looked at for the next one that fits: more than the eight years between 1896 and 1904, and than the
/// years until the first of a month is a certain weekday.
const DAYS_LOOKED_AT: usize = 40 * 366;

const ALL_HOURS: u64 = (1 << 24) - 1;

/// Sets of seconds, minutes, hours, days, months and weekdays, a bit for each member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CivilTimes {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// Bit 0 is Sunday.
    weekdays: u64,
    /// Both the days of the month and the weekdays are restricted: one of them has to fit, not both.
    either_day: bool,
    steps_hours: bool,
}

impl CivilTimes {
    pub(crate) fn new(line: &CronLine) -> CivilTimes {
        let schedule = &line.schedule;
        CivilTimes {
            seconds: bits(schedule.seconds()),
            minutes: bits(schedule.minutes()),
            hours: bits(schedule.hours()),
            days: bits(schedule.days_of_month()),
            months: bits(schedule.months()),
            weekdays: bits(schedule.days_of_week()) >> 1,
            either_day: line.restricts_days && line.restricts_weekdays,
            steps_hours: line.steps_hours,
        }
    }

    /// Whether the line ticks in certain hours, rather than through the day.
    pub(crate) fn has_fixed_hours(&self) -> bool {
        !self.steps_hours && self.hours != ALL_HOURS
    }

    /// The first civil time of the line, not before `from`.
    pub(crate) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut earliest = from.time();
        for _ in 0..DAYS_LOOKED_AT {
            if !has(self.months, date.month()) {
                date = first_of_next_month(date)?;
                earliest = Time::midnight();
                continue;
            }
            if self.has_day(date)
                && let Some(time) = self.first_time_from(earliest)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            earliest = Time::midnight();
        }
        None
    }

    /// Why the line never ticks, if it does not: no month it names has a day it names.
    pub(crate) fn never(&self) -> Option<(String, String)> {
        let first_day = self.days.trailing_zeros();
        let has_it = |month: &u32| self.months & (1 << month) != 0 && first_day <= days_in(*month);
        if self.either_day || (1..=12).any(|month| has_it(&month)) {
            return None;
        }
        let months = || (1..=12).filter(|month| self.months & (1 << month) != 0);
        let names: Vec<&str> = months().map(|month| MONTH_NAMES[month as usize - 1]).collect();
        let last = months().map(days_in).max().unwrap_or(31);
        let names = names.join(" or ");
        Some((
            format!("it never ticks: there is no day {first_day} in {names}"),
            format!("the last day there is {last}"),
        ))
    }

    fn has_day(&self, date: Date) -> bool {
        let in_month = has(self.days, date.day());
        let in_week = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        if self.either_day { in_month || in_week } else { in_month && in_week }
    }

    fn first_time_from(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = first_bit_from(self.seconds, second)
            {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = first_bit_from(self.minutes, minute + 1) {
                return Time::new(hour, minute, first_bit_from(self.seconds, 0)?, 0).ok();
            }
        }
        let hour = first_bit_from(self.hours, hour + 1)?;
        let (minute, second) = (first_bit_from(self.minutes, 0)?, first_bit_from(self.seconds, 0)?);
        Time::new(hour, minute, second, 0).ok()
    }
}

const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn days_in(month: u32) -> u32 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn bits(unit: &impl TimeUnitSpec) -> u64 {
    unit.iter().fold(0, |bits, ordinal| bits | (1 << ordinal))
}

fn has(bits: u64, member: i8) -> bool {
    bits & (1 << member) != 0
}

fn first_bit_from(bits: u64, from: i8) -> Option<i8> {
    let rest = bits & (u64::MAX << from);
    if rest == 0 { None } else { i8::try_from(rest.trailing_zeros()).ok() }
}

fn first_of_next_month(date: Date) -> Option<Date> {
    date.last_of_month().tomorrow().ok()
}
