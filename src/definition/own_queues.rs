//! The daemon's own queues.

use crate::definition::outbox::SOURCES_QUEUE;
use crate::definition::schedule::SCHEDULES_QUEUE;

/// The queues that are the daemon's own, each with what it keeps in it; no definition can have such a name.
pub(crate) const OWN_QUEUES: [(&str, &str); 5] = [
    (SCHEDULES_QUEUE, "its schedules"),
    (SOURCES_QUEUE, "how far its sources are copied"),
    ("seriatim.service-bus", "what clients of Service Bus say of their entities"),
    ("seriatim.storage", "what it knows of storage queues"),
    ("seriatim.outbox", "what goes from one partition of a cluster to another"),
];
