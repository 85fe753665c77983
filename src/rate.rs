//! Rates: how many messages are handed out in a second, a minute or an hour, and how many at once.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::Misuse;
use crate::limits;

/// How many messages are handed out at most in a span of time: written `100/s`, `30/min` or `10/h`.
///
/// It is held by a token bucket on engine time: it holds [`Rate::burst`] messages at most, fills at the rate, and each message
/// that is handed out takes one, every attempt of it anew. When it is empty, hand-out pauses until there is one again. The
/// bucket is memory: after a restart it is full, so that a restart gives at most one burst anew.
///
/// ```
/// let rate: seriatim::queue::Rate = "100/s".parse()?;
/// assert_eq!((rate.messages, rate.burst()), (100, 100));
/// # Ok::<(), seriatim::Misuse>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// How many messages: 1 to 1,000,000.
    pub messages: u32,
    /// In which time.
    pub per: RatePeriod,
    /// How many at once after a pause: 1 to 1,000,000. `None` is what comes in one second, at least 1: a consumer that
    /// stops for less loses nothing of the rate, and nobody gets more than a second's worth at once.
    pub burst: Option<u32>,
}

/// The time of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RatePeriod {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl RatePeriod {
    const fn seconds(self) -> u32 {
        match self {
            RatePeriod::Second => 1,
            RatePeriod::Minute => 60,
            RatePeriod::Hour => 3_600,
        }
    }

    const fn millis(self) -> i64 {
        self.seconds() as i64 * 1_000
    }
}

impl Rate {
    /// So many messages a second.
    pub fn per_second(messages: u32) -> Rate {
        Rate { messages, per: RatePeriod::Second, burst: None }
    }

    /// So many messages a minute.
    pub fn per_minute(messages: u32) -> Rate {
        Rate { messages, per: RatePeriod::Minute, burst: None }
    }

    /// So many messages an hour.
    pub fn per_hour(messages: u32) -> Rate {
        Rate { messages, per: RatePeriod::Hour, burst: None }
    }

    /// How many messages are handed out at once after a pause.
    pub fn burst(self) -> u32 {
        self.burst.unwrap_or((self.messages / self.per.seconds()).max(1))
    }

    /// Checks that it is within its limits.
    ///
    /// # Errors
    /// [`Misuse`] names the field that is not: `rate` or `burst`.
    pub fn check(self) -> Result<(), Misuse> {
        let allowed = 1..=limits::RATE_MAX;
        if !allowed.contains(&self.messages) {
            return Err(Misuse::new("rate", format!("must be 1 to {} messages", limits::RATE_MAX)));
        }
        if !allowed.contains(&self.burst()) {
            return Err(Misuse::new("burst", format!("must be 1 to {} messages", limits::RATE_MAX)));
        }
        Ok(())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = match self.per {
            RatePeriod::Second => "s",
            RatePeriod::Minute => "min",
            RatePeriod::Hour => "h",
        };
        write!(f, "{}/{per}", self.messages)
    }
}

impl FromStr for Rate {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<Rate, Misuse> {
        let wrong = || Misuse::new("rate", format!("{text:?} is not like 100/s, 30/min or 10/h"));
        let (messages, per) = text.split_once('/').ok_or_else(wrong)?;
        let per = match per.trim() {
            "s" => RatePeriod::Second,
            "min" => RatePeriod::Minute,
            "h" => RatePeriod::Hour,
            _ => return Err(wrong()),
        };
        let rate = Rate { messages: messages.trim().parse().map_err(|_| wrong())?, per, burst: None };
        rate.check()?;
        Ok(rate)
    }
}

/// What a rate allows right now: a token bucket in whole numbers, so that nothing is ever rounded away.
///
/// A message is worth as many units as its period has milliseconds, and each millisecond brings as many units as the period has
/// messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    /// Less than zero after messages that are handed out whatever the rate.
    units: i64,
    at: Timestamp,
}

impl Bucket {
    /// A full one.
    pub(crate) fn full(rate: Rate, now: Timestamp) -> Bucket {
        Bucket { rate, units: capacity(rate), at: now }
    }

    /// Lets pass the time up to now, at the rate that holds from now on. What is in it stays, in messages.
    pub(crate) fn advance(&mut self, rate: Rate, now: Timestamp) {
        self.fill(now);
        if rate != self.rate {
            let (before, after) = (i128::from(self.rate.per.millis()), i128::from(rate.per.millis()));
            let units = i128::from(self.units) * after / before;
            self.units = i64::try_from(units).unwrap_or(i64::MIN).min(capacity(rate));
            self.rate = rate;
        }
    }

    fn fill(&mut self, now: Timestamp) {
        let passed_ms = i64::try_from(now.since(self.at).as_millis()).unwrap_or(i64::MAX);
        let brought = passed_ms.saturating_mul(i64::from(self.rate.messages));
        self.units = self.units.saturating_add(brought).min(capacity(self.rate));
        self.at = self.at.max(now);
    }

    /// How many messages can be handed out at once.
    pub(crate) fn messages(&self) -> usize {
        usize::try_from(self.units / self.rate.per.millis()).unwrap_or(0)
    }

    /// Takes one, or owes it.
    pub(crate) fn take(&mut self) {
        self.units = self.units.saturating_sub(self.rate.per.millis());
    }

    /// When there is one again; now or before, when there is.
    pub(crate) fn next_at(&self) -> Timestamp {
        let missing = u64::try_from(self.rate.per.millis().saturating_sub(self.units)).unwrap_or(0);
        let wait_ms = missing.div_ceil(u64::from(self.rate.messages.max(1)));
        self.at + std::time::Duration::from_millis(wait_ms)
    }
}

fn capacity(rate: Rate) -> i64 {
    i64::from(rate.burst()) * rate.per.millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str, burst: u32) -> Rate {
        Rate { burst: Some(burst), ..text.parse().unwrap() }
    }

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// How many messages the bucket grants at each instant.
    fn granted(bucket: &mut Bucket, rate: Rate, instants: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let take = |instant| {
            bucket.advance(rate, at(instant));
            let there = bucket.messages();
            (0..there).for_each(|_| bucket.take());
            there
        };
        instants.into_iter().map(take).collect()
    }

    #[test]
    fn a_rate_is_read_as_it_is_written() {
        for (text, burst) in [("100/s", 100), ("30/min", 1), ("120/min", 2), ("10/h", 1), ("7200/h", 2)] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.to_string().as_str(), rate.burst()), (text, burst));
        }
        for wrong in ["", "100", "0/s", "-1/s", "1/day", "1.5/s", "1000001/s", "/s"] {
            assert_eq!(wrong.parse::<Rate>().unwrap_err().field(), "rate", "{wrong}");
        }
        assert_eq!(Rate { burst: Some(0), ..Rate::per_second(1) }.check().unwrap_err().field(), "burst");
    }

    #[test]
    fn no_more_than_the_rate_and_one_burst_is_given_whenever_somebody_asks() {
        let rate = rate("7/s", 3);
        let mut bucket = Bucket::full(rate, at(0));
        let given: usize = granted(&mut bucket, rate, 0..=60_000).iter().sum();
        assert_eq!(given, 3 + 7 * 60, "and no fraction is lost");
        let mut bucket = Bucket::full(rate, at(0));
        assert_eq!(granted(&mut bucket, rate, [0, 100, 143, 10_000]), [3, 0, 1, 3]);
    }

    #[test]
    fn the_instant_of_the_next_is_the_first_at_which_there_is_one() {
        for text in ["7/s", "1000000/s", "13/min", "1/h"] {
            let rate = rate(text, 1);
            let mut bucket = Bucket::full(rate, at(5));
            bucket.take();
            let next = bucket.next_at();
            let mut just_before = bucket;
            just_before.advance(rate, at(next.as_millis() - 1));
            assert_eq!(just_before.messages(), 0, "{text}");
            bucket.advance(rate, next);
            assert_eq!(bucket.messages(), 1, "{text}");
        }
    }

    #[test]
    fn a_rate_that_changes_keeps_what_is_there_and_what_is_owed() {
        let (slow, fast) = (rate("60/min", 10), rate("10/s", 4));
        let mut bucket = Bucket::full(slow, at(0));
        (0..12).for_each(|_| bucket.take());
        assert_eq!(bucket.next_at(), at(3_000), "two are owed");
        bucket.advance(fast, at(0));
        assert_eq!(bucket.next_at(), at(300));
        let mut bucket = Bucket::full(slow, at(0));
        bucket.advance(fast, at(0));
        assert_eq!(bucket.messages(), 4, "never more than the burst");
    }
}
