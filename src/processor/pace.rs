//! How many messages are received ahead of free slots.

use std::time::Duration;

use crate::limits;

/// How many messages are received ahead: as many as handlers, by how many of them ended lately, begin within
/// [`AHEAD_FOR`](limits::AHEAD_FOR). Where handlers are slow that is none.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Handlers that have ended since the last receive was answered.
    ended: usize,
    /// When that was, in the clock's elapsed time.
    since: Duration,
    ahead: usize,
}

impl Pace {
    /// How many to receive ahead.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead
    }

    /// Notes that a handler has ended.
    pub(crate) fn note_ended(&mut self) {
        self.ended += 1;
    }

    /// Judges anew, because a receive was answered.
    pub(crate) fn note_answer(&mut self, elapsed: Duration, ahead_max: usize) {
        let (within, lasted) = (limits::AHEAD_FOR, elapsed.saturating_sub(self.since));
        let ended = u32::try_from(self.ended).unwrap_or(u32::MAX);
        // Less than a sixteenth is too short to tell a rate from chance.
        let soon = f64::from(ended) * within.as_secs_f64() / lasted.max(within / 16).as_secs_f64();
        // A receive that brought little says little, unless it lasted.
        let least = if lasted < within { self.ahead / 2 } else { 0 };
        self.ahead = (soon as usize).max(least).min(ahead_max);
        (self.ended, self.since) = (0, elapsed);
    }

    /// Judges that handlers are slow: what was received ahead has waited for too long.
    pub(crate) fn slow_down(&mut self) {
        (self.ended, self.ahead) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after handlers have ended, so many in each of several receives that last equally long.
    fn after(ended: &[usize], each: Duration) -> Pace {
        let (mut pace, mut now) = (Pace::default(), Duration::from_secs(7));
        pace.note_answer(now, limits::AHEAD_MAX);
        for count in ended {
            (0..*count).for_each(|_| pace.note_ended());
            now += each;
            pace.note_answer(now, limits::AHEAD_MAX);
        }
        pace
    }

    #[test]
    fn what_handlers_begin_within_a_tenth_of_a_second_is_received_ahead() {
        assert_eq!(after(&[64], limits::AHEAD_FOR).ahead(), 64);
        assert_eq!(after(&[64], limits::AHEAD_FOR / 2).ahead(), 128);
        assert_eq!(after(&[64], limits::AHEAD_FOR * 4).ahead(), 16);
        assert_eq!(after(&[64], Duration::ZERO).ahead(), 1_024, "and never more");
    }

    #[test]
    fn nothing_is_received_ahead_of_slow_handlers() {
        assert_eq!(after(&[64], Duration::from_secs(60)).ahead(), 0);
        let mut pace = after(&[64], Duration::ZERO);
        pace.slow_down();
        assert_eq!(pace.ahead(), 0);
    }

    #[test]
    fn a_short_receive_that_brought_little_does_not_end_a_quick_pace() {
        let quick = after(&[1_000, 0, 0], Duration::from_millis(1));
        assert_eq!(quick.ahead(), 256);
        assert_eq!(after(&[1_000, 0], limits::AHEAD_FOR).ahead(), 0);
    }
}
