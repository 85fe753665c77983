//! What commits cost, counted while they happen.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Clock;

/// Upper ends of the classes of commit times, in seconds: from a memory's to a bad disk's.
pub const COMMIT_SECONDS: [f64; 10] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// What commits have cost since the engine was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CommitStats {
    /// How many there were.
    pub commits: u64,
    /// How many requests they answered.
    pub answers: u64,
    /// How long they took together.
    pub lasted: Duration,
    /// How many took at most as long as the end of each class in [`COMMIT_SECONDS`], and longer than the one before.
    pub classes: [u64; COMMIT_SECONDS.len()],
}

#[cfg(feature = "cluster")]
impl CommitStats {
    /// Adds what other commits have cost.
    pub(crate) fn add(&mut self, more: &CommitStats) {
        self.commits += more.commits;
        self.answers += more.answers;
        self.lasted += more.lasted;
        for (class, more) in self.classes.iter_mut().zip(more.classes) {
            *class += more;
        }
    }
}

/// Counts commits; shared between those who commit and those who look.
#[derive(Clone)]
pub(crate) struct CommitMeter {
    clock: Arc<dyn Clock>,
    counted: Arc<CommitCounts>,
}

#[derive(Default)]
struct CommitCounts {
    commits: AtomicU64,
    answers: AtomicU64,
    nanos: AtomicU64,
    classes: [AtomicU64; COMMIT_SECONDS.len()],
}

impl CommitMeter {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> CommitMeter {
        CommitMeter { clock, counted: Arc::default() }
    }

    /// Runs a commit that answers so many requests, and counts it.
    pub(crate) fn measure<T>(&self, answers: usize, commit: impl FnOnce() -> T) -> T {
        let began = self.clock.elapsed();
        let done = commit();
        let lasted = self.clock.elapsed().saturating_sub(began);
        let counted = &self.counted;
        counted.commits.fetch_add(1, Ordering::Relaxed);
        counted.answers.fetch_add(answers as u64, Ordering::Relaxed);
        let nanos = u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX);
        counted.nanos.fetch_add(nanos, Ordering::Relaxed);
        if let Some(class) = COMMIT_SECONDS.iter().position(|end| lasted.as_secs_f64() <= *end) {
            counted.classes[class].fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    pub(crate) fn read(&self) -> CommitStats {
        let counted = &self.counted;
        CommitStats {
            commits: counted.commits.load(Ordering::Relaxed),
            answers: counted.answers.load(Ordering::Relaxed),
            lasted: Duration::from_nanos(counted.nanos.load(Ordering::Relaxed)),
            classes: std::array::from_fn(|class| counted.classes[class].load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ManualClock;

    #[test]
    fn each_commit_is_counted_in_the_class_it_ends_in() {
        let clock = ManualClock::default();
        let meter = CommitMeter::new(Arc::new(clock.clone()));
        meter.measure(3, || clock.advance(Duration::from_millis(2)));
        meter.measure(1, || clock.advance(Duration::from_secs(60)));
        let stats = meter.read();
        assert_eq!((stats.commits, stats.answers, stats.lasted), (2, 4, Duration::from_millis(60_002)));
        assert_eq!(stats.classes, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0], "the second took longer than any class");
    }
}
