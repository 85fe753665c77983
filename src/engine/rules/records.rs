//! What the rules may look up and write: the face of the store towards the rules, without a word on how it stores.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::Change;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::due::Due;
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
use crate::error::Fault;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// The answer to a look-up: a row, or the fault that stops the engine.
pub(crate) type Read<T> = Result<T, Fault>;

/// Rows as they are after every change written so far, whether committed or not.
///
/// Every look-up costs at most a few steps down a tree; none scans what is blocked.
pub(crate) trait Records {
    /// Whether so much was written that the turn takes no more: what goes on for long ends its step then.
    fn is_full(&self) -> bool {
        false
    }
    /// Whether half of that was written: what is due leaves the rest of the turn to what is asked.
    fn is_half_full(&self) -> bool {
        false
    }
    fn numbers(&self) -> Read<Numbers>;
    fn queue(&self, id: QueueId) -> Read<Option<Arc<QueueRecord>>>;
    fn queue_named(&self, name: &QueueName) -> Read<Option<Arc<QueueRecord>>>;
    /// Up to `limit` queues in order of name, after the given one.
    fn queues(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<QueueRecord>>>;
    fn queue_count(&self) -> Read<usize>;
    fn counters(&self, queue: QueueId) -> Read<QueueCounters>;
    fn workflow(&self, key: &WorkflowKey) -> Read<Option<WorkflowRecord>>;
    /// Looks a workflow up into room for it; whether it is known. Its key becomes the one that is kept, if there is one: who goes on
    /// with that text shares it, so that comparing it with what is stored of the workflow is comparing two pointers.
    fn open_workflow(&self, key: &mut WorkflowKey, room: &mut WorkflowRecord) -> Read<bool> {
        Ok(put_found(self.workflow(key)?, room))
    }
    /// Up to `limit` workflows of the queue in order of stream, after the given one.
    fn workflows(
        &self,
        queue: QueueId,
        after: Option<&WorkflowRef>,
        limit: usize,
    ) -> Read<Vec<(WorkflowRef, WorkflowRecord)>>;
    fn state(&self, key: &WorkflowKey) -> Read<Option<Bytes>>;
    fn message(&self, key: MessageKey) -> Read<Option<Arc<MessageRecord>>>;
    /// The first message of the queue with at least this number.
    fn message_from(
        &self,
        queue: QueueId,
        from: SequenceNumber,
    ) -> Read<Option<(SequenceNumber, Arc<MessageRecord>)>>;
    fn content(&self, key: MessageKey) -> Read<Option<MessageContent>>;
    /// The content of a message that is stored.
    fn content_listed(&self, key: MessageKey) -> Read<MessageContent> {
        Ok(self.content(key)?.expect("every stored message has its content"))
    }
    /// The first place in the line with at least this rank.
    fn line_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>>;
    /// The first place set aside with at least this rank.
    fn aside_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>>;
    fn link(&self, key: &WorkflowKey, after: Option<&MessageId>) -> Read<Option<ChainLink>>;
    /// The first trail with at least this rank.
    fn trail_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, TrailEntry)>>;
    /// The root with the lowest sequence number that is at least this one.
    fn root_from(&self, key: &WorkflowKey, from: SequenceNumber) -> Read<Option<SequenceNumber>>;
    /// The early message of an after-ordered workflow that has this message ID.
    fn waiting(&self, key: &WorkflowKey, id: &MessageId) -> Read<Option<SequenceNumber>>;
    /// Any early message of an after-ordered workflow, always the same for the same rows.
    fn waiting_first(&self, key: &WorkflowKey) -> Read<Option<SequenceNumber>>;
    /// The settled range with the greatest first rank that is at most `rank`.
    fn mark_upto(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>>;
    /// The settled range with the smallest first rank that is at least `rank`.
    fn mark_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>>;
    /// The first holding after the given key (from the start for `None`).
    fn holding_after(&self, key: Option<&WorkflowKey>) -> Read<Option<(WorkflowKey, Holding)>>;
    /// The workflow with the lowest number in the queue's ready list.
    fn ready_from(&self, queue: QueueId, ticket: u64) -> Read<Option<(u64, WorkflowRef)>>;
    /// The first reminder in order from `from` on, of whichever clock.
    fn reminder_from(&self, from: Due) -> Read<Option<Reminder>>;
    /// The first dead letter of the workflow with at least this rank and number.
    fn dead_letter_of(
        &self,
        key: &WorkflowKey,
        from: (u64, SequenceNumber),
    ) -> Read<Option<(u64, SequenceNumber)>>;
    /// Up to `limit` dead letters of the queue in order of reason and number, from the given bound.
    fn dead_letters(
        &self,
        queue: QueueId,
        from: Bound<(&str, SequenceNumber)>,
        limit: usize,
    ) -> Read<Vec<(String, SequenceNumber)>>;
    fn duplicate(&self, queue: QueueId, id: &MessageId) -> Read<Option<Duplicate>>;
    /// The answer that is kept for an idempotency key.
    fn answer(&self, queue: QueueId, key: &Arc<str>) -> Read<Option<Arc<AnswerRecord>>>;
    /// How many such answers the queue keeps.
    fn answer_count(&self, queue: QueueId) -> Read<u64>;
    /// The entry of the audit with this number.
    fn audit(&self, number: u64) -> Read<Option<Arc<AuditEntry>>>;
    /// The newest entry of the audit.
    fn audit_last(&self) -> Read<Option<Arc<AuditEntry>>>;
    /// Up to `limit` entries of the audit in order of number, after the given one.
    fn audit_after(&self, number: u64, limit: usize) -> Read<Vec<Arc<AuditEntry>>>;
    /// The entry of the queue's history with this number.
    fn history(&self, queue: QueueId, number: u64) -> Read<Option<Arc<HistoryEntry>>>;
    /// The number of the entry of a message.
    fn history_of_message(&self, queue: QueueId, sequence: SequenceNumber) -> Read<Option<u64>>;
    /// The number of the workflow's last entry up to a number.
    fn history_of_workflow(&self, key: &WorkflowKey, upto: u64) -> Read<Option<u64>>;
    /// The cursor that is remembered of a forgotten workflow.
    fn cursor(&self, key: &WorkflowKey) -> Read<Option<Cursor>>;
    /// The oldest cursor that the queue remembers: since when, and of which workflow.
    fn cursor_oldest(&self, queue: QueueId) -> Read<Option<(Timestamp, WorkflowKey)>>;
    /// How many cursors the queue remembers.
    fn cursor_count(&self, queue: QueueId) -> Read<CursorCount>;
    fn topic(&self, name: &QueueName) -> Read<Option<Arc<TopicRecord>>>;
    /// What was taken from the outbox of a partition.
    fn handover_mark(&self, partition: u16) -> Read<Option<Arc<HandoverMark>>>;
    /// Up to `limit` topics in order of name, after the given one.
    fn topics(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<TopicRecord>>>;
}

/// Puts what was found into room for it, or what is there before anything is known; whether something was found.
pub(crate) fn put_found<T: Default>(found: Option<T>, room: &mut T) -> bool {
    let is_found = found.is_some();
    *room = found.unwrap_or_default();
    is_found
}

/// Rows that a turn changes. What is written takes effect at once for later look-ups, and on disk with the turn's commit.
pub(crate) trait MutableRecords: Records {
    /// Begins a trial: whatever is written from now on is taken back by `roll_back`, as if it had not been. In a trial no
    /// queue is created, changed or deleted.
    fn begin_trial(&mut self);
    /// Ends a trial.
    fn roll_back(&mut self);
    /// Puts or deletes a row.
    fn write(&mut self, change: Change) -> Result<(), Fault>;

    /// Puts or deletes a workflow. This and those below are [`MutableRecords::write`] for what every command does again and
    /// again: no change is put together, and no key copied.
    fn write_workflow(&mut self, key: &WorkflowKey, record: Option<WorkflowRecord>) -> Result<(), Fault> {
        self.write(Change::Workflow(key.clone(), record.map(Box::new)))
    }

    /// Puts or deletes a message.
    fn write_message(&mut self, key: MessageKey, record: Option<Arc<MessageRecord>>) -> Result<(), Fault> {
        self.write(Change::Message(key, record))
    }

    /// Changes a message that was looked up, and returns it as it is now: in its place, if nobody else has it.
    fn update_message(
        &mut self,
        key: MessageKey,
        mut found: Arc<MessageRecord>,
        change: &mut dyn FnMut(&mut MessageRecord),
    ) -> Read<Arc<MessageRecord>> {
        change(Arc::make_mut(&mut found));
        self.write_message(key, Some(found.clone()))?;
        Ok(found)
    }

    /// Puts or deletes what does not change of a message.
    fn write_content(&mut self, key: MessageKey, content: Option<MessageContent>) -> Result<(), Fault> {
        self.write(Change::Content(key, content))
    }

    /// Puts a message into a workflow's line, or takes it out.
    fn write_line(
        &mut self,
        key: &WorkflowKey,
        rank: u64,
        entry: Option<SequenceNumber>,
    ) -> Result<(), Fault> {
        self.write(Change::Line(key.clone(), rank, entry))
    }

    /// Puts a workflow into its queue's ready list, or takes it out.
    fn write_ready(&mut self, key: &WorkflowKey, ticket: u64, is_ready: bool) -> Result<(), Fault> {
        self.write(Change::Ready(key.queue, ticket, is_ready.then(|| key.stream.clone())))
    }

    /// Writes down what a workflow's holder has out, or that it has none.
    fn write_holding(&mut self, key: &WorkflowKey, holding: Option<Holding>) -> Result<(), Fault> {
        self.write(Change::Holding(key.clone(), holding))
    }
}
