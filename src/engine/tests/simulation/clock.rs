//! The clock of a simulation: it likes to show the instant at which something is due, or the one before or after.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::clocks::ClockReading;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::tests::crash::random::Random;
use crate::limits;

/// When a simulation begins.
const START: Timestamp = Timestamp::from_millis(1_000_000_000_000);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The clocks.
pub(crate) struct Clock {
    pub(crate) at: ClockReading,
    /// A step forward that will be taken back.
    glitch: Option<u64>,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock { at: ClockReading { wall: START, elapsed: Duration::ZERO }, glitch: None }
    }

    /// Moves the clocks, or not; `due` is what is due next by the engine's clocks, which show `now`.
    pub(crate) fn advance(&mut self, random: &mut Random, now: ClockInstants, due: &[Due]) {
        if let Some(glitch) = self.glitch
            && random.chance(30)
        {
            self.set_back(glitch);
            self.glitch = None;
        }
        match random.below(1000) {
            0..400 => {}
            400..640 if !due.is_empty() => {
                let due = random.pick(due);
                let left = due.at().since(due.clock(now)).as_millis();
                let left = u64::try_from(left).unwrap_or(0);
                self.pass((left + random.pick(&[0, 1, 1, 1, 2])).saturating_sub(1));
            }
            400..975 => self.pass(random.pick(&[1, 1, 2, 50, 400, 999, 1_000, 1_001, 3_000])),
            975..982 => self.pass(random.pick(&[29_999, 30_000, 60_000, DAY_MS, DAY_MS / 2])),
            982..988 => self.set_back(random.pick(&[1, 1_000, 60_000, 3_600_000, DAY_MS])),
            988..994 => {
                let glitch = random.pick(&[60_001, 3_600_000, DAY_MS]);
                self.set_forward(glitch);
                self.glitch = Some(glitch);
            }
            // The machine slept: the wall clock has gone on, the other one has not.
            _ => self.set_forward(random.pick(&[1_000, 30_000, 60_000, 60_001, DAY_MS])),
        }
    }

    /// The process is gone for a while, in which somebody may set the wall clock.
    pub(crate) fn pass_closed(&mut self, random: &mut Random) {
        match random.below(10) {
            0..6 => {}
            6 => self.set_back(random.pick(&[1_000, 3_600_000, DAY_MS])),
            _ => self.set_forward(random.pick(&[1, 1_000, 60_001, DAY_MS])),
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, millis: u64) {
        self.at.wall = self.at.wall + Duration::from_millis(millis);
        self.at.elapsed += Duration::from_millis(millis);
    }

    fn set_forward(&mut self, millis: u64) {
        self.at.wall = self.at.wall + Duration::from_millis(millis);
    }

    fn set_back(&mut self, millis: u64) {
        self.at.wall = Timestamp::from_millis(self.at.wall.as_millis().saturating_sub(millis));
    }
}

/// What the clocks have shown to one process, turn by turn.
pub(crate) struct Shown {
    readings: Vec<ClockReading>,
    /// Readings since the wall clock was last set, each half a minute or more after the one before; and the last of them.
    steady: (usize, Duration),
}

impl Shown {
    pub(crate) fn new(first: ClockReading) -> Shown {
        Shown { readings: vec![first], steady: (1, first.elapsed) }
    }

    pub(crate) fn add(&mut self, reading: ClockReading) {
        let before = self.last();
        let passed = reading.elapsed.saturating_sub(before.elapsed);
        if reading.wall != before.wall + passed {
            self.steady = (1, reading.elapsed);
        } else if reading.elapsed.saturating_sub(self.steady.1) >= limits::CLOCK_STEP_LASTS {
            self.steady = (self.steady.0 + 1, reading.elapsed);
        }
        self.readings.push(reading);
    }

    fn last(&self) -> ClockReading {
        *self.readings.last().expect("a process reads its clocks when it begins")
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.last().elapsed
    }

    pub(crate) fn wall(&self) -> Timestamp {
        self.last().wall
    }

    /// How much time has passed since the reading before the last.
    pub(crate) fn passed(&self) -> Duration {
        let before = self.readings.iter().rev().nth(1).map_or(self.elapsed(), |before| before.elapsed);
        self.elapsed().saturating_sub(before)
    }

    /// Whether nobody has set the wall clock for so long that every step of it has lasted.
    pub(crate) fn is_steady(&self) -> bool {
        self.steady.0 > 2
    }

    /// The most that may be believed: no reading of the last half a minute is left behind by more than one small step for
    /// each reading since.
    pub(crate) fn believable(&self) -> Timestamp {
        let mut most = self.wall();
        let mut drift = Duration::ZERO;
        for reading in self.readings.iter().rev() {
            let passed = self.elapsed().saturating_sub(reading.elapsed);
            if passed >= limits::CLOCK_STEP_LASTS {
                break;
            }
            most = most.min(reading.wall + passed + drift);
            drift += limits::CLOCK_STEP;
        }
        most
    }
}
