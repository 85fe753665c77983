//! The clock of a simulation: it likes to show the instant at which something is due, or the one before or after.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::crash::random::Random;

/// When a simulation begins.
const START: Timestamp = Timestamp::from_millis(1_000_000_000);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What both clocks of a machine show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instant {
    pub(crate) wall: Timestamp,
    pub(crate) elapsed: Duration,
}

/// The clocks.
pub(crate) struct Clock {
    pub(crate) at: Instant,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock { at: Instant { wall: START, elapsed: Duration::ZERO } }
    }

    /// Moves the clocks, or not; `due` is when something is due next in the engine's time `now`.
    pub(crate) fn advance(&mut self, random: &mut Random, now: Timestamp, due: &[Timestamp]) {
        match random.below(1000) {
            0..400 => {}
            400..640 if !due.is_empty() => {
                let due = random.pick(due).as_millis();
                self.go(due.saturating_sub(1) + random.pick(&[0, 1, 1, 1, 2]), now);
            }
            400..985 => self.pass(random.pick(&[1, 1, 2, 50, 400, 999, 1_000, 1_001, 3_000])),
            985..992 => self.pass(random.pick(&[60_000, DAY_MS, DAY_MS / 2])),
            992..997 => self.step_back(random.pick(&[1, 1_000, 60_000, 3_600_000])),
            // The machine slept: the wall clock has gone on, the other one has not.
            _ => self.at.wall = self.at.wall + Duration::from_millis(random.pick(&[1_000, 30_000, DAY_MS])),
        }
    }

    /// Lets time pass until the engine's time is `target`; never back.
    pub(crate) fn go(&mut self, target: u64, now: Timestamp) {
        let from = self.at.wall.max(now).as_millis();
        if target > from {
            let behind = now.since(self.at.wall).as_millis();
            self.pass(target - from + u64::try_from(behind).unwrap_or(0));
        }
    }

    fn pass(&mut self, millis: u64) {
        self.at.wall = self.at.wall + Duration::from_millis(millis);
        self.at.elapsed += Duration::from_millis(millis);
    }

    /// Somebody corrects the wall clock.
    fn step_back(&mut self, millis: u64) {
        self.at.wall = Timestamp::from_millis(self.at.wall.as_millis() - millis);
    }
}
