//! About how large a row is in the journal; the pace of generations needs no more.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::record::AnswerRecord;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::HandoverMark;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::id::SequenceNumber;

/// A record, as far as its size matters.
pub(crate) trait Weight {
    /// About how many bytes it takes.
    fn bytes(&self) -> u64 {
        8
    }
}

impl Weight for MessageContent {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl Weight for Bytes {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl Weight for Arc<MessageRecord> {
    fn bytes(&self) -> u64 {
        40 + weight_of_failures(self)
    }
}

/// What is written of a message's failed attempts, and of why it died: nearly all have nothing of that, and some little else.
#[inline]
pub(crate) fn weight_of_failures(record: &MessageRecord) -> u64 {
    let attempts = record
        .rare
        .if_set()
        .map_or(0, |rare| rare.attempts.iter().map(|attempt| 64 + attempt.len() as u64).sum());
    let died = match &record.status {
        Status::DeadLettered(dead) => (dead.description.len() + dead.reason.len()) as u64,
        _ => 0,
    };
    attempts + died
}

impl Weight for WorkflowRecord {
    fn bytes(&self) -> u64 {
        24
    }
}

impl Weight for Arc<AnswerRecord> {
    fn bytes(&self) -> u64 {
        16 + 4 * self.receipts.len() as u64 + 24 * self.shares.len() as u64
    }
}

impl Weight for Arc<AuditEntry> {
    fn bytes(&self) -> u64 {
        let texts = [Some(&self.actor), self.reason.as_ref(), self.refusal.as_ref()];
        48 + texts.into_iter().flatten().map(String::len).sum::<usize>() as u64
    }
}

impl Weight for Arc<HistoryEntry> {
    fn bytes(&self) -> u64 {
        48 + self.reason.as_ref().map_or(0, String::len) as u64
    }
}

impl Weight for Arc<TopicRecord> {
    fn bytes(&self) -> u64 {
        64 + TopicRecord::bytes(self) as u64
    }
}

impl Weight for Arc<HandoverMark> {
    fn bytes(&self) -> u64 {
        8 + 20 * self.kept.len() as u64
    }
}

impl Weight for u64 {}
impl Weight for SequenceNumber {}
impl Weight for TrailEntry {}
impl Weight for Holding {}
impl Weight for ChainLink {}
impl Weight for MarkRecord {}
impl Weight for WorkflowRef {}
impl Weight for Duplicate {}
impl Weight for Cursor {}
impl Weight for CursorCount {}
impl Weight for () {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rules::record::Attempt;
    use crate::engine::rules::samples::message_record;

    /// What is read of the tables is kept by this weight, and so is what a flush writes at once.
    #[test]
    fn a_message_weighs_what_was_written_of_its_attempts() {
        let mut record = message_record(Status::Ready);
        let attempt = Attempt { reason: "x".repeat(1_000), ..record.rare.attempts[0].clone() };
        record.rare.attempts = vec![attempt; 8];
        assert!(Arc::new(record).bytes() > 8_000);
    }
}
