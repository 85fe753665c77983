//! What becomes of ticks that passed while nobody looked.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::limits;
use crate::schedule::cron::Cron;

/// What becomes of the ticks that a schedule missed, because the daemon was down or busy.
///
/// A tick is missed when it is more than a minute late. Of several that are less late, the latest is sent, or all with `all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedTicks {
    /// They are not sent.
    Skip,
    /// One is sent for all of them: the latest, and none if a tick that is not missed is due as well.
    #[default]
    Once,
    /// All are sent, the earliest first.
    All,
}

/// What a schedule has to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTicks {
    /// Nominal instants to send, the earliest first.
    pub ticks: Vec<Timestamp>,
    /// What to remember as handled once these are sent; the next question begins there.
    pub handled_through: Timestamp,
    /// Whether more is due already, because there are more ticks than were asked for.
    pub is_more: bool,
}

impl MissedTicks {
    /// The ticks to send at `now`, at most `limit`, when everything through `handled_through` has been handled.
    ///
    /// Whoever starts a schedule for the first time has handled everything through its start. When the clock has stepped
    /// back before what was handled, nothing is due: who wants to go on begins anew.
    pub fn due(self, cron: &Cron, handled_through: Timestamp, now: Timestamp, limit: usize) -> DueTicks {
        let grace = whole_millis(limits::TICK_GRACE);
        let grace_began = Timestamp::from_millis(now.as_millis().saturating_sub(grace));
        let from = match self {
            MissedTicks::All => handled_through,
            MissedTicks::Skip | MissedTicks::Once => handled_through.max(grace_began),
        };
        let mut ticks = match self {
            MissedTicks::All => cron.ticks_between(from, now, limit.saturating_add(1)),
            // Of several that are due at once the latest stands for all: the others were missed.
            MissedTicks::Skip | MissedTicks::Once => cron.last_between(from, now).into_iter().collect(),
        };
        let is_more = ticks.len() > limit;
        ticks.truncate(limit);
        if ticks.is_empty() && self == MissedTicks::Once && limit > 0 {
            ticks.extend(cron.last_between(handled_through, from));
        }
        let last = ticks.last().copied();
        let handled_through = match is_more {
            true => last.unwrap_or(handled_through),
            false => handled_through.max(now),
        };
        DueTicks { ticks, handled_through, is_more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hourly() -> Cron {
        Cron::parse("@hourly", "UTC").unwrap()
    }

    const HOUR_MS: u64 = 3_600_000;

    fn hours(hours: f64) -> Timestamp {
        Timestamp::from_millis((hours * HOUR_MS as f64) as u64)
    }

    fn due(missed: MissedTicks, handled_through: f64, now: f64) -> Vec<u64> {
        let due = missed.due(&hourly(), hours(handled_through), hours(now), 100);
        assert!(!due.is_more);
        assert_eq!(due.handled_through, hours(now.max(handled_through)));
        due.ticks.iter().map(|tick| tick.as_millis() / HOUR_MS).collect()
    }

    #[test]
    fn a_tick_that_is_hardly_late_is_sent_whatever_the_policy() {
        for missed in [MissedTicks::Skip, MissedTicks::Once, MissedTicks::All] {
            assert_eq!(due(missed, 9.0, 10.0), [10]);
            assert_eq!(due(missed, 9.5, 10.01), [10]);
            assert_eq!(due(missed, 9.5, 9.9), [0; 0]);
            assert_eq!(due(missed, 10.0, 10.01), [0; 0]);
        }
    }

    #[test]
    fn missed_ticks_are_skipped_joined_or_all_sent() {
        assert_eq!(due(MissedTicks::Skip, 6.0, 10.5), [0; 0]);
        assert_eq!(due(MissedTicks::Once, 6.0, 10.5), [10]);
        assert_eq!(due(MissedTicks::All, 6.0, 10.5), [7, 8, 9, 10]);
    }

    #[test]
    fn what_is_on_time_stands_for_what_was_missed() {
        assert_eq!(due(MissedTicks::Skip, 6.0, 10.0), [10]);
        assert_eq!(due(MissedTicks::Once, 6.0, 10.0), [10]);
        assert_eq!(due(MissedTicks::All, 6.0, 10.0), [7, 8, 9, 10]);
    }

    #[test]
    fn a_clock_that_stepped_back_makes_nothing_due() {
        for missed in [MissedTicks::Skip, MissedTicks::Once, MissedTicks::All] {
            assert_eq!(due(missed, 10.0, 8.0), [0; 0]);
        }
    }

    #[test]
    fn all_missed_ticks_come_in_portions() {
        let mut handled_through = hours(1.0);
        let mut sent = Vec::new();
        for portion in 1.. {
            let due = MissedTicks::All.due(&hourly(), handled_through, hours(8.5), 3);
            sent.extend(due.ticks.iter().map(|tick| tick.as_millis() / HOUR_MS));
            handled_through = due.handled_through;
            if !due.is_more {
                assert_eq!(portion, 3);
                break;
            }
        }
        assert_eq!(sent, [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(handled_through, hours(8.5));
    }

    #[test]
    fn a_long_absence_is_joined_as_fast_as_a_short_one() {
        let every_second = Cron::parse("* * * * * *", "UTC").unwrap();
        let now = Timestamp::from_millis(4_000_000_000_000);
        let absent = Cron::parse("0 0 0 1 1 *", "UTC").unwrap();
        let due = MissedTicks::Once.due(&every_second, Timestamp::default(), now, 10);
        assert_eq!(due.ticks, [now]);
        let due = MissedTicks::All.due(&every_second, Timestamp::default(), now, 10);
        assert_eq!(due.ticks.len(), 10);
        let due = MissedTicks::Once.due(&absent, Timestamp::default(), now, 10);
        assert_eq!(due.ticks.len(), 1);
    }
}
