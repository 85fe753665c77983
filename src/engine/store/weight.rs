//! About how large a row is in the journal; the pace of generations needs no more.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::record::Answered;
use crate::engine::rules::record::Content;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::Link;
use crate::engine::rules::record::Mark;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Stream;
use crate::engine::rules::record::WorkflowRecord;
use crate::engine::rules::topics::TopicRecord;
use crate::id::SequenceNumber;

/// A record, as far as its size matters.
pub(crate) trait Weighed {
    /// About how many bytes it takes.
    fn bytes(&self) -> u64 {
        8
    }
}

impl Weighed for Arc<Content> {
    fn bytes(&self) -> u64 {
        (self.body.len() + self.headers.len()) as u64
    }
}

impl Weighed for Bytes {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl Weighed for Arc<MessageRecord> {
    fn bytes(&self) -> u64 {
        40
    }
}

impl Weighed for Arc<WorkflowRecord> {
    fn bytes(&self) -> u64 {
        24
    }
}

impl Weighed for Arc<Answered> {
    fn bytes(&self) -> u64 {
        16 + 4 * self.receipts.len() as u64 + 24 * self.shares.len() as u64
    }
}

impl Weighed for Arc<AuditEntry> {
    fn bytes(&self) -> u64 {
        let texts = [Some(&self.actor), self.reason.as_ref(), self.refusal.as_ref()];
        48 + texts.into_iter().flatten().map(String::len).sum::<usize>() as u64
    }
}

impl Weighed for Arc<HistoryEntry> {
    fn bytes(&self) -> u64 {
        48 + self.reason.as_ref().map_or(0, String::len) as u64
    }
}

impl Weighed for Arc<TopicRecord> {
    fn bytes(&self) -> u64 {
        64 + TopicRecord::bytes(self) as u64
    }
}

impl Weighed for u64 {}
impl Weighed for SequenceNumber {}
impl Weighed for TrailEntry {}
impl Weighed for Holding {}
impl Weighed for Link {}
impl Weighed for Mark {}
impl Weighed for Stream {}
impl Weighed for Duplicate {}
impl Weighed for Cursor {}
impl Weighed for CursorCount {}
impl Weighed for () {}
