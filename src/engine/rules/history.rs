//! What is kept of messages that have ended: the rows of a queue's history.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

/// A message that has ended, or places that were given up, as the history of its queue keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// Its number in the history of its queue: 1, 2, 3 and so on, in the order in which they ended.
    pub number: u64,
    /// When it ended, by the wall clock.
    pub at: Timestamp,
    /// How.
    pub ending: HistoryEnding,
    /// The message; `None` for places that were given up.
    pub sequence_number: Option<SequenceNumber>,
    /// Its workflow.
    pub workflow_id: Option<WorkflowId>,
    /// The first and the last of its places: positions, or ordinals in an after-ordered workflow. A message has one place.
    pub positions: Option<(u64, u64)>,
    /// The sender's ID.
    pub message_id: Option<MessageId>,
    /// When it was accepted, by the wall clock.
    pub accepted_at: Option<Timestamp>,
    /// How often it was handed out: of a completed message, the attempt that completed it.
    pub delivery_count: u32,
    /// Why it was a dead letter, or else why its last failed attempt failed.
    pub reason: Option<String>,
    /// When it ended, in engine time, from which its age is counted.
    pub(crate) since: Timestamp,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HistoryEnding {
    /// Its handler completed it.
    Completed,
    /// Its time to live was over, and its queue drops what expires.
    Expired,
    /// It was cancelled before its instant.
    Cancelled,
    /// Somebody removed it, perhaps as a dead letter: then there is a reason.
    Purged,
    /// It was a dead letter, and was sent again as the new message with this number.
    Redriven(SequenceNumber),
    /// It never came, and the gap policy gave its places up.
    Skipped,
    /// An operator declared that it will never come.
    Voided,
}

/// Which entries a queue keeps: all from `first` on, and before `next`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistorySpan {
    /// The number of the oldest entry.
    pub(crate) first: u64,
    /// The number of the entry that comes next.
    pub(crate) next: u64,
    /// The instant of the pending reminder to forget what is too old.
    pub(crate) check: Option<Timestamp>,
}

impl HistorySpan {
    /// How many entries are kept.
    pub(crate) fn kept(&self) -> u64 {
        self.next - self.first
    }
}
