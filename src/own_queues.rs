//! The daemon's own queues.

/// Where schedules are kept.
pub(crate) const SCHEDULES_QUEUE: &str = "seriatim.schedules";

/// Where it is kept how far sources are copied.
pub(crate) const SOURCES_QUEUE: &str = "seriatim.sources";

/// Where what clients of Service Bus say of their entities is kept.
pub(crate) const SERVICE_BUS_QUEUE: &str = "seriatim.service-bus";

/// Where what is known of storage queues is kept.
pub(crate) const STORAGE_QUEUE: &str = "seriatim.storage";

/// The queue of what completions send to other partitions; every partition has one.
pub(crate) const OUTBOX_QUEUE: &str = "seriatim.outbox";

/// The queues that are the daemon's own, each with what it keeps in it; no definition can have such a name.
const OWN_QUEUES: [(&str, &str); 5] = [
    (SCHEDULES_QUEUE, "its schedules"),
    (SOURCES_QUEUE, "how far its sources are copied"),
    (SERVICE_BUS_QUEUE, "what clients of Service Bus say of their entities"),
    (STORAGE_QUEUE, "what it knows of storage queues"),
    (OUTBOX_QUEUE, "what goes from one partition of a cluster to another"),
];

/// What the daemon keeps in the queue of a name, if that is its own.
pub(crate) fn kept_in(queue: &str) -> Option<&'static str> {
    OWN_QUEUES.iter().find(|(own, _)| queue == *own).map(|(_, what)| *what)
}
