//! What a command changes: rows put or deleted, always absolute, so that applying a change twice is harmless.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::audit::AuditEntry;
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
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// One row put (`Some`) or deleted (`None`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Change {
    Numbers(Numbers),
    Queue(Box<QueueRecord>),
    /// The queue and every row that belongs to it is deleted.
    QueueGone(QueueId),
    Counters(QueueId, Box<QueueCounters>),
    Workflow(WorkflowKey, Option<Box<WorkflowRecord>>),
    State(WorkflowKey, Option<Bytes>),
    Message(MessageKey, Option<Arc<MessageRecord>>),
    Content(MessageKey, Option<MessageContent>),
    /// A place in a workflow's line.
    Line(WorkflowKey, u64, Option<SequenceNumber>),
    /// The place of a message that was set aside.
    Aside(WorkflowKey, u64, Option<SequenceNumber>),
    /// The follower of a message ID (`None`: of no message, that is the first).
    Link(WorkflowKey, Option<MessageId>, Option<ChainLink>),
    /// Which predecessor the message of this rank named, so that old links can be dropped.
    Trail(WorkflowKey, u64, Option<TrailEntry>),
    /// An early message of an after-ordered workflow whose predecessor is not stored.
    Root(WorkflowKey, SequenceNumber, bool),
    /// An early message of an after-ordered workflow, by its own message ID.
    Waiting(WorkflowKey, MessageId, Option<SequenceNumber>),
    /// A settled range, keyed by its first rank.
    Mark(WorkflowKey, u64, Option<MarkRecord>),
    Holding(WorkflowKey, Option<Holding>),
    /// The workflow that has this number in the ready list.
    Ready(QueueId, u64, Option<WorkflowRef>),
    Reminder(Reminder, bool),
    /// A dead letter, listed by reason and by workflow. The rank is 0 where it has none.
    DeadLetter(Box<DeadLetterKey>, bool),
    Duplicate(QueueId, MessageId, Option<Duplicate>),
    /// The answer that is kept for an idempotency key.
    Answer(QueueId, Arc<str>, Option<Arc<AnswerRecord>>),
    /// How many such answers a queue keeps, if any.
    AnswerCount(QueueId, Option<u64>),
    /// An entry of the audit, by its number.
    Audit(u64, Option<Arc<AuditEntry>>),
    /// An entry of a queue's history, by its number.
    History(QueueId, u64, Option<Arc<HistoryEntry>>),
    /// The number of the entry of a message.
    HistoryOfMessage(QueueId, SequenceNumber, Option<u64>),
    /// An entry, listed by workflow.
    HistoryOfWorkflow(WorkflowKey, u64, bool),
    /// The cursor of a forgotten workflow, listed by age.
    Cursor(WorkflowKey, Timestamp, Option<Cursor>),
    /// How many cursors a queue remembers, if it ever did.
    CursorCount(QueueId, Option<CursorCount>),
    /// A topic with its rules, by its name.
    Topic(QueueName, Option<Arc<TopicRecord>>),
    /// What was taken from the outbox of a partition.
    Handovers(u16, Option<Arc<HandoverMark>>),
}

/// The predecessor a message named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrailEntry {
    pub(crate) after: Option<MessageId>,
}

/// Where a dead letter is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeadLetterKey {
    pub(crate) workflow: WorkflowKey,
    pub(crate) rank: u64,
    pub(crate) sequence: SequenceNumber,
    pub(crate) reason: String,
}
