//! What handlers do, counted while it happens. Everything else is looked up when somebody asks.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;

use crate::id::QueueName;
use crate::processor::Failure;
use crate::processor::Outcome;

/// Upper ends of the classes of handler times, in seconds: from a persistent child to a slow webhook.
const HANDLER_SECONDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByQueue {
    queue: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    queue: String,
    outcome: &'static str,
}

/// What handlers do. The labels name queues, never workflows: there may be millions of those.
#[derive(Clone)]
pub(crate) struct Gauges {
    attempts: Family<ByOutcome, Counter>,
    durations: Family<ByQueue, Histogram, fn() -> Histogram>,
    running: Arc<AtomicUsize>,
}

/// An attempt that runs; it ends when this is dropped, however it ends.
pub(crate) struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gauges {
    pub(crate) fn new() -> Gauges {
        let durations =
            Family::new_with_constructor((|| Histogram::new(HANDLER_SECONDS)) as fn() -> Histogram);
        Gauges { attempts: Family::default(), durations, running: Arc::default() }
    }

    /// Counts an attempt as running.
    pub(crate) fn begin(&self) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self.running.clone())
    }

    /// How many attempts run.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Counts an attempt of a handler.
    pub(crate) fn note_attempt(&self, queue: &QueueName, ended: &Result<Outcome, Failure>, lasted: Duration) {
        let queue = queue.to_string();
        let outcome = match ended {
            Ok(Outcome::Complete | Outcome::CompleteWith(_)) => "complete",
            Ok(Outcome::Defer | Outcome::DeferUntil(_)) => "defer",
            Ok(Outcome::DeadLetter { .. }) => "dead_letter",
            Ok(_) => "retry",
            Err(failure) if failure.is_unbegun() => "released",
            Err(_) => "failed",
        };
        self.durations.get_or_create(&ByQueue { queue: queue.clone() }).observe(lasted.as_secs_f64());
        self.attempts.get_or_create(&ByOutcome { queue, outcome }).inc();
    }

    /// Shows them in a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Attempts of handlers, by how they ended";
        registry.register("seriatim_attempts", help, self.attempts.clone());
        let help = "How long attempts of handlers took";
        registry.register_with_unit("seriatim_handler_duration", help, Unit::Seconds, self.durations.clone());
    }
}
