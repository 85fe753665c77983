//! For tests of ordered code: a clock that is moved by hand, and an engine in memory that reads it. No sleeping.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::OpenError;

/// A clock that stands still until it is moved. Clones show the same time.
///
/// An engine that reads it does what has become due before it answers the next request, so that a test that moves
/// the clock and then asks sees everything that was due.
#[derive(Clone, Default)]
pub struct ManualClock {
    shared: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    now: Timestamp,
    elapsed: Duration,
    wakers: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl ManualClock {
    /// A clock that shows an instant.
    pub fn new(now: Timestamp) -> ManualClock {
        let clock = ManualClock::default();
        clock.shown().now = now;
        clock
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let mut shown = self.shown();
        shown.now = shown.now + by;
        shown.elapsed += by;
        shown.wakers.iter().for_each(|wake| wake());
    }

    /// Sets the wall clock to an instant, perhaps an earlier one, as when somebody corrects it.
    pub fn set(&self, now: Timestamp) {
        let mut shown = self.shown();
        let passed = now.since(shown.now);
        shown.elapsed += passed;
        shown.now = now;
        shown.wakers.iter().for_each(|wake| wake());
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.shown().now
    }

    fn elapsed(&self) -> Duration {
        self.shown().elapsed
    }

    fn is_manual(&self) -> bool {
        true
    }

    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.shown().wakers.push(wake);
    }
}

/// Opens an engine in memory that reads a manual clock, which begins at an arbitrary instant.
///
/// # Errors
/// [`OpenError`] when the thread that writes cannot be started.
pub async fn engine() -> Result<(Engine, ManualClock), OpenError> {
    let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
    let engine = Engine::in_memory().clock(clock.clone()).open().await?;
    Ok((engine, clock))
}
