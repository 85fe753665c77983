//! The page of metrics, as Prometheus reads it: base units, and never a label with a workflow in it.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;
use serde_json::Value;

use crate::api::views::BlockedCause;
use crate::clock::ClockSteps;
use crate::clock::Timestamp;
#[cfg(feature = "cluster")]
use crate::cluster::ClusterMeters;
use crate::daemon::blocked_monitor::BlockedCounts;
use crate::daemon::gauges::Gauges;
use crate::engine::COMMIT_SECONDS;
use crate::engine::CommitStats;
use crate::engine::QueueView;
use crate::engine::StorageRoom;
use crate::id::QueueName;
use crate::service_bus::MeterReading;
use crate::storage_queue;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
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
    cause: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    operation: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDirection {
    direction: &'static str,
}

type Count = Gauge<u64, AtomicU64>;

/// What is looked up for one page.
pub(crate) struct MetricsSnapshot {
    pub(crate) queues: Vec<QueueView>,
    pub(crate) commits: CommitStats,
    pub(crate) clock_steps: ClockSteps,
    pub(crate) troubles: BlockedCounts,
    /// Of each queue with a source: rows copied, rows that wait to be, and whether something is wrong.
    pub(crate) sources: Vec<(QueueName, (u64, u64, bool))>,
    pub(crate) store_bytes: u64,
    /// How many definitions are in force.
    pub(crate) definitions: usize,
    /// Whether the definition files as they are now are not in force.
    pub(crate) is_reload_refused: bool,
    pub(crate) loaded_at: Timestamp,
    /// The room on its disk, if that is looked after.
    pub(crate) room: Option<StorageRoom>,
    /// What the node of a cluster has counted, if the daemon is one.
    #[cfg(feature = "cluster")]
    pub(crate) cluster: Option<ClusterMeters>,
    /// What the endpoint of Service Bus has counted, if there is one.
    pub(crate) amqp: Option<MeterReading>,
    /// What the endpoint for storage queues has counted, if there is one.
    pub(crate) storage_queue: Option<storage_queue::StorageMeterReading>,
}

/// Writes the page.
pub(crate) fn page(gauges: &Gauges, looked: &MetricsSnapshot) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    gauges.register(&mut registry);
    register_queues(&mut registry, &looked.queues);
    register_commits(&mut registry, &looked.commits);
    register_clock_steps(&mut registry, looked.clock_steps);
    register_troubles(&mut registry, &looked.troubles);
    register_definitions(&mut registry, looked);
    register_sources(&mut registry, &looked.sources);
    #[cfg(feature = "cluster")]
    if let Some(cluster) = &looked.cluster {
        register_cluster(&mut registry, cluster);
    }
    if let Some(amqp) = &looked.amqp {
        register_amqp(&mut registry, amqp);
    }
    if let Some(storage_queue) = &looked.storage_queue {
        register_storage_queue(&mut registry, storage_queue);
    }
    let help = "Size of the store's file";
    registry.register_with_unit("seriatim_store", help, Unit::Bytes, ConstGauge::new(looked.store_bytes));
    if let Some(room) = &looked.room {
        register_room(&mut registry, room);
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn register_sources(registry: &mut Registry, sources: &[(QueueName, (u64, u64, bool))]) {
    if sources.is_empty() {
        return;
    }
    let copied = Family::<QueueLabels, Counter>::default();
    let [behind, failing] = [(); 2].map(|()| Family::<QueueLabels, Count>::default());
    for (queue, (rows_copied, rows_behind, is_failing)) in sources {
        let queue = || QueueLabels { queue: queue.to_string() };
        copied.get_or_create(&queue()).inc_by(*rows_copied);
        behind.get_or_create(&queue()).set(*rows_behind);
        failing.get_or_create(&queue()).set(u64::from(*is_failing));
    }
    registry.register("seriatim_source_rows_copied", "Rows copied from the source of a queue", copied);
    registry.register("seriatim_source_rows_behind", "Rows of the source that wait to be copied", behind);
    registry.register("seriatim_source_failing", "Whether the source cannot be copied on", failing);
}

fn register_room(registry: &mut Registry, room: &StorageRoom) {
    let (free, full) = (ConstGauge::new(room.free_bytes), ConstGauge::new(u64::from(room.is_full)));
    let help = "Free room on the disk of the store, with what is kept for draining";
    registry.register_with_unit("seriatim_storage_free", help, Unit::Bytes, free);
    let help = "Whether the disk is so full that sends are refused";
    registry.register("seriatim_storage_full", help, full);
}

fn register_queues(registry: &mut Registry, queues: &[QueueView]) {
    let (stored, limited) = (Family::<ByState, Count>::default(), Family::<QueueLabels, Count>::default());
    let [history, cursors] = [(); 2].map(|()| Family::<QueueLabels, Count>::default());
    let [accepted, completed, expired, cursors_cut, links_cut] =
        [(); 5].map(|()| Family::<QueueLabels, Counter>::default());
    for view in queues {
        let counts = &view.counts;
        let queue = || view.name.to_string();
        let states = [
            ("ready", counts.ready),
            ("locked", counts.locked),
            ("early", counts.early),
            ("retry", counts.retry),
            ("exhausted", counts.exhausted),
            ("by_consumer", counts.by_consumer),
            ("scheduled", counts.scheduled),
            ("dead_lettered", counts.dead_lettered),
        ];
        for (state, count) in states {
            stored.get_or_create(&ByState { queue: queue(), state }).set(count);
        }
        for (family, count) in
            [(&accepted, counts.accepted), (&completed, counts.completed), (&expired, counts.expired)]
        {
            family.get_or_create(&QueueLabels { queue: queue() }).inc_by(count);
        }
        if view.options.rate.is_some() {
            let waits = if view.rate_limited_until.is_some() { counts.ready } else { 0 };
            limited.get_or_create(&QueueLabels { queue: queue() }).set(waits);
        }
        history.get_or_create(&QueueLabels { queue: queue() }).set(view.history);
        cursors.get_or_create(&QueueLabels { queue: queue() }).set(view.cursors);
        cursors_cut.get_or_create(&QueueLabels { queue: queue() }).inc_by(view.cursors_cut);
        links_cut.get_or_create(&QueueLabels { queue: queue() }).inc_by(view.links_cut);
    }
    registry.register(
        "seriatim_messages",
        "Messages that are stored, by where they are in their life",
        stored,
    );
    let help = "Messages that are ready and wait only for the rate of their queue";
    registry.register("seriatim_messages_rate_limited", help, limited);
    registry.register("seriatim_messages_accepted", "Messages that were ever accepted", accepted);
    registry.register("seriatim_messages_completed", "Messages that were completed", completed);
    registry.register("seriatim_history_entries", "Ended messages that are remembered", history);
    registry.register("seriatim_cursors", "Cursors of forgotten workflows that are remembered", cursors);
    let help = "Such cursors that were forgotten before their time, because there were too many";
    registry.register("seriatim_cursors_cut", help, cursors_cut);
    let help = "Settled messages that after-ordered workflows forgot, because there were too many";
    registry.register("seriatim_links_cut", help, links_cut);
    registry.register("seriatim_messages_expired", "Messages that expired and were dropped", expired);
}

fn register_definitions(registry: &mut Registry, looked: &MetricsSnapshot) {
    let count = ConstGauge::new(looked.definitions as u64);
    registry.register("seriatim_definitions", "Definitions that are in force", count);
    let successful = ConstGauge::new(u64::from(!looked.is_reload_refused));
    let help = "1 when the definition files as they are now are in force, 0 when the last reload was refused";
    registry.register("seriatim_definitions_last_reload_successful", help, successful);
    let loaded_at = ConstGauge::new(Duration::from_millis(looked.loaded_at.as_millis()).as_secs_f64());
    let help = "When the definitions in force were loaded, in seconds since 1970";
    registry.register_with_unit("seriatim_definitions_loaded_timestamp", help, Unit::Seconds, loaded_at);
}

fn register_amqp(registry: &mut Registry, reading: &MeterReading) {
    let connections = ConstGauge::new(reading.connections);
    registry.register("seriatim_amqp_connections", "AMQP connections that are open", connections);
    let help =
        "AMQP links that are sent less than their credit, because locks ran out in their client's buffer";
    registry.register("seriatim_amqp_prefetch_windows", help, ConstGauge::new(reading.windows));
    let counts = [
        ("seriatim_amqp_messages_received", "Messages that were accepted over AMQP", reading.received),
        ("seriatim_amqp_messages_refused", "Messages that were refused over AMQP", reading.refused),
        (
            "seriatim_amqp_messages_delivered",
            "Messages that were sent to clients over AMQP",
            reading.delivered,
        ),
        ("seriatim_amqp_messages_settled", "Messages that clients settled over AMQP", reading.settled),
        (
            "seriatim_amqp_locks_lost_in_buffers",
            "Locks that ran out in the buffer of an AMQP client",
            reading.lost_in_buffers,
        ),
    ];
    for (name, help, count) in counts {
        registry.register(name, help, ConstCounter::new(count));
    }
}

fn register_storage_queue(registry: &mut Registry, reading: &storage_queue::StorageMeterReading) {
    let connections = ConstGauge::new(reading.connections as u64);
    let help = "Connections to the endpoint for storage queues that are open";
    registry.register("seriatim_storage_queue_connections", help, connections);
    let requests = Family::<ByAnswer, Counter>::default();
    for &storage_queue::RequestCount { operation, status, count } in &reading.requests {
        requests.get_or_create(&ByAnswer { operation, status }).inc_by(count);
    }
    let help = "Requests to the endpoint for storage queues, by operation and the status of the answer";
    registry.register("seriatim_storage_queue_requests", help, requests);
}

fn register_commits(registry: &mut Registry, commits: &CommitStats) {
    let help = "Requests that commits have answered";
    registry.register("seriatim_commit_requests", help, ConstCounter::new(commits.answers));
    let (name, help) = ("seriatim_commit_duration", "How long commits took");
    registry.register_collector(Box::new(CommitTimes { name, help, stats: commits.clone() }));
}

#[cfg(feature = "cluster")]
fn register_cluster(registry: &mut Registry, meters: &ClusterMeters) {
    let gauges = [
        ("seriatim_cluster_nodes", "Nodes that this node hears, itself among them", meters.nodes),
        ("seriatim_cluster_partitions_owned", "Partitions that this node owns", meters.owned),
        (
            "seriatim_cluster_partitions_stopped",
            "Partitions that this node cannot go on with",
            meters.stopped,
        ),
        (
            "seriatim_cluster_lag_entries",
            "Entries of the logs that this node follows which it has still to read",
            meters.lag,
        ),
    ];
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::new(value));
    }
    let help = "How often this node has become the owner of a partition";
    registry.register("seriatim_cluster_takeovers", help, ConstCounter::new(meters.takeovers));
    let (name, help) = ("seriatim_cluster_append_duration", "How long attempts to append to a log took");
    registry.register_collector(Box::new(CommitTimes { name, help, stats: meters.appends.clone() }));
}

fn register_clock_steps(registry: &mut Registry, steps: ClockSteps) {
    let family = Family::<ByDirection, Counter>::default();
    for (direction, count) in [("forward", steps.forward), ("back", steps.back)] {
        family.get_or_create(&ByDirection { direction }).inc_by(count);
    }
    let help =
        "How often the wall clock was set by more than a minute since the store was made, by direction";
    registry.register("seriatim_clock_steps", help, family);
}

type NoLabels = Vec<(String, String)>;

/// A histogram that is counted elsewhere.
#[derive(Debug)]
struct CommitTimes {
    name: &'static str,
    help: &'static str,
    stats: CommitStats,
}

impl prometheus_client::collector::Collector for CommitTimes {
    fn encode(&self, mut encoder: prometheus_client::encoding::DescriptorEncoder<'_>) -> fmt::Result {
        let CommitTimes { name, help, stats } = self;
        let mut buckets: Vec<(f64, u64)> = COMMIT_SECONDS.iter().copied().zip(stats.classes).collect();
        let beyond = stats.commits.saturating_sub(stats.classes.iter().sum());
        buckets.push((f64::MAX, beyond));
        encoder
            .encode_descriptor(
                name,
                help,
                Some(&Unit::Seconds),
                prometheus_client::metrics::MetricType::Histogram,
            )?
            .encode_histogram::<NoLabels>(stats.lasted.as_secs_f64(), stats.commits, &buckets, None)
    }
}

fn register_troubles(registry: &mut Registry, troubles: &BlockedCounts) {
    let blocked = Family::<ByCause, Count>::default();
    for ((queue, cause), count) in &troubles.by_cause {
        blocked.get_or_create(&ByCause { queue: queue.to_string(), cause: label(*cause) }).set(*count);
    }
    registry.register("seriatim_workflows_blocked", "Workflows that wait for something to go well", blocked);
    let age = ConstGauge::new(troubles.age_max.as_secs_f64());
    let help = "How long the workflow that has been blocked longest is blocked";
    registry.register_with_unit("seriatim_blocked_head_age_max", help, Unit::Seconds, age);
    let help = "Messages in the fullest of the blocked workflows";
    registry.register("seriatim_deepest_workflow_messages", help, ConstGauge::new(troubles.waiting_max));
}

/// The name of a cause as a label: the one that it has in JSON.
fn label(cause: BlockedCause) -> String {
    let name = serde_json::to_value(cause).ok();
    name.as_ref().and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
}
