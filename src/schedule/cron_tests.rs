//! A cron line ticks when it says, in every night and every zone.

use proptest::prelude::*;

use crate::clock::Timestamp;
use crate::schedule::cron::Cron;
use crate::schedule::cron::time_zones;

fn cron(line: &str, zone: &str) -> Cron {
    Cron::parse(line, zone).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    Timestamp::from_millis(u64::try_from(instant.as_millisecond()).unwrap())
}

fn zoned(tick: Timestamp, zone: &str) -> jiff::Zoned {
    let instant = jiff::Timestamp::from_millisecond(i64::try_from(tick.as_millis()).unwrap()).unwrap();
    instant.in_tz(zone).unwrap()
}

/// The ticks in a stretch of time, written with their offset.
fn ticks(line: &str, zone: &str, after: &str, until: &str) -> Vec<String> {
    let ticks = cron(line, zone).ticks_between(at(after), at(until), 10_000);
    ticks.iter().map(|tick| zoned(*tick, zone).strftime("%m-%d %H:%M:%S%:z").to_string()).collect()
}

fn error(line: &str) -> String {
    Cron::parse(line, "UTC").unwrap_err().message
}

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";
const LORD_HOWE: &str = "Australia/Lord_Howe";

#[test]
fn monday_is_1_and_sunday_is_0_and_7() {
    let week = |line| ticks(line, "UTC", "2026-11-01T12:00Z", "2026-11-08T12:00Z");
    assert_eq!(week("0 9 * * 1"), ["11-02 09:00:00+00:00"]);
    assert_eq!(week("0 9 * * MON"), week("0 9 * * 1"));
    for sunday in ["0 9 * * 0", "0 9 * * 7", "0 9 * * sun"] {
        assert_eq!(week(sunday), ["11-08 09:00:00+00:00"], "{sunday}");
    }
    assert_eq!(week("0 9 * * 6-7").len(), 2);
    assert_eq!(week("0 9 * * SAT-SUN").len(), 2);
    assert_eq!(week("0 9 * * 1-5").len(), 5);
    assert_eq!(week("0 9 * * */2").len(), 4); // Sunday, Tuesday, Thursday, Saturday
    assert_eq!(week("0 9 * * 0-7").len(), 7);
}

#[test]
fn six_fields_begin_with_seconds() {
    let found = ticks("*/20 59 23 31 12 *", "UTC", "2026-12-31T23:00Z", "2027-06-01T00:00Z");
    assert_eq!(found, ["12-31 23:59:00+00:00", "12-31 23:59:20+00:00", "12-31 23:59:40+00:00"]);
}

#[test]
fn names_stand_for_lines() {
    let first = |line| ticks(line, "UTC", "2026-11-04T10:30Z", "2027-12-31T00:00Z")[0].clone();
    assert_eq!(first("@hourly"), "11-04 11:00:00+00:00");
    assert_eq!(first("@daily"), "11-05 00:00:00+00:00");
    assert_eq!(first("@weekly"), "11-08 00:00:00+00:00");
    assert_eq!(first("@monthly"), "12-01 00:00:00+00:00");
    assert_eq!(first("@Yearly"), "01-01 00:00:00+00:00");
}

#[test]
fn lists_ranges_and_steps_mean_what_they_say() {
    let day = |line| ticks(line, "UTC", "2026-11-01T23:59Z", "2026-11-02T23:59Z").len();
    assert_eq!(day("*/15 * * * *"), 96);
    assert_eq!(day("5/15 * * * *"), 96);
    assert_eq!(day("0-30/15 8-9 * * *"), 6);
    assert_eq!(day("0,30 8,20 2 nov *"), 4);
    assert_eq!(day("0 0 * JAN-NOV/2 *"), 1);
}

#[test]
fn a_day_of_the_month_or_a_weekday_is_enough_when_both_are_restricted() {
    let november = |line| ticks(line, "UTC", "2026-10-31T23:59Z", "2026-11-30T23:59Z");
    assert_eq!(november("0 0 13 * 5").len(), 4); // the 13th is a Friday itself
    assert_eq!(november("0 0 14 * 5").len(), 5);
    // A field that begins with a star restricts nothing by itself: both have to fit.
    assert_eq!(november("0 0 */2 * 5"), ["11-13 00:00:00+00:00", "11-27 00:00:00+00:00"]);
    assert_eq!(november("0 0 ? * 5").len(), 4);
}

#[test]
fn a_leap_day_comes_every_four_years_but_not_in_2100() {
    let found = cron("0 0 29 2 *", "UTC").ticks_between(at("2095-01-01T00:00Z"), at("2109-01-01T00:00Z"), 9);
    assert_eq!(found, [at("2096-02-29T00:00Z"), at("2104-02-29T00:00Z"), at("2108-02-29T00:00Z")]);
}

#[test]
fn a_year_ends_in_the_zone_of_the_line() {
    let found = cron("59 59 23 31 12 *", "Pacific/Auckland").next_after(at("2026-12-31T10:59:58Z"));
    assert_eq!(found, Some(at("2026-12-31T10:59:59Z")));
    assert_eq!(cron("0 0 1 1 *", BERLIN).next_after(at("2026-12-31T23:00Z")), Some(at("2027-12-31T23:00Z")));
}

#[test]
fn a_fixed_hour_that_is_skipped_ticks_once_at_the_end_of_the_gap() {
    let night = |line| ticks(line, BERLIN, "2027-03-27T12:00Z", "2027-03-28T12:00Z");
    assert_eq!(night("30 2 * * *"), ["03-28 03:00:00+02:00"]);
    assert_eq!(night("*/10 2 * * *"), ["03-28 03:00:00+02:00"]);
    assert_eq!(night("0,30 2,3 * * *"), ["03-28 03:00:00+02:00", "03-28 03:30:00+02:00"]);
    let night = |line| ticks(line, NEW_YORK, "2027-03-13T12:00Z", "2027-03-14T12:00Z");
    assert_eq!(night("15 2 * * *"), ["03-14 03:00:00-04:00"]);
    let night = |line| ticks(line, LORD_HOWE, "2026-10-03T06:00Z", "2026-10-04T06:00Z");
    assert_eq!(night("15 2 * * *"), ["10-04 02:30:00+11:00"]);
    assert_eq!(night("15,30,45 2 * * *"), ["10-04 02:30:00+11:00", "10-04 02:45:00+11:00"]);
}

#[test]
fn a_fixed_hour_that_comes_twice_ticks_in_its_first_pass_only() {
    let night = |line| ticks(line, BERLIN, "2026-10-24T12:00Z", "2026-10-25T12:00Z");
    assert_eq!(night("30 2 * * *"), ["10-25 02:30:00+02:00"]);
    assert_eq!(night("30 2,3 * * *"), ["10-25 02:30:00+02:00", "10-25 03:30:00+01:00"]);
    assert_eq!(night("* * 2 * * *").len(), 3_600);
    let night = |line| ticks(line, NEW_YORK, "2026-10-31T12:00Z", "2026-11-01T12:00Z");
    assert_eq!(night("15 1 * * *"), ["11-01 01:15:00-04:00"]);
    let night = |line| ticks(line, LORD_HOWE, "2027-04-03T06:00Z", "2027-04-04T06:00Z");
    assert_eq!(night("15,45 1 * * *"), ["04-04 01:15:00+11:00", "04-04 01:45:00+11:00"]);
}

#[test]
fn wildcard_hours_run_by_elapsed_time() {
    let hours = |zone, after, until| ticks("0 * * * *", zone, after, until);
    let spring = hours(BERLIN, "2027-03-28T00:00Z", "2027-03-28T02:00Z");
    assert_eq!(spring, ["03-28 03:00:00+02:00", "03-28 04:00:00+02:00"]);
    let autumn = hours(BERLIN, "2026-10-24T23:00Z", "2026-10-25T02:00Z");
    assert_eq!(autumn, ["10-25 02:00:00+02:00", "10-25 02:00:00+01:00", "10-25 03:00:00+01:00"]);
    let autumn = ticks("*/15 * * * *", NEW_YORK, "2026-11-01T03:59Z", "2026-11-02T04:59Z");
    assert_eq!(autumn.len(), 25 * 4);
    let autumn = ticks("30 0-23 * * *", LORD_HOWE, "2027-04-03T14:00Z", "2027-04-03T15:30Z");
    assert_eq!(autumn, ["04-04 01:30:00+11:00", "04-04 01:30:00+10:30"]);
    let spring = ticks("15 */1 * * *", LORD_HOWE, "2026-10-03T14:30Z", "2026-10-03T16:30Z");
    assert_eq!(spring, ["10-04 01:15:00+10:30", "10-04 03:15:00+11:00"]);
}

#[test]
fn a_day_that_a_country_skipped_ticks_when_the_next_begins() {
    let found = ticks("0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00Z", "2012-01-05T00:00Z");
    assert_eq!(found, ["12-31 00:00:00+14:00"]);
}

#[test]
fn a_line_that_never_ticks_says_why() {
    assert_eq!(error("0 0 30 2 *"), "it never ticks: there is no day 30 in February");
    assert_eq!(error("0 0 31 4,6 *"), "it never ticks: there is no day 31 in April or June");
    assert!(Cron::parse("0 0 30 2 MON", "UTC").is_ok());
    assert!(Cron::parse("0 0 30 2-3 *", "UTC").is_ok());
}

#[test]
fn a_mistake_names_its_field_and_its_place() {
    for (line, message, part) in [
        ("60 * * * *", "minute: 60 is not from 0 to 59", 0..2),
        ("0 0 * * 8", "weekday: 8 is not from 0 to 7", 8..9),
        ("0  1,24 * * *", "hour: 24 is not from 0 to 23", 5..7),
        ("0 0 * foo *", "month: `foo` is no month", 6..9),
        ("0 0 * * 5-1", "weekday: the range 5-1 runs backwards", 8..11),
        ("*/0 * * * *", "minute: the step `0` is not a number from 1 to 59", 0..3),
        ("1,,2 * * * *", "minute: `` is no minute", 2..2),
        ("0 0 L * *", "day of month: `L` is no day of month", 4..5),
        ("0 +1 * * *", "hour: `+1` is no hour", 2..4),
        ("0 0 *", "has 3 fields; a cron line has five, or six with seconds first", 0..5),
        ("0 0 0 * * * 2027", "has 7 fields; a cron line has five, or six with seconds first", 0..16),
        ("@dayly", "`@dayly` is not known", 0..6),
    ] {
        let error = Cron::parse(line, "UTC").unwrap_err();
        assert_eq!((error.message.as_str(), error.part), (message, Some(part)), "{line}");
    }
}

#[test]
fn a_time_zone_that_is_not_known_is_an_error_of_its_own() {
    let error = Cron::parse("@daily", "Europe/Berln").unwrap_err();
    assert_eq!((error.message.as_str(), error.part), ("there is no time zone `Europe/Berln`", None));
    assert!(time_zones().iter().any(|zone| zone == BERLIN));
}

#[test]
fn two_lines_are_equal_when_they_tick_alike_by_their_text() {
    assert_eq!(cron("0 2 * * *", "europe/berlin"), cron(" 0 2 * * *", BERLIN));
    assert_ne!(cron("0 2 * * *", BERLIN), cron("0 2 * * *", "UTC"));
}

#[test]
fn the_end_of_time_is_no_tick() {
    assert_eq!(cron("@daily", "UTC").next_after(Timestamp::MAX), None);
    assert_eq!(cron("@daily", "UTC").next_after(at("9999-12-30T00:00Z")), None);
}

/// Elements of a field, by number.
fn field(from: u32, to: u32) -> impl Strategy<Value = String> {
    let element = prop_oneof![
        3 => Just("*".to_owned()),
        1 => (1..=to).prop_map(|step| format!("*/{step}")),
        3 => (from..=to).prop_map(|value| value.to_string()),
        2 => (from..=to, from..=to).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
    ];
    prop::collection::vec(element, 1..3).prop_map(|elements| elements.join(","))
}

/// Hours, now and then all of them without a wildcard.
fn hours() -> impl Strategy<Value = String> {
    prop_oneof![8 => field(0, 23), 1 => Just("0-23".to_owned()), 1 => Just("9-23,0-12".to_owned())]
}

fn lines() -> impl Strategy<Value = String> {
    let fields = (field(0, 59), hours(), field(1, 28), field(1, 12), field(0, 7));
    fields.prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

fn zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["UTC", BERLIN, NEW_YORK, LORD_HOWE, "Asia/Kathmandu", "Africa/Casablanca"])
}

/// Instants from 2020 to 2040, many of them around a change of the clocks.
fn instants() -> impl Strategy<Value = Timestamp> {
    let around = |text: &'static str| {
        let hour_ms = 3_600_000;
        (0..6 * hour_ms).prop_map(move |ms| Timestamp::from_millis(at(text).as_millis() - 3 * hour_ms + ms))
    };
    prop_oneof![
        (1_577_836_800_000_u64..2_208_988_800_000).prop_map(Timestamp::from_millis),
        around("2027-03-28T01:00Z"),
        around("2026-10-25T01:00Z"),
        around("2026-11-01T06:00Z"),
        around("2027-04-03T15:00Z"),
        around("2026-10-03T15:30Z"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn ticks_strictly_increase_and_are_the_same_from_wherever_one_looks(
        line in lines(), zone in zones(), start in instants(), ahead in 0_u64..7_200_000
    ) {
        let cron = cron(&line, zone);
        let mut last = start;
        for _ in 0..20 {
            let Some(tick) = cron.next_after(last) else { break };
            prop_assert!(tick > last, "{tick} is not after {last}");
            // Nothing lies between: whoever looks from in between finds the same tick.
            let between = Timestamp::from_millis((last.as_millis() + ahead).min(tick.as_millis() - 1));
            prop_assert_eq!(cron.next_after(between), Some(tick));
            prop_assert_eq!(cron.last_between(start, tick), Some(tick));
            last = tick;
        }
    }

    #[test]
    fn every_tick_has_a_civil_time_of_its_line_and_no_minute_is_forgotten(
        line in lines(), zone in zones(), start in instants()
    ) {
        let cron = cron(&line, zone);
        let minute_ms = 60_000;
        let from = Timestamp::from_millis(start.as_millis() / minute_ms * minute_ms);
        let until = Timestamp::from_millis(from.as_millis() + 36 * 60 * minute_ms);
        let found = cron.ticks_between(from, until, 10_000);
        let minutes = (from.as_millis() + minute_ms..=until.as_millis()).step_by(60_000);
        let mut expected = minutes.map(Timestamp::from_millis).filter(|minute| fits(&line, &zoned(*minute, zone)));
        if runs_through_the_day(&line) {
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        } else {
            let is_first_pass = |tick: &Timestamp| is_first_pass(&zoned(*tick, zone));
            prop_assert!(expected.all(|tick| found.contains(&tick) == is_first_pass(&tick)));
            for tick in found {
                let is_end_of_gap = zoned(Timestamp::from_millis(tick.as_millis() - 1), zone).offset()
                    != zoned(tick, zone).offset();
                prop_assert!(is_end_of_gap || fits(&line, &zoned(tick, zone)), "{tick}");
            }
        }
    }
}

/// Whether this is the first of the instants that have its civil time.
fn is_first_pass(at: &jiff::Zoned) -> bool {
    at.time_zone().to_ambiguous_timestamp(at.datetime()).earlier().unwrap() == at.timestamp()
}

/// Whether the hours of a line are a wildcard, or all there are (`0-23`, `9-23,0-12`).
fn runs_through_the_day(line: &str) -> bool {
    let hours = line.split(' ').nth(1).unwrap();
    hours.contains('*') || (0..24).all(|hour| is_in(hours, hour, 0, 23))
}

/// Whether a field of numbers, steps and ranges has a value.
fn is_in(field: &str, value: i8, from: i8, to: i8) -> bool {
    field.split(',').any(|element| {
        let (base, step) = element.split_once('/').unwrap_or((element, "1"));
        let (low, high) = match base.split_once('-') {
            Some((low, high)) => (low.parse().unwrap(), high.parse().unwrap()),
            None if base == "*" => (from, to),
            None => (base.parse().unwrap(), base.parse().unwrap()),
        };
        (low..=high).step_by(step.parse().unwrap()).any(|member| member == value)
    })
}

/// Whether a civil time fits a line of numbers: as slow and plain as can be.
fn fits(line: &str, at: &jiff::Zoned) -> bool {
    let fields: Vec<&str> = line.split(' ').collect();
    let weekday = at.weekday().to_sunday_zero_offset();
    let in_month = is_in(fields[2], at.day(), 1, 31);
    let in_week = is_in(fields[4], weekday, 0, 6) || weekday == 0 && is_in(fields[4], 7, 0, 6);
    let either = !fields[2].starts_with('*') && !fields[4].starts_with('*');
    is_in(fields[0], at.minute(), 0, 59)
        && is_in(fields[1], at.hour(), 0, 23)
        && is_in(fields[3], at.month(), 1, 12)
        && if either { in_month || in_week } else { in_month && in_week }
}
