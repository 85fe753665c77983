//! What is written in place, and what a journal row says beside the rows that have changed.

use serde::Deserialize;

use crate::clock::Timestamp;
use crate::engine::rules::record;
use crate::engine::rules::record::QueueId;
use crate::engine::store::format3::queues::Tally;
use crate::engine::store::meta::BatchRecord;
use crate::engine::store::stamp::WallRecord;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Numbers {
    next_sequence: u64,
    next_ticket: u64,
    next_queue: u32,
}

impl From<Numbers> for record::Numbers {
    fn from(old: Numbers) -> record::Numbers {
        record::Numbers {
            next_sequence: old.next_sequence,
            next_ticket: old.next_ticket,
            next_queue: old.next_queue,
        }
    }
}

/// The last commit that was flushed.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Batch {
    pub(crate) position: u64,
    pub(crate) hash: u64,
    pub(crate) time: Timestamp,
}

impl From<Batch> for BatchRecord {
    fn from(old: Batch) -> BatchRecord {
        // Nothing says what the wall clock showed.
        BatchRecord { position: old.position, hash: old.hash, time: old.time, wall: WallRecord::default() }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    pub(crate) position: u64,
    /// The checksum of the row before.
    pub(crate) previous: u64,
    pub(crate) time: Timestamp,
    pub(crate) numbers: Numbers,
    pub(crate) tallies: Vec<(QueueId, Tally)>,
}
