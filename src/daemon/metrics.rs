//! The page of metrics, as Prometheus reads it: base units, and never a label with a workflow in it.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;

use crate::daemon::gauges::Gauges;
use crate::daemon::lookout::Troubles;
use crate::engine::COMMIT_SECONDS;
use crate::engine::CommitStats;
use crate::engine::QueueView;
use crate::service_bus::MeterReading;
use crate::storage_queue;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByQueue {
    queue: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    queue: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCause {
    queue: String,
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    operation: &'static str,
    status: &'static str,
}

type Count = Gauge<u64, AtomicU64>;
type Seconds = Gauge<f64, AtomicU64>;

/// What is looked up for one page.
pub(crate) struct Looked {
    pub(crate) queues: Vec<QueueView>,
    pub(crate) commits: CommitStats,
    pub(crate) troubles: Troubles,
    pub(crate) store_bytes: u64,
    /// What the endpoint of Service Bus has counted, if there is one.
    pub(crate) amqp: Option<MeterReading>,
    /// What the endpoint for storage queues has counted, if there is one.
    pub(crate) storage_queue: Option<storage_queue::MeterReading>,
}

/// Writes the page.
pub(crate) fn page(gauges: &Gauges, looked: &Looked) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    gauges.register(&mut registry);
    register_queues(&mut registry, &looked.queues);
    register_commits(&mut registry, &looked.commits);
    register_troubles(&mut registry, &looked.troubles);
    if let Some(amqp) = &looked.amqp {
        register_amqp(&mut registry, amqp);
    }
    if let Some(storage_queue) = &looked.storage_queue {
        register_storage_queue(&mut registry, storage_queue);
    }
    let store = Count::default();
    store.set(looked.store_bytes);
    let help = "Size of the store's file";
    registry.register_with_unit("seriatim_store", help, Unit::Bytes, store);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn register_queues(registry: &mut Registry, queues: &[QueueView]) {
    let stored = Family::<ByState, Count>::default();
    let [accepted, completed, expired, dead_lettered] =
        [(); 4].map(|()| Family::<ByQueue, Counter>::default());
    for view in queues {
        let counts = &view.counts;
        let queue = || view.name.to_string();
        let states = [
            ("ready", counts.ready),
            ("locked", counts.locked),
            ("early", counts.early),
            ("failed", counts.failed),
            ("spent", counts.spent),
            ("asked", counts.asked),
            ("scheduled", counts.scheduled),
            ("dead_lettered", counts.dead_lettered),
        ];
        for (state, count) in states {
            stored.get_or_create(&ByState { queue: queue(), state }).set(count);
        }
        for (family, count) in
            [(&accepted, counts.accepted), (&completed, counts.completed), (&expired, counts.expired)]
        {
            family.get_or_create(&ByQueue { queue: queue() }).inc_by(count);
        }
        dead_lettered.get_or_create(&ByQueue { queue: queue() }).inc_by(counts.dead_lettered);
    }
    registry.register(
        "seriatim_messages",
        "Messages that are stored, by where they are in their life",
        stored,
    );
    registry.register("seriatim_messages_accepted", "Messages that were ever accepted", accepted);
    registry.register("seriatim_messages_completed", "Messages that were completed", completed);
    registry.register("seriatim_messages_expired", "Messages that expired and were dropped", expired);
}

fn register_amqp(registry: &mut Registry, reading: &MeterReading) {
    let connections = Count::default();
    connections.set(reading.connections);
    registry.register("seriatim_amqp_connections", "AMQP connections that are open", connections);
    let counts = [
        ("seriatim_amqp_messages_received", "Messages that were accepted over AMQP", reading.received),
        ("seriatim_amqp_messages_refused", "Messages that were refused over AMQP", reading.refused),
        (
            "seriatim_amqp_messages_delivered",
            "Messages that were sent to clients over AMQP",
            reading.delivered,
        ),
        ("seriatim_amqp_messages_settled", "Messages that clients settled over AMQP", reading.settled),
    ];
    for (name, help, count) in counts {
        registry.register(name, help, ConstCounter::new(count));
    }
}

fn register_storage_queue(registry: &mut Registry, reading: &storage_queue::MeterReading) {
    let connections = Count::default();
    connections.set(reading.connections as u64);
    let help = "Connections to the endpoint for storage queues that are open";
    registry.register("seriatim_storage_queue_connections", help, connections);
    let requests = Family::<ByAnswer, Counter>::default();
    for &storage_queue::RequestCount { operation, status, count } in &reading.requests {
        requests.get_or_create(&ByAnswer { operation, status }).inc_by(count);
    }
    let help = "Requests to the endpoint for storage queues, by what was asked and the status of the answer";
    registry.register("seriatim_storage_queue_requests", help, requests);
}

fn register_commits(registry: &mut Registry, commits: &CommitStats) {
    let help = "Requests that commits have answered";
    registry.register("seriatim_commit_requests", help, ConstCounter::new(commits.answers));
    registry.register_collector(Box::new(CommitTimes(commits.clone())));
}

type NoLabels = Vec<(String, String)>;

/// A histogram that is counted elsewhere.
#[derive(Debug)]
struct CommitTimes(CommitStats);

impl prometheus_client::collector::Collector for CommitTimes {
    fn encode(&self, mut encoder: prometheus_client::encoding::DescriptorEncoder<'_>) -> fmt::Result {
        let CommitTimes(stats) = self;
        let mut buckets: Vec<(f64, u64)> = COMMIT_SECONDS.iter().copied().zip(stats.classes).collect();
        let beyond = stats.commits.saturating_sub(stats.classes.iter().sum());
        buckets.push((f64::MAX, beyond));
        encoder
            .encode_descriptor(
                "seriatim_commit_duration",
                "How long commits took",
                Some(&Unit::Seconds),
                prometheus_client::metrics::MetricType::Histogram,
            )?
            .encode_histogram::<NoLabels>(stats.lasted.as_secs_f64(), stats.commits, &buckets, None)
    }
}

fn register_troubles(registry: &mut Registry, troubles: &Troubles) {
    let blocked = Family::<ByCause, Count>::default();
    for ((queue, cause), count) in &troubles.by_cause {
        blocked.get_or_create(&ByCause { queue: queue.to_string(), cause: cause.name() }).set(*count);
    }
    registry.register("seriatim_workflows_blocked", "Workflows that wait for something to go well", blocked);
    let age = Seconds::default();
    age.set(troubles.age_max.as_secs_f64());
    let help = "How long the workflow that has been blocked longest is blocked";
    registry.register_with_unit("seriatim_blocked_head_age_max", help, Unit::Seconds, age);
    let deepest = Count::default();
    deepest.set(troubles.waiting_max);
    let help = "Messages in the fullest of the blocked workflows";
    registry.register("seriatim_deepest_workflow_messages", help, deepest);
}
