//! The text of a cron line: what a person writes, turned into what the `cron` crate reads.
//!
//! The crate reads six fields, counts weekdays from 1 for Sunday, and says little about a mistake. Here a line may have
//! five fields, weekdays count as everywhere else (0 and 7 are Sunday), and a mistake names its field.

use std::ops::Range;
use std::str::FromStr;

use cron::Schedule;
use thiserror::Error;

/// What is wrong with a cron line or its time zone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CronError {
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The part of the line that is wrong, in bytes, and all of it when the mistake is no single part's; `None` when it
    /// is the time zone that is wrong.
    pub part: Option<Range<usize>>,
}

/// One field of a line: its name, its range, and the names its values have.
struct Field {
    name: &'static str,
    from: u32,
    to: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const SECOND: Field = Field { name: "second", from: 0, to: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", from: 0, to: 59, names: &[] };
const HOUR: Field = Field { name: "hour", from: 0, to: 23, names: &[] };
const DAY: Field = Field { name: "day of month", from: 1, to: 31, names: &[] };
const MONTH: Field = Field { name: "month", from: 1, to: 12, names: MONTHS };
const WEEKDAY: Field = Field { name: "weekday", from: 0, to: 7, names: WEEKDAYS };

const WITH_SECONDS: [&Field; 6] = [&SECOND, &MINUTE, &HOUR, &DAY, &MONTH, &WEEKDAY];

/// Lines that have a name of their own.
const NAMED: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A line whose fields are well formed.
pub(crate) struct CronLine {
    /// What the crate made of it.
    pub(crate) schedule: Schedule,
    /// Whether the days of the month are restricted: they do not begin with `*` or `?`.
    pub(crate) restricts_days: bool,
    /// Whether the weekdays are restricted.
    pub(crate) restricts_weekdays: bool,
    /// Whether the hours are written as a wildcard or with a step.
    pub(crate) steps_hours: bool,
}

impl CronLine {
    /// Reads a line of five or six fields, or a name such as `@daily`.
    pub(crate) fn parse(text: &str) -> Result<CronLine, CronError> {
        let fields = match text.trim().starts_with('@') {
            true => named(text)?.split_whitespace().map(|field| (field, 0..text.len())).collect(),
            false => words(text),
        };
        let fields = match fields.len() {
            5 => [("0", 0..0)].into_iter().chain(fields).collect(),
            6 => fields,
            number => return Err(wrong_number(text, number)),
        };
        let mut canonical = Vec::new();
        for (field, (written, at)) in WITH_SECONDS.iter().zip(&fields) {
            canonical.push(field.canonical(written, at.start)?);
        }
        let schedule = Schedule::from_str(&canonical.join(" ")).map_err(|error| CronError {
            message: format!("cannot be read as a cron line: {error}"),
            help: None,
            part: Some(0..text.len()),
        })?;
        let is_open = |index: usize| fields[index].0.starts_with(['*', '?']);
        Ok(CronLine {
            schedule,
            restricts_days: !is_open(3),
            restricts_weekdays: !is_open(5),
            steps_hours: fields[2].0.contains(['*', '/']),
        })
    }
}

/// The words of a line, each with its place.
fn words(text: &str) -> Vec<(&str, Range<usize>)> {
    let words = text.split_whitespace();
    words
        .map(|word| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            (word, start..start + word.len())
        })
        .collect()
}

fn named(text: &str) -> Result<&'static str, CronError> {
    let name = text.trim();
    if let Some((_, line)) = NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Ok(line);
    }
    let help = match name.split_whitespace().next() {
        Some("@every") => "write a step: `*/5 * * * *` is every five minutes".to_owned(),
        Some("@reboot") => "a schedule ticks by time only; send a message when you start".to_owned(),
        _ => format!("known are {}", known_names()),
    };
    Err(CronError { message: format!("`{name}` is not known"), help: Some(help), part: Some(0..text.len()) })
}

fn wrong_number(text: &str, number: usize) -> CronError {
    let help = match number {
        7 => "years cannot be written; leave the seventh field out",
        _ => "write minute, hour, day of month, month, weekday; before them the second, if you like",
    };
    CronError {
        message: format!("has {number} fields; a cron line has five, or six with seconds first"),
        help: Some(help.to_owned()),
        part: Some(0..text.len()),
    }
}

impl Field {
    /// The field in the crate's words: numbers only, weekdays counted from 1.
    fn canonical(&self, written: &str, start: usize) -> Result<String, CronError> {
        let mut elements = Vec::new();
        let mut at = start;
        for element in written.split(',') {
            let problem = |(message, help): (String, Option<String>)| CronError {
                message: format!("{}: {message}", self.name),
                help,
                part: Some(at..at + element.len()),
            };
            elements.push(self.element(element).map_err(problem)?);
            at += element.len() + 1;
        }
        Ok(elements.join(","))
    }

    fn element(&self, written: &str) -> Result<String, (String, Option<String>)> {
        let (base, step) = match written.split_once('/') {
            Some((base, step)) => (base, Some(self.step(step)?)),
            None => (written, None),
        };
        let is_wildcard = base == "*" || (base == "?" && matches!(self.name, "day of month" | "weekday"));
        let (from, to) = match base.split_once('-') {
            _ if is_wildcard && step.is_none() => return Ok("*".to_owned()),
            _ if is_wildcard && self.is_weekday() => (0, 6),
            _ if is_wildcard => (self.from, self.to),
            Some((from, to)) => self.range(from, to)?,
            // A start with a step runs to the end of the field, as in many crons.
            None if step.is_some() => (self.value(base)?, self.to),
            None => (self.value(base)?, self.value(base)?),
        };
        let step = step.unwrap_or(1);
        if self.is_weekday() {
            let days = (from..=to).step_by(step as usize);
            return Ok(days.map(|day| (day % 7 + 1).to_string()).collect::<Vec<_>>().join(","));
        }
        Ok(if step == 1 && from == to { from.to_string() } else { format!("{from}-{to}/{step}") })
    }

    fn is_weekday(&self) -> bool {
        self.name == WEEKDAY.name
    }

    fn range(&self, from: &str, to: &str) -> Result<(u32, u32), (String, Option<String>)> {
        let (first, mut last) = (self.value(from)?, self.value(to)?);
        // Sunday ends a week as well as it begins one.
        if self.is_weekday() && last == 0 && first > 0 {
            last = 7;
        }
        if first > last {
            let help = format!("write two ranges: `{from}-{},{}-{to}`", self.to, self.from);
            return Err((format!("the range {from}-{to} runs backwards"), Some(help)));
        }
        Ok((first, last))
    }

    fn step(&self, written: &str) -> Result<u32, (String, Option<String>)> {
        match written.parse::<u32>() {
            Ok(step) if (1..=self.to).contains(&step) && is_number(written) => Ok(step),
            _ => Err((format!("the step `{written}` is not a number from 1 to {}", self.to), None)),
        }
    }

    fn value(&self, written: &str) -> Result<u32, (String, Option<String>)> {
        let name = written.to_ascii_lowercase();
        if let Some(index) = self.names.iter().position(|known| *known == name) {
            return Ok(u32::try_from(index).unwrap_or(0) + self.from);
        }
        match written.parse::<u32>() {
            Ok(value) if (self.from..=self.to).contains(&value) && is_number(written) => Ok(value),
            Ok(value) if is_number(written) => {
                Err((format!("{value} is not from {} to {}", self.from, self.to), None))
            }
            _ => Err((format!("`{written}` is no {}", self.name), self.help())),
        }
    }

    fn help(&self) -> Option<String> {
        let names = match self.names {
            [] => String::new(),
            [first, .., last] => format!(", or {} to {}", first.to_uppercase(), last.to_uppercase()),
            [only] => format!(", or {}", only.to_uppercase()),
        };
        Some(format!("write numbers from {} to {}{names}; `*`, `a-b`, `a,b` and `*/n`", self.from, self.to))
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn known_names() -> String {
    NAMED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
