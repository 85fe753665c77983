//! For tests of ordered code: a clock that is moved by hand, an engine in memory that reads it, and a drain that
//! handles until nothing is left to do. No sleeping.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::error::OpenError;
use crate::error::ReceiveError;
use crate::limits;
use crate::mutex::Mutex;
use crate::processor::Body;
use crate::processor::DeliveryEnd;
use crate::processor::Handler;
use crate::processor::Processor;
use crate::shown::shown;

/// A clock that stands still until it is moved. Clones show the same time.
///
/// An engine that reads it does what has become due before it answers the next request, so that a test that moves
/// the clock and then asks sees everything that was due.
#[derive(Clone, Default)]
pub struct ManualClock {
    shared: Arc<Mutex<ManualTime>>,
}

shown!(ManualClock {});

#[derive(Default)]
struct ManualTime {
    now: Timestamp,
    elapsed: Duration,
    wakers: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl ManualClock {
    /// A clock that shows an instant.
    pub fn new(now: Timestamp) -> ManualClock {
        let clock = ManualClock::default();
        clock.shared.lock().now = now;
        clock
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let mut shown = self.shared.lock();
        shown.now = shown.now + by;
        shown.elapsed += by;
        shown.wakers.iter().for_each(|wake| wake());
    }

    /// Lets time pass until an instant of the wall clock; an earlier one is set without that time passes, as when somebody
    /// corrects the clock.
    pub fn set(&self, now: Timestamp) {
        let mut shown = self.shared.lock();
        let passed = now.since(shown.now);
        shown.elapsed += passed;
        shown.now = now;
        shown.wakers.iter().for_each(|wake| wake());
    }

    /// Sets the wall clock to an instant while no time passes: a step of the clock.
    pub fn step(&self, to: Timestamp) {
        let mut shown = self.shared.lock();
        shown.now = to;
        shown.wakers.iter().for_each(|wake| wake());
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.shared.lock().now
    }

    fn elapsed(&self) -> Duration {
        self.shared.lock().elapsed
    }

    fn is_manual(&self) -> bool {
        true
    }

    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.shared.lock().wakers.push(wake);
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

/// What a drain did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainSummary {
    /// Messages completed.
    pub completed: usize,
    /// Attempts that failed.
    pub failed: usize,
    /// Messages set aside.
    pub set_aside: usize,
    /// Messages dead-lettered by their handler, or because their body could not be read.
    pub dead_lettered: usize,
}

/// How much time passes before what was released is handed out again: in one instant that would go on for ever.
const RELEASE_PAUSE: Duration = Duration::from_millis(1);

/// How much time is to pass until something may have become due. Some always does, so that a drain comes to an end.
fn until_due(client: &Client, clock: &ManualClock, due: Timestamp) -> Duration {
    // What is due is compared with what the engine believes: less than the clock shows, after a step forward.
    let believed = client.wall_now();
    let passes = due.since(believed).max(Duration::from_millis(1));
    match clock.now().since(believed) > limits::CLOCK_STEP {
        true => passes.min(limits::CLOCK_STEP_LASTS),
        false => passes,
    }
}

/// Handles a queue's messages one after another until nothing is left to do, moving the clock to whatever is due next
/// (a retry, a scheduled message, a gap's end), but no further than `horizon` from now. After a step of the clock
/// ([`ManualClock::step`]) it lets time pass until the engine believes it. After a release ([`Outcome::Release`](crate::Outcome::Release))
/// a millisecond passes.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), seriatim::Error> {
/// use std::time::Duration;
/// use seriatim::{Context, Failure, Message, Outcome, QueueOptions, Raw};
///
/// let (engine, clock) = seriatim::testing::engine().await?;
/// let queue = engine.client().create_queue("q", QueueOptions::default()).await?;
/// queue.send(Message::new("hello").workflow("w")).await?;
///
/// // Fails once, and is tried again an hour later: no time passes.
/// let handler = |context: Context, _body: Raw| async move {
///     match context.attempt() {
///         1 => Err(Failure::new("not yet").retry_after(Duration::from_secs(3600))),
///         _ => Ok(Outcome::Complete),
///     }
/// };
/// let drained = seriatim::testing::drain(&queue, &clock, handler, Duration::from_secs(7200)).await?;
/// assert_eq!((drained.failed, drained.completed), (1, 1));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ReceiveError`] when the queue or the engine is gone.
pub async fn drain<T: Body>(
    queue: &Queue,
    clock: &ManualClock,
    handler: impl Handler<T>,
    horizon: Duration,
) -> Result<DrainSummary, ReceiveError> {
    let until = clock.elapsed().saturating_add(horizon);
    let single = Processor::new(queue.clone()).single(handler);
    let (mut drained, mut released) = (DrainSummary::default(), BTreeSet::new());
    loop {
        while let Some(delivery) = queue.receive(Duration::ZERO).await? {
            let number = delivery.message().sequence_number;
            match single.handle_one(delivery).await? {
                DeliveryEnd::Completed => drained.completed += 1,
                DeliveryEnd::Failed | DeliveryEnd::Abandoned | DeliveryEnd::Lost => drained.failed += 1,
                DeliveryEnd::SetAside => drained.set_aside += 1,
                DeliveryEnd::DeadLettered => drained.dead_lettered += 1,
                DeliveryEnd::Released if clock.elapsed().saturating_add(RELEASE_PAUSE) > until => {
                    // Other workflows have their turn before what is released once more.
                    if !released.insert(number) {
                        return Ok(drained);
                    }
                }
                DeliveryEnd::Released => clock.advance(RELEASE_PAUSE),
            }
        }
        let Some(due) = queue.client().next_due().await? else { return Ok(drained) };
        let passes = until_due(queue.client(), clock, due);
        if clock.elapsed().saturating_add(passes) > until {
            return Ok(drained);
        }
        clock.advance(passes);
    }
}
