//! The engine's two clocks: engine time, which only counts what has passed, and the wall clock, as far as it is believed.
//!
//! Engine time advances with the monotonic clock. What has passed while the engine was closed is known from the wall clock
//! only: at opening engine time advances by what that shows, if it is positive. A wall clock that is set forward by more
//! than a minute is believed once it has shown so for half a minute; until then it goes on as if nobody had set it.
//!
//! Whoever has seen the last entry come, and opens the engine in the place of another, knows what has passed since then from a
//! monotonic clock of its own ([`PassedTime`]): its clocks go on from where the other's were, as if one had been set.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::ClockStep;
use crate::clock::ClockSteps;
use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::NextDue;
use crate::engine::rules::due::shown;
use crate::engine::store::Stamp;
use crate::limits;
use crate::mutex::Mutex;

/// How often both clocks are read until they were read at the same moment.
const READINGS_MAX: usize = 4;

/// By how many milliseconds the two clocks may drift apart before what is shown follows: both are read in whole
/// milliseconds, and what is shown of one instant must not waver.
const SHOWN_WITHIN_MS: u64 = 2;

/// What the operating system's clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    pub(crate) wall: Timestamp,
    pub(crate) elapsed: Duration,
}

impl ClockReading {
    /// Reads both at the same moment: again when the process was held up between them, which would look as if the wall
    /// clock had been set.
    pub(crate) fn of(clock: &dyn Clock) -> ClockReading {
        let mut elapsed = clock.elapsed();
        for _ in 1..READINGS_MAX {
            let (wall, after) = (clock.now(), clock.elapsed());
            if after.saturating_sub(elapsed) < Duration::from_millis(1) {
                return ClockReading { wall, elapsed: after };
            }
            elapsed = after;
        }
        ClockReading { wall: clock.now(), elapsed: clock.elapsed() }
    }

    /// The moment of the reading in whole milliseconds of the monotonic clock.
    fn moment(self) -> u64 {
        whole_millis(self.elapsed)
    }
}

/// A forward step of the wall clock that has not lasted long enough to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    /// Since when it has lasted, in elapsed time.
    since: Duration,
    /// By how much the wall clock has been ahead at least, since then.
    ahead: Duration,
}

/// What is known of the time since a stamp was written, from a clock that nobody sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassedTime {
    /// So much has passed at least.
    pub(crate) least: Duration,
    /// So much at most, if it was known what was there before.
    pub(crate) most: Option<Duration>,
}

/// Both clocks, as they were last read.
pub(crate) struct Clocks {
    last: ClockReading,
    now: ClockInstants,
    doubt: Option<Doubt>,
    steps: ClockSteps,
    shared: Arc<SharedClocks>,
}

impl Clocks {
    /// The clocks of an engine that is opened, which was last stamped so.
    pub(crate) fn open(stamp: Stamp, reading: ClockReading) -> Clocks {
        Clocks::open_after(stamp, PassedTime::default(), reading)
    }

    /// The same, where something is known of the time since the stamp.
    pub(crate) fn open_after(stamp: Stamp, passed: PassedTime, reading: ClockReading) -> Clocks {
        match passed.most {
            Some(most) if stamp.wall != Timestamp::default() => {
                let passed = reading.wall.since(stamp.wall).min(most).max(passed.least);
                Clocks::go_on(stamp, passed, reading)
            }
            _ => Clocks::open_at(stamp, passed.least, reading),
        }
    }

    /// The clocks of an engine that was stamped so long ago, as if they had never stopped.
    fn go_on(stamp: Stamp, passed: Duration, reading: ClockReading) -> Clocks {
        let Stamp { engine, wall, ahead, steps } = stamp;
        let last = ClockReading { wall, elapsed: reading.elapsed.saturating_sub(passed) };
        let believed = Timestamp::default() + wall.since(Timestamp::default() + ahead);
        let doubt = (!ahead.is_zero()).then_some(Doubt { since: last.elapsed, ahead });
        let now = ClockInstants { engine, wall: believed };
        let mut clocks = Clocks { last, now, doubt, steps, shared: Arc::default() };
        clocks.advance(reading);
        clocks
    }

    /// The clocks of an engine of which only the wall clock says how long it was closed, but for so much at least.
    fn open_at(stamp: Stamp, least: Duration, reading: ClockReading) -> Clocks {
        let Stamp { engine, wall, ahead, steps } = stamp;
        // A file that is new, or was stamped without a wall clock: engine time begins as wall time.
        let (engine, ahead) = match wall == Timestamp::default() {
            true => (engine.max(reading.wall), Duration::ZERO),
            false => (engine + reading.wall.since(wall).max(least), ahead),
        };
        let believed = Timestamp::default() + reading.wall.since(Timestamp::default() + ahead);
        let doubt = (!ahead.is_zero()).then_some(Doubt { since: reading.elapsed, ahead });
        let now = ClockInstants { engine, wall: believed };
        let mut clocks = Clocks { last: reading, now, doubt, steps, shared: Arc::default() };
        if wall.since(reading.wall) > limits::CLOCK_STEP {
            (clocks.doubt, clocks.now.wall) = (None, reading.wall);
            clocks.note_step(ClockStep { expected: wall, shown: reading.wall });
        }
        clocks.share();
        clocks
    }

    pub(crate) fn now(&self) -> ClockInstants {
        self.now
    }

    /// What others may know of the clocks.
    pub(crate) fn shared(&self) -> Arc<SharedClocks> {
        self.shared.clone()
    }

    /// What is to be written down with a commit.
    pub(crate) fn stamp(&self) -> Stamp {
        let ahead = self.last.wall.since(self.now.wall);
        let ahead = if self.doubt.is_some() { ahead } else { Duration::ZERO };
        Stamp { engine: self.now.engine, wall: self.last.wall, ahead, steps: self.steps }
    }

    /// What both clocks would show at a reading.
    pub(crate) fn at(&self, reading: ClockReading) -> ClockInstants {
        self.judge(reading).0
    }

    /// Goes on to a reading.
    pub(crate) fn advance(&mut self, reading: ClockReading) {
        let (now, doubt, step) = self.judge(reading);
        (self.last, self.now, self.doubt) = (reading, now, doubt);
        if let Some(step) = step {
            self.note_step(step);
        }
        self.share();
    }

    fn judge(&self, reading: ClockReading) -> (ClockInstants, Option<Doubt>, Option<ClockStep>) {
        let passed = Duration::from_millis(reading.moment().saturating_sub(self.last.moment()));
        let (engine, expected) = (self.now.engine + passed, self.now.wall + passed);
        let ahead = reading.wall.since(expected);
        let believed = |wall| ClockInstants { engine, wall };
        if ahead <= limits::CLOCK_STEP {
            // A step that is taken back is one of its own.
            let before = expected + self.doubt.map_or(Duration::ZERO, |doubt| doubt.ahead);
            let is_step = before.since(reading.wall) > limits::CLOCK_STEP;
            let step = is_step.then_some(ClockStep { expected: before, shown: reading.wall });
            return (believed(reading.wall), None, step);
        }
        let Some(doubt) = self.doubt else {
            let step = ClockStep { expected, shown: reading.wall };
            return (believed(expected), Some(Doubt { since: reading.elapsed, ahead }), Some(step));
        };
        let doubt = Doubt { ahead: doubt.ahead.min(ahead), ..doubt };
        if reading.elapsed.saturating_sub(doubt.since) < limits::CLOCK_STEP_LASTS {
            return (believed(expected), Some(doubt), None);
        }
        // What it has shown all the time is believed; if it has been set again meanwhile, the rest is a step of its own.
        let left = ahead - doubt.ahead;
        match left <= limits::CLOCK_STEP {
            true => (believed(reading.wall), None, None),
            false => {
                let wall = expected + doubt.ahead;
                let step = ClockStep { expected: wall, shown: reading.wall };
                (believed(wall), Some(Doubt { since: reading.elapsed, ahead: left }), Some(step))
            }
        }
    }

    fn note_step(&mut self, step: ClockStep) {
        tracing::warn!(%step, "the wall clock was set");
        let count = if step.is_forward() { &mut self.steps.forward } else { &mut self.steps.back };
        *count += 1;
        self.steps.last = Some(step);
    }

    /// How long until something is due, or a step of the clock would be believed with which something could be.
    pub(crate) fn until(&self, next: NextDue, reading: ClockReading) -> Option<Duration> {
        let (now, doubt, _) = self.judge(reading);
        let until = |due: Due| due.at().since(due.clock(now));
        let believed = doubt.filter(|_| next.wall.is_some()).map(|doubt| {
            let lasted = reading.elapsed.saturating_sub(doubt.since);
            limits::CLOCK_STEP_LASTS.saturating_sub(lasted)
        });
        [next.engine.map(until), next.wall.map(until), believed].into_iter().flatten().min()
    }

    fn share(&self) {
        let of = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        let wall = of(self.now.wall.as_millis());
        self.shared.wall_less_elapsed.store(wall - of(self.last.moment()), Ordering::Relaxed);
        let engine = of(self.now.engine.as_millis());
        self.shared.engine_less_elapsed.store(engine - of(self.last.moment()), Ordering::Relaxed);
        let less = wall - engine;
        if less.abs_diff(self.shared.wall_less_engine.load(Ordering::Relaxed)) > SHOWN_WITHIN_MS {
            self.shared.wall_less_engine.store(less, Ordering::Relaxed);
        }
        let mut steps = self.shared.steps.lock();
        if *steps != self.steps {
            *steps = self.steps;
        }
    }
}

/// What the engine's clients know of its clocks.
#[derive(Default)]
pub(crate) struct SharedClocks {
    wall_less_elapsed: AtomicI64,
    /// Does not change while the engine is open: engine time goes on as elapsed time does.
    engine_less_elapsed: AtomicI64,
    wall_less_engine: AtomicI64,
    steps: Mutex<ClockSteps>,
}

impl SharedClocks {
    /// The wall clock as far as it is believed, which goes on from the last turn.
    pub(crate) fn wall(&self, elapsed: Duration) -> Timestamp {
        let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        let wall = elapsed.saturating_add(self.wall_less_elapsed.load(Ordering::Relaxed));
        Timestamp::from_millis(u64::try_from(wall).unwrap_or(0))
    }

    /// Engine time.
    #[cfg(feature = "cluster")]
    pub(crate) fn engine(&self, elapsed: Duration) -> Timestamp {
        let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        let engine = elapsed.saturating_add(self.engine_less_elapsed.load(Ordering::Relaxed));
        Timestamp::from_millis(u64::try_from(engine).unwrap_or(0))
    }

    /// An instant of engine time, since the engine was opened, in the clock's elapsed time.
    pub(crate) fn elapsed_at(&self, at: Timestamp) -> Duration {
        let at = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        let elapsed = at.saturating_sub(self.engine_less_elapsed.load(Ordering::Relaxed));
        Duration::from_millis(u64::try_from(elapsed).unwrap_or(0))
    }

    /// An instant of engine time by the wall clock, if nobody sets it until then.
    pub(crate) fn shown(&self, at: Timestamp) -> Timestamp {
        let less = self.wall_less_engine.load(Ordering::Relaxed);
        let wall = Timestamp::from_millis(less.max(0).unsigned_abs());
        shown(at, ClockInstants { engine: Timestamp::from_millis((-less).max(0).unsigned_abs()), wall })
    }

    pub(crate) fn steps(&self) -> ClockSteps {
        *self.steps.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1000;
    const START: u64 = 1_000_000_000;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn reading(wall: u64, elapsed: u64) -> ClockReading {
        ClockReading { wall: at(wall), elapsed: Duration::from_millis(elapsed) }
    }

    fn clocks() -> Clocks {
        Clocks::open(Stamp::default(), reading(START, 0))
    }

    /// Engine and wall time, less what they began with.
    fn shows(clocks: &Clocks) -> (u64, u64) {
        let ClockInstants { engine, wall } = clocks.now();
        (engine.as_millis() - START, wall.as_millis() - START)
    }

    #[test]
    fn a_step_forward_and_back_changes_neither_clock() {
        let mut clocks = clocks();
        clocks.advance(reading(START + DAY + 100, 100));
        assert_eq!(shows(&clocks), (100, 100));
        clocks.advance(reading(START + DAY + 1_800, 1_800));
        assert_eq!(shows(&clocks), (1_800, 1_800));
        clocks.advance(reading(START + 2_000, 2_000));
        assert_eq!(shows(&clocks), (2_000, 2_000));
        let steps = clocks.shared().steps();
        assert_eq!((steps.forward, steps.back), (1, 1));
    }

    #[test]
    fn a_step_forward_is_believed_once_it_has_lasted() {
        let mut clocks = clocks();
        clocks.advance(reading(START + DAY, 0));
        clocks.advance(reading(START + DAY + 29_999, 29_999));
        assert_eq!(shows(&clocks), (29_999, 29_999));
        clocks.advance(reading(START + DAY + 30_000, 30_000));
        assert_eq!(shows(&clocks), (30_000, DAY + 30_000));
        assert_eq!(clocks.shared().steps().forward, 1);
    }

    #[test]
    fn only_what_a_step_has_shown_all_the_time_is_believed() {
        let mut clocks = clocks();
        clocks.advance(reading(START + DAY, 0));
        clocks.advance(reading(START + DAY / 2 + 1_000, 1_000));
        clocks.advance(reading(START + DAY + 30_000, 30_000));
        assert_eq!(shows(&clocks), (30_000, DAY / 2 + 30_000));
        clocks.advance(reading(START + DAY + 60_000, 60_000));
        assert_eq!(shows(&clocks), (60_000, DAY + 60_000));
    }

    #[test]
    fn a_step_back_counts_at_once_and_engine_time_goes_on() {
        let mut clocks = clocks();
        clocks.advance(reading(START + 1_000 - DAY / 2, 1_000));
        assert_eq!(
            clocks.now(),
            ClockInstants { engine: at(START + 1_000), wall: at(START + 1_000 - DAY / 2) }
        );
        assert_eq!(clocks.shared().steps().back, 1);
        assert_eq!(clocks.shared().shown(at(START + 1_500)), at(START + 1_500 - DAY / 2));
        assert_eq!(clocks.shared().wall(Duration::from_millis(1_700)), at(START + 1_700 - DAY / 2));
    }

    #[test]
    fn what_passed_while_it_was_closed_is_added_if_it_is_positive() {
        let mut before = clocks();
        before.advance(reading(START + DAY + 1_000, 1_000));
        let opened = |wall| Clocks::open(before.stamp(), reading(wall, 7));
        assert_eq!(shows(&opened(START + DAY + 3_000)), (3_000, 3_000), "the step is still in doubt");
        assert_eq!(shows(&opened(START + 3_000)), (1_000, 3_000), "the step was taken back");
        let mut opened = opened(START + DAY + 3_000);
        opened.advance(reading(START + DAY + 3_500, 507));
        assert_eq!(shows(&opened), (3_500, 3_500));
        opened.advance(reading(START + DAY + 33_000, 30_007));
        assert_eq!(shows(&opened), (33_000, DAY + 33_000));
    }

    #[test]
    fn what_passed_until_another_takes_over_is_counted_by_a_clock_that_nobody_sets() {
        let mut owner = clocks();
        owner.advance(reading(START + 1_000, 1_000));
        let passed = |least, most| PassedTime {
            least: Duration::from_millis(least),
            most: Some(Duration::from_millis(most)),
        };
        let opened = |wall, passed| Clocks::open_after(owner.stamp(), passed, reading(wall, DAY));
        let mut fast = opened(START + DAY, passed(500, 900));
        assert_eq!(
            shows(&fast),
            (1_900, 1_900),
            "a clock that is ahead shows no more than what can have passed"
        );
        assert_eq!(fast.shared().steps().forward, 1);
        assert_eq!(fast.stamp().wall, at(START + DAY), "it is written down as it was read");
        fast.advance(reading(START + DAY + 30_000, DAY + 30_000));
        assert_eq!(shows(&fast), (31_900, DAY + 30_000), "a step that has lasted is believed");
        let slow = opened(START - DAY / 2, passed(500, 900));
        assert_eq!(slow.now().engine, at(START + 1_500), "what has passed for certain is counted");
        assert_eq!((slow.now().wall, slow.shared().steps().back), (at(START - DAY / 2), 1));
        assert_eq!(
            shows(&opened(START + 1_700, passed(500, 900))),
            (1_700, 1_700),
            "in between it is believed"
        );
        assert_eq!(opened(START + 1_700, passed(500, 900)).shared().steps(), ClockSteps::default());
    }

    #[test]
    fn a_step_that_was_in_doubt_goes_on_or_is_taken_back_with_another_owner() {
        let mut owner = clocks();
        owner.advance(reading(START + DAY, 0));
        let passed = PassedTime { least: Duration::from_secs(1), most: Some(Duration::from_secs(1)) };
        let right = Clocks::open_after(owner.stamp(), passed, reading(START + 1_000, DAY));
        assert_eq!((shows(&right), right.shared().steps().back), ((1_000, 1_000), 1));
        let mut fast = Clocks::open_after(owner.stamp(), passed, reading(START + DAY + 1_000, DAY));
        assert_eq!((shows(&fast), fast.shared().steps().forward), ((1_000, 1_000), 1));
        fast.advance(reading(START + DAY + 30_000, DAY + 29_000));
        assert_eq!(shows(&fast), (30_000, DAY + 30_000), "it has lasted since the first noticed it");
    }

    #[test]
    fn where_nobody_has_seen_what_was_before_the_wall_clock_says_what_has_passed() {
        let mut owner = clocks();
        owner.advance(reading(START + 1_000, 1_000));
        let passed = PassedTime { least: Duration::from_secs(5), most: None };
        let opened = |wall| Clocks::open_after(owner.stamp(), passed, reading(wall, 9_000));
        assert_eq!(shows(&opened(START + DAY)), (DAY, DAY));
        assert_eq!(shows(&opened(START + 1_500)), (6_000, 1_500), "but for what has passed for certain");
    }

    #[test]
    fn the_loop_looks_again_when_a_step_may_be_believed() {
        let mut clocks = clocks();
        clocks.advance(reading(START + DAY, 0));
        let next = NextDue { engine: None, wall: Some(Due::wall(at(START + DAY))) };
        let until = clocks.until(next, reading(START + DAY + 10_000, 10_000));
        assert_eq!(until, Some(Duration::from_secs(20)));
    }
}
