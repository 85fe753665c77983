//! What this endpoint does, counted while it happens.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use http::StatusCode;

use crate::inbound::places::Places;
use crate::limits;
use crate::storage_queue::operation::StorageOperation;

/// How answers are told apart: done, the client's mistake, not the client's. Nothing here answers in another way.
const CLASSES: [&str; 3] = ["2xx", "4xx", "5xx"];

/// What a request is counted under that asks for nothing that can be done.
const UNKNOWN: &str = "unknown";

/// Counters of an endpoint; all clones count together.
#[derive(Clone)]
pub(crate) struct StorageMeters {
    /// The connections that are open have their places here.
    pub(crate) places: Arc<Places>,
    /// For each operation, and last for what is none: the answers of each class.
    answers: Arc<[[AtomicU64; CLASSES.len()]; StorageOperation::ALL.len() + 1]>,
}

/// What the counters say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageMeterReading {
    /// Connections that are open.
    pub(crate) connections: usize,
    /// Requests that were answered: all kinds there are, also those of which there was none yet.
    pub(crate) requests: Vec<RequestCount>,
}

/// How many requests for an operation were answered with a status of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestCount {
    pub(crate) operation: &'static str,
    pub(crate) status: &'static str,
    pub(crate) count: u64,
}

impl Default for StorageMeters {
    fn default() -> StorageMeters {
        let (max, kept) = (limits::HTTP_CONNECTIONS_MAX, limits::HTTP_CONNECTIONS_KEPT);
        let places = Places::new(max, kept, limits::HTTP_CONNECTIONS_PER_ADDRESS_MAX);
        StorageMeters { places: Arc::new(places), answers: Arc::default() }
    }
}

impl StorageMeters {
    /// Counts a request that is answered; without an operation, it asked for none.
    pub(crate) fn note_answer(&self, operation: Option<StorageOperation>, status: StatusCode) {
        let row = operation.map_or(StorageOperation::ALL.len(), |operation| operation as usize);
        let class = match status {
            status if status.is_success() => 0,
            status if status.is_server_error() => 2,
            _ => 1,
        };
        self.answers[row][class].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StorageMeterReading {
        let names = StorageOperation::ALL.into_iter().map(StorageOperation::name).chain([UNKNOWN]);
        let rows = names.zip(self.answers.iter());
        let requests = rows.flat_map(|(operation, row)| {
            let counts = CLASSES.into_iter().zip(row);
            counts.map(move |(status, count)| RequestCount {
                operation,
                status,
                count: count.load(Ordering::Relaxed),
            })
        });
        StorageMeterReading { connections: self.places.in_use(), requests: requests.collect() }
    }
}
