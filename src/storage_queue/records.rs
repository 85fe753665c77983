//! Where this endpoint keeps what it knows beside messages.

use crate::own_queues::STORAGE_QUEUE;
use crate::records::EndpointRecords;

/// The queue in which records live; no storage queue can have this name.
pub(crate) const RECORDS_QUEUE: &str = STORAGE_QUEUE;

/// What this endpoint keeps beside messages.
pub(crate) const RECORDS: EndpointRecords = EndpointRecords::new(RECORDS_QUEUE);
