//! The store's face towards the rules: look-ups in the turn's tables.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::audit::AuditEntry;
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
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::records::put_found;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::checksum::damaged;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::memtables::Memtables;
use crate::engine::store::schema;
use crate::engine::store::table::Table;
use crate::engine::store::turn::Turn;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::lookup::RecentKey;

impl Records for Turn<'_> {
    fn is_full(&self) -> bool {
        self.written.bytes >= self.bytes_max || self.written.rows >= limits::TURN_ROWS_MAX
    }

    fn is_half_full(&self) -> bool {
        self.written.bytes >= self.bytes_max / 2
    }

    fn numbers(&self) -> Read<Numbers> {
        Ok(self.meta.numbers)
    }

    fn queue(&self, id: QueueId) -> Read<Option<Arc<QueueRecord>>> {
        Ok(self.meta.queues.get(&id).cloned())
    }

    fn queue_named(&self, name: &QueueName) -> Read<Option<Arc<QueueRecord>>> {
        if let Some(last) = self.last_named.borrow().as_ref().filter(|last| last.name == *name) {
            return Ok(Some(last.clone()));
        }
        let found = self.meta.names.get(name).and_then(|id| self.meta.queues.get(id)).cloned();
        self.last_named.replace(found.clone());
        Ok(found)
    }

    fn queues(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<QueueRecord>>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let ids = self.meta.names.range::<QueueName, _>((from, Bound::Unbounded)).take(limit);
        Ok(ids.filter_map(|(_, id)| self.meta.queues.get(id)).cloned().collect())
    }

    fn queue_count(&self) -> Read<usize> {
        Ok(self.meta.queues.len())
    }

    fn counters(&self, queue: QueueId) -> Read<QueueCounters> {
        Ok(self.meta.counters.get(&queue).copied().unwrap_or_default())
    }

    fn workflow(&self, key: &WorkflowKey) -> Read<Option<WorkflowRecord>> {
        self.memtables.workflows.get(&self.memtables.of_workflows, &self.base, key, &())
    }

    fn open_workflow(&self, key: &mut WorkflowKey, room: &mut WorkflowRecord) -> Read<bool> {
        if let Some((kept, record)) = self.memtables.of_workflows.kept(key) {
            // Who has it from a lock or a list has that text already.
            if key.hint() != kept.hint() {
                key.stream = kept.stream.clone();
            }
            if let Some(record) = record {
                room.clone_from(record);
                return Ok(true);
            }
        }
        Ok(put_found(self.workflow(key)?, room))
    }

    fn workflows(
        &self,
        queue: QueueId,
        after: Option<&WorkflowRef>,
        limit: usize,
    ) -> Read<Vec<(WorkflowRef, WorkflowRecord)>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let Memtables { of_workflows, workflows, .. } = &*self.memtables;
        workflows.page_of_queue(of_workflows, &self.base, queue, from, limit)
    }

    fn state(&self, key: &WorkflowKey) -> Read<Option<Bytes>> {
        self.memtables.states.get(&self.base, &key.queue, &key.stream)
    }

    fn message(&self, key: MessageKey) -> Read<Option<Arc<MessageRecord>>> {
        self.memtables.messages.get(&self.memtables.of_messages, &self.base, &key, &())
    }

    fn message_from(
        &self,
        queue: QueueId,
        from: SequenceNumber,
    ) -> Read<Option<(SequenceNumber, Arc<MessageRecord>)>> {
        let Memtables { of_messages, messages, .. } = &*self.memtables;
        messages.first_of_queue(of_messages, &self.base, queue, &from)
    }

    fn content(&self, key: MessageKey) -> Read<Option<MessageContent>> {
        self.memtables.contents.get(&self.memtables.of_messages, &self.base, &key, &())
    }

    fn line_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        self.memtables.line.first(&self.memtables.of_workflows, &self.base, key, &rank)
    }

    fn aside_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        self.memtables.aside.first(&self.base, key, &rank)
    }

    fn link(&self, key: &WorkflowKey, after: Option<&MessageId>) -> Read<Option<ChainLink>> {
        self.memtables.links.get(&self.base, key, &after.cloned())
    }

    fn trail_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, TrailEntry)>> {
        self.memtables.trails.first(&self.base, key, &rank)
    }

    fn root_from(&self, key: &WorkflowKey, from: SequenceNumber) -> Read<Option<SequenceNumber>> {
        Ok(self.memtables.roots.first(&self.base, key, &from)?.map(|(sequence, ())| sequence))
    }

    fn waiting(&self, key: &WorkflowKey, id: &MessageId) -> Read<Option<SequenceNumber>> {
        self.memtables.waiting.get(&self.base, key, id)
    }

    fn waiting_first(&self, key: &WorkflowKey) -> Read<Option<SequenceNumber>> {
        // From the very first, so that what waited before is not passed over again each time.
        let first = self.memtables.waiting.first(&self.base, key, &MessageId::before_all())?;
        Ok(first.map(|(_, sequence)| sequence))
    }

    fn mark_upto(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>> {
        Ok(self.memtables.marks.last(&self.base, key, &rank)?.map(|(_, mark)| mark))
    }

    fn mark_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>> {
        Ok(self.memtables.marks.first(&self.base, key, &rank)?.map(|(_, mark)| mark))
    }

    fn holding_after(&self, key: Option<&WorkflowKey>) -> Read<Option<(WorkflowKey, Holding)>> {
        let from = key.map_or(QueueId(0), |key| key.queue);
        for queue in self.meta.queues.range(from..).map(|(queue, _)| *queue) {
            let Memtables { of_workflows, holdings, .. } = &*self.memtables;
            let found = match key.filter(|key| key.queue == queue) {
                Some(key) => {
                    let after = Bound::Excluded(&key.stream);
                    holdings.page_of_queue(of_workflows, &self.base, queue, after, 1)?.pop()
                }
                // From the very first, so that what was given back before is not passed over again each time.
                None => holdings.first_of_queue(of_workflows, &self.base, queue, &WorkflowRef::FIRST)?,
            };
            if let Some((stream, holding)) = found {
                return Ok(Some((WorkflowKey { queue, stream }, holding)));
            }
        }
        Ok(None)
    }

    fn ready_from(&self, queue: QueueId, ticket: u64) -> Read<Option<(u64, WorkflowRef)>> {
        self.memtables.ready.first(&self.base, &queue, &ticket)
    }

    fn reminder_from(&self, from: Due) -> Read<Option<Reminder>> {
        let Some((key, ())) = self.memtables.reminders.first(&self.base, &(), &ReminderKey::first(from))?
        else {
            return Ok(None);
        };
        let nonsense = || damaged(&schema::Reminders::DEFINITION, "a key makes no sense");
        key.reminder().map(Some).ok_or_else(nonsense)
    }

    fn dead_letter_of(
        &self,
        key: &WorkflowKey,
        from: (u64, SequenceNumber),
    ) -> Read<Option<(u64, SequenceNumber)>> {
        Ok(self.memtables.dead_by_workflow.first(&self.base, key, &from)?.map(|(place, ())| place))
    }

    fn dead_letters(
        &self,
        queue: QueueId,
        from: Bound<(&str, SequenceNumber)>,
        limit: usize,
    ) -> Read<Vec<(String, SequenceNumber)>> {
        let from = from.map(|(reason, sequence)| (reason.to_owned(), sequence));
        let page = self.memtables.dead_by_reason.page(&self.base, &queue, from.as_ref(), limit)?;
        Ok(page.into_iter().map(|(key, ())| key).collect())
    }

    fn duplicate(&self, queue: QueueId, id: &MessageId) -> Read<Option<Duplicate>> {
        self.memtables.duplicates.get(&self.base, &queue, id)
    }

    fn answer(&self, queue: QueueId, key: &Arc<str>) -> Read<Option<Arc<AnswerRecord>>> {
        self.memtables.answers.get(&self.base, &queue, key)
    }

    fn topic(&self, name: &QueueName) -> Read<Option<Arc<TopicRecord>>> {
        self.memtables.topics.get(&self.base, &(), name)
    }

    fn handover_mark(&self, partition: u16) -> Read<Option<Arc<HandoverMark>>> {
        self.memtables.handovers.get(&self.base, &(), &u64::from(partition))
    }

    fn topics(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<TopicRecord>>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = self.memtables.topics.page(&self.base, &(), from, limit)?;
        Ok(page.into_iter().map(|(_, topic)| topic).collect())
    }

    fn audit(&self, number: u64) -> Read<Option<Arc<AuditEntry>>> {
        self.memtables.audit.get(&self.base, &(), &number)
    }

    fn audit_last(&self) -> Read<Option<Arc<AuditEntry>>> {
        Ok(self.memtables.audit.last(&self.base, &(), &u64::MAX)?.map(|(_, entry)| entry))
    }

    fn audit_after(&self, number: u64, limit: usize) -> Read<Vec<Arc<AuditEntry>>> {
        let page = self.memtables.audit.page(&self.base, &(), Bound::Excluded(&number), limit)?;
        Ok(page.into_iter().map(|(_, entry)| entry).collect())
    }

    fn answer_count(&self, queue: QueueId) -> Read<u64> {
        Ok(self.memtables.answer_counts.get(&self.base, &queue, &())?.unwrap_or_default())
    }

    fn history(&self, queue: QueueId, number: u64) -> Read<Option<Arc<HistoryEntry>>> {
        self.memtables.history.get(&self.base, &queue, &number)
    }

    fn history_of_message(&self, queue: QueueId, sequence: SequenceNumber) -> Read<Option<u64>> {
        self.memtables.history_by_message.get(&self.base, &queue, &sequence)
    }

    fn history_of_workflow(&self, key: &WorkflowKey, upto: u64) -> Read<Option<u64>> {
        Ok(self.memtables.history_by_workflow.last(&self.base, key, &upto)?.map(|(number, ())| number))
    }

    fn cursor(&self, key: &WorkflowKey) -> Read<Option<Cursor>> {
        self.memtables.cursors.get(&self.base, &key.queue, &key.stream)
    }

    fn cursor_oldest(&self, queue: QueueId) -> Read<Option<(Timestamp, WorkflowKey)>> {
        // From the very first, so that what was forgotten before is not passed over again each time.
        let first = (Timestamp::default(), WorkflowRef::FIRST);
        let oldest = self.memtables.cursors_by_age.first(&self.base, &queue, &first)?;
        Ok(oldest.map(|((since, stream), ())| (since, WorkflowKey { queue, stream })))
    }

    fn cursor_count(&self, queue: QueueId) -> Read<CursorCount> {
        Ok(self.memtables.cursor_counts.get(&self.base, &queue, &())?.unwrap_or_default())
    }
}
