//! The daemon's own queues.

use crate::definition::outbox::SOURCES_QUEUE;
use crate::definition::schedule::SCHEDULES_QUEUE;
use crate::id::QueueName;

/// Where what clients of Service Bus say of their entities is kept.
pub(crate) const SERVICE_BUS_QUEUE: &str = "seriatim.service-bus";

/// Where what is known of storage queues is kept.
pub(crate) const STORAGE_QUEUE: &str = "seriatim.storage";

/// The queues that are the daemon's own, each with what it keeps in it; no definition can have such a name.
const OWN_QUEUES: [(&str, &str); 5] = [
    (SCHEDULES_QUEUE, "its schedules"),
    (SOURCES_QUEUE, "how far its sources are copied"),
    (SERVICE_BUS_QUEUE, "what clients of Service Bus say of their entities"),
    (STORAGE_QUEUE, "what it knows of storage queues"),
    ("seriatim.outbox", "what goes from one partition of a cluster to another"),
];

/// What the daemon keeps in a queue, if that is its own.
pub(crate) fn kept_in(queue: &QueueName) -> Option<&'static str> {
    OWN_QUEUES.iter().find(|(own, _)| queue.as_str() == *own).map(|(_, what)| *what)
}
