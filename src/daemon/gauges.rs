//! What handlers do, counted while it happens. Everything else is looked up when somebody asks.

use std::sync::Arc;
use std::sync::OnceLock;
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
use crate::processor::DeliveryEnd;
use crate::processor::Failure;
use crate::processor::Outcome;

/// Upper ends of the classes of handler times, in seconds: from a persistent child to a slow webhook.
const HANDLER_SECONDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0];

/// The outcome of most.
const COMPLETE: &str = "complete";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GaugeLabels {
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
    durations: Family<GaugeLabels, Histogram, fn() -> Histogram>,
    running: Arc<AtomicUsize>,
}

/// An attempt that runs; it ends when this is dropped, however it ends.
pub(crate) struct RunningAttempt(Arc<AtomicUsize>);

impl Drop for RunningAttempt {
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

    /// How many attempts run.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// What the handlers of one queue do.
    pub(crate) fn of_queue(&self, queue: &QueueName) -> QueueGauges {
        let queue = queue.to_string();
        let durations = self.durations.get_or_create_owned(&GaugeLabels { queue: queue.clone() });
        QueueGauges {
            queue,
            attempts: self.attempts.clone(),
            completed: OnceLock::new(),
            durations,
            running: self.running.clone(),
        }
    }

    /// Shows them in a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Attempts of handlers, by how they ended";
        registry.register("seriatim_attempts", help, self.attempts.clone());
        let help = "How long attempts of handlers took";
        registry.register_with_unit("seriatim_handler_duration", help, Unit::Seconds, self.durations.clone());
    }
}

/// What the handlers of one queue do: as [`Gauges`], without a look-up by name for each message.
#[derive(Clone)]
pub(crate) struct QueueGauges {
    queue: String,
    attempts: Family<ByOutcome, Counter>,
    completed: OnceLock<Counter>,
    durations: Histogram,
    running: Arc<AtomicUsize>,
}

impl QueueGauges {
    /// Counts an attempt as running until what it gives is dropped.
    pub(crate) fn begin(&self) -> RunningAttempt {
        self.begin_many(1);
        RunningAttempt(self.running.clone())
    }

    /// Counts attempts as running, each until [`QueueGauges::end`].
    pub(crate) fn begin_many(&self, count: usize) {
        self.running.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts an attempt as running no more.
    pub(crate) fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes how long an attempt took. One that was not begun took no time, however long it waited.
    pub(crate) fn note_duration(&self, ended: &Result<Outcome, Failure>, lasted: Duration) {
        if !matches!(ended, Err(failure) if failure.is_unbegun) {
            self.durations.observe(lasted.as_secs_f64());
        }
    }

    /// Counts attempts by how their deliveries ended.
    pub(crate) fn count(&self, end: DeliveryEnd, count: usize) {
        let outcome = match end {
            DeliveryEnd::Completed => COMPLETE,
            DeliveryEnd::SetAside => "defer",
            DeliveryEnd::DeadLettered => "dead_letter",
            DeliveryEnd::Abandoned => "retry",
            DeliveryEnd::Released => "released",
            DeliveryEnd::Failed | DeliveryEnd::Lost => "failed",
        };
        match outcome {
            COMPLETE => self.completed.get_or_init(|| self.attempts(COMPLETE)).inc_by(count as u64),
            _ => self.attempts(outcome).inc_by(count as u64),
        };
    }

    fn attempts(&self, outcome: &'static str) -> Counter {
        self.attempts.get_or_create_owned(&ByOutcome { queue: self.queue.clone(), outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_was_not_begun_is_counted_and_has_no_duration() {
        let gauges = Gauges::new();
        let of_queue = gauges.of_queue(&QueueName::new("orders").unwrap());
        of_queue.note_duration(&Ok(Outcome::Complete), Duration::from_secs(1));
        of_queue.count(DeliveryEnd::Completed, 1);
        of_queue.note_duration(&Err(Failure::unbegun("no process had room for it")), Duration::from_secs(60));
        of_queue.count(DeliveryEnd::Released, 1);
        let mut registry = Registry::default();
        gauges.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains("seriatim_handler_duration_seconds_count{queue=\"orders\"} 1\n"), "{text}");
        assert!(text.contains("outcome=\"released\"} 1\n"), "{text}");
    }
}
