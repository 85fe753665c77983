//! How a message that has ended looks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;
use crate::engine::HistoryEnding;
use crate::engine::HistoryEntry;

/// A message that has ended, or positions that were given up, as a queue with `history` remembers it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HistoryView {
    /// Its number in the history of the queue: what ended later has a higher one.
    pub number: u64,
    /// When it ended.
    pub at: WireTime,
    /// How it ended.
    pub ending: EndingWord,
    /// The message; absent where positions were given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The first and the last of its positions (in after-order, of its places in the chain). A message has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<(u64, u64)>,
    /// The sender's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// When it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<WireTime>,
    /// How often it was handed out: of a completed message, the attempt that completed it.
    pub delivery_count: u32,
    /// Why it was a dead letter, or else why its last failed attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number it was sent again with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_as: Option<u64>,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndingWord {
    /// Its handler completed it.
    Completed,
    /// Its time to live was over, and it was dropped.
    Expired,
    /// It was cancelled before its instant.
    Cancelled,
    /// Somebody removed it, perhaps as a dead letter.
    Purged,
    /// It was a dead letter, and was sent again as a new message.
    Redriven,
    /// It never came, and the gap policy gave its positions up.
    Skipped,
    /// An operator declared that it will never come.
    Voided,
}

impl EndingWord {
    fn show(ending: HistoryEnding) -> (EndingWord, Option<u64>) {
        match ending {
            HistoryEnding::Completed => (EndingWord::Completed, None),
            HistoryEnding::Expired => (EndingWord::Expired, None),
            HistoryEnding::Cancelled => (EndingWord::Cancelled, None),
            HistoryEnding::Purged => (EndingWord::Purged, None),
            HistoryEnding::Redriven(number) => (EndingWord::Redriven, Some(number.get())),
            HistoryEnding::Skipped => (EndingWord::Skipped, None),
            HistoryEnding::Voided => (EndingWord::Voided, None),
        }
    }
}

impl HistoryView {
    /// Shows an entry.
    pub fn show(entry: &HistoryEntry) -> HistoryView {
        let (ending, redriven_as) = EndingWord::show(entry.ending);
        HistoryView {
            number: entry.number,
            at: WireTime(entry.at),
            ending,
            sequence_number: entry.sequence_number.map(|number| number.get()),
            workflow_id: entry.workflow_id.as_ref().map(ToString::to_string),
            positions: entry.positions,
            message_id: entry.message_id.as_ref().map(ToString::to_string),
            accepted_at: entry.accepted_at.map(WireTime),
            delivery_count: entry.delivery_count,
            reason: entry.reason.clone(),
            redriven_as,
        }
    }
}
