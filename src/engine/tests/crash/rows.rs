//! The rows as plain maps: what a store has to answer, said in the simplest way, to compare a real one with.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashSet;
use std::mem::Discriminant;
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
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::error::Fault;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;

type Places = BTreeMap<(WorkflowKey, u64), SequenceNumber>;

/// Every row there is.
#[derive(Clone, Default)]
pub(crate) struct Rows {
    /// What they were before a trial.
    trial: Option<Box<Rows>>,
    /// How many changes were written.
    pub(crate) changes: u64,
    /// Of which kinds they were.
    pub(crate) kinds: HashSet<Discriminant<Change>>,
    pub(crate) numbers: Numbers,
    pub(crate) queues: BTreeMap<QueueId, Arc<QueueRecord>>,
    pub(crate) counters: BTreeMap<QueueId, QueueCounters>,
    pub(crate) workflows: BTreeMap<WorkflowKey, WorkflowRecord>,
    pub(crate) states: BTreeMap<WorkflowKey, Bytes>,
    pub(crate) messages: BTreeMap<MessageKey, Arc<MessageRecord>>,
    pub(crate) contents: BTreeMap<MessageKey, MessageContent>,
    pub(crate) line: Places,
    pub(crate) aside: Places,
    pub(crate) links: BTreeMap<(WorkflowKey, Option<MessageId>), ChainLink>,
    pub(crate) trails: BTreeMap<(WorkflowKey, u64), TrailEntry>,
    pub(crate) roots: BTreeSet<(WorkflowKey, SequenceNumber)>,
    pub(crate) waiting: BTreeMap<(WorkflowKey, MessageId), SequenceNumber>,
    pub(crate) marks: BTreeMap<(WorkflowKey, u64), MarkRecord>,
    pub(crate) holdings: BTreeMap<WorkflowKey, Holding>,
    pub(crate) ready: BTreeMap<(QueueId, u64), WorkflowRef>,
    /// By instant, queue and bytes: those of one instant come in an order that must not change from file to file.
    pub(crate) reminders: BTreeMap<(Due, QueueId, Vec<u8>), Reminder>,
    pub(crate) dead_by_workflow: BTreeSet<(WorkflowKey, u64, SequenceNumber)>,
    dead_by_reason: BTreeSet<(QueueId, String, SequenceNumber)>,
    pub(crate) duplicates: BTreeMap<(QueueId, MessageId), Duplicate>,
    pub(crate) answers: BTreeMap<(QueueId, Arc<str>), Arc<AnswerRecord>>,
    pub(crate) answer_counts: BTreeMap<QueueId, u64>,
    pub(crate) audit: BTreeMap<u64, Arc<AuditEntry>>,
    pub(crate) topics: BTreeMap<QueueName, Arc<TopicRecord>>,
    pub(crate) handovers: BTreeMap<u16, Arc<HandoverMark>>,
    pub(crate) history: BTreeMap<(QueueId, u64), Arc<HistoryEntry>>,
    pub(crate) history_by_message: BTreeMap<(QueueId, SequenceNumber), u64>,
    pub(crate) history_by_workflow: BTreeSet<(WorkflowKey, u64)>,
    pub(crate) cursors: BTreeMap<WorkflowKey, Cursor>,
    pub(crate) cursors_by_age: BTreeSet<(QueueId, Timestamp, WorkflowRef)>,
    pub(crate) cursor_counts: BTreeMap<QueueId, CursorCount>,
}

/// Puts or deletes a row of a map.
fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

/// Puts or deletes a row that is only a key.
fn list<K: Ord>(set: &mut BTreeSet<K>, key: K, there: bool) {
    match there {
        true => drop(set.insert(key)),
        false => drop(set.remove(&key)),
    }
}

/// The first row of a workflow at or after a rank.
fn ranked_from<V: Clone>(
    map: &BTreeMap<(WorkflowKey, u64), V>,
    key: &WorkflowKey,
    rank: u64,
) -> Option<(u64, V)> {
    let ((of, rank), value) = map.range((key.clone(), rank)..).next()?;
    (of == key).then(|| (*rank, value.clone()))
}

impl Rows {
    /// The reminders that are due at an instant or later, those of engine time first.
    pub(crate) fn reminders_from(&self, from: Due) -> impl Iterator<Item = &Reminder> {
        self.reminders.range((from, QueueId(0), Vec::new())..).map(|(_, reminder)| reminder)
    }

    /// Its reminders stay; they are dropped when they are due.
    fn delete_queue(&mut self, gone: QueueId) {
        self.queues.remove(&gone);
        self.counters.remove(&gone);
        self.workflows.retain(|key, _| key.queue != gone);
        self.states.retain(|key, _| key.queue != gone);
        self.messages.retain(|key, _| key.queue != gone);
        self.contents.retain(|key, _| key.queue != gone);
        self.line.retain(|(key, _), _| key.queue != gone);
        self.aside.retain(|(key, _), _| key.queue != gone);
        self.links.retain(|(key, _), _| key.queue != gone);
        self.trails.retain(|(key, _), _| key.queue != gone);
        self.roots.retain(|(key, _)| key.queue != gone);
        self.waiting.retain(|(key, _), _| key.queue != gone);
        self.marks.retain(|(key, _), _| key.queue != gone);
        self.holdings.retain(|key, _| key.queue != gone);
        self.ready.retain(|(queue, _), _| *queue != gone);
        self.dead_by_workflow.retain(|(key, _, _)| key.queue != gone);
        self.dead_by_reason.retain(|(queue, _, _)| *queue != gone);
        self.duplicates.retain(|(queue, _), _| *queue != gone);
        self.answers.retain(|(queue, _), _| *queue != gone);
        self.answer_counts.remove(&gone);
        self.history.retain(|(queue, _), _| *queue != gone);
        self.history_by_message.retain(|(queue, _), _| *queue != gone);
        self.history_by_workflow.retain(|(key, _)| key.queue != gone);
        self.cursors.retain(|key, _| key.queue != gone);
        self.cursors_by_age.retain(|(queue, _, _)| *queue != gone);
        self.cursor_counts.remove(&gone);
    }
}

impl Records for Rows {
    fn numbers(&self) -> Read<Numbers> {
        Ok(self.numbers)
    }

    fn queue(&self, id: QueueId) -> Read<Option<Arc<QueueRecord>>> {
        Ok(self.queues.get(&id).cloned())
    }

    fn queue_named(&self, name: &QueueName) -> Read<Option<Arc<QueueRecord>>> {
        Ok(self.queues.values().find(|queue| queue.name == *name).cloned())
    }

    fn queues(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<QueueRecord>>> {
        let later = self.queues.values().filter(|queue| after.is_none_or(|after| queue.name > *after));
        let mut later: Vec<Arc<QueueRecord>> = later.cloned().collect();
        later.sort_by(|one, other| one.name.cmp(&other.name));
        later.truncate(limit);
        Ok(later)
    }

    fn queue_count(&self) -> Read<usize> {
        Ok(self.queues.len())
    }

    fn counters(&self, queue: QueueId) -> Read<QueueCounters> {
        Ok(self.counters.get(&queue).copied().unwrap_or_default())
    }

    fn workflow(&self, key: &WorkflowKey) -> Read<Option<WorkflowRecord>> {
        Ok(self.workflows.get(key).cloned())
    }

    fn workflows(
        &self,
        queue: QueueId,
        after: Option<&WorkflowRef>,
        limit: usize,
    ) -> Read<Vec<(WorkflowRef, WorkflowRecord)>> {
        let of_queue = self.workflows.iter().filter(|(key, _)| key.queue == queue);
        let later = of_queue.filter(|(key, _)| after.is_none_or(|after| key.stream > *after));
        Ok(later.map(|(key, record)| (key.stream.clone(), record.clone())).take(limit).collect())
    }

    fn state(&self, key: &WorkflowKey) -> Read<Option<Bytes>> {
        Ok(self.states.get(key).cloned())
    }

    fn message(&self, key: MessageKey) -> Read<Option<Arc<MessageRecord>>> {
        Ok(self.messages.get(&key).cloned())
    }

    fn message_from(
        &self,
        queue: QueueId,
        from: SequenceNumber,
    ) -> Read<Option<(SequenceNumber, Arc<MessageRecord>)>> {
        let next = self.messages.range(MessageKey { queue, sequence: from }..).next();
        Ok(next.filter(|(key, _)| key.queue == queue).map(|(key, record)| (key.sequence, record.clone())))
    }

    fn content(&self, key: MessageKey) -> Read<Option<MessageContent>> {
        Ok(self.contents.get(&key).cloned())
    }

    fn line_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        Ok(ranked_from(&self.line, key, rank))
    }

    fn aside_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        Ok(ranked_from(&self.aside, key, rank))
    }

    fn link(&self, key: &WorkflowKey, after: Option<&MessageId>) -> Read<Option<ChainLink>> {
        Ok(self.links.get(&(key.clone(), after.cloned())).cloned())
    }

    fn trail_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, TrailEntry)>> {
        let trails = self.trails.range((key.clone(), rank)..).next();
        Ok(trails.filter(|((of, _), _)| of == key).map(|((_, rank), trail)| (*rank, trail.clone())))
    }

    fn root_from(&self, key: &WorkflowKey, from: SequenceNumber) -> Read<Option<SequenceNumber>> {
        let mut of_workflow = self.roots.iter().filter(|(of, _)| of == key);
        Ok(of_workflow.find(|(_, sequence)| *sequence >= from).map(|(_, sequence)| *sequence))
    }

    fn waiting(&self, key: &WorkflowKey, id: &MessageId) -> Read<Option<SequenceNumber>> {
        Ok(self.waiting.get(&(key.clone(), id.clone())).copied())
    }

    fn waiting_first(&self, key: &WorkflowKey) -> Read<Option<SequenceNumber>> {
        Ok(self.waiting.iter().find(|((of, _), _)| of == key).map(|(_, sequence)| *sequence))
    }

    fn mark_upto(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>> {
        let last = self.marks.range(..=(key.clone(), rank)).next_back();
        Ok(last.filter(|((of, _), _)| of == key).map(|(_, mark)| *mark))
    }

    fn mark_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>> {
        Ok(ranked_from(&self.marks, key, rank).map(|(_, mark)| mark))
    }

    fn holding_after(&self, key: Option<&WorkflowKey>) -> Read<Option<(WorkflowKey, Holding)>> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.holdings.range::<WorkflowKey, _>((from, Bound::Unbounded)).next();
        Ok(next.map(|(key, holding)| (key.clone(), holding.clone())))
    }

    fn ready_from(&self, queue: QueueId, ticket: u64) -> Read<Option<(u64, WorkflowRef)>> {
        let first = self.ready.range((queue, ticket)..).next();
        Ok(first.filter(|((of, _), _)| *of == queue).map(|((_, ticket), stream)| (*ticket, stream.clone())))
    }

    fn reminder_from(&self, from: Due) -> Read<Option<Reminder>> {
        Ok(self.reminders_from(from).next().cloned())
    }

    fn dead_letter_of(
        &self,
        key: &WorkflowKey,
        from: (u64, SequenceNumber),
    ) -> Read<Option<(u64, SequenceNumber)>> {
        let first = self.dead_by_workflow.range((key.clone(), from.0, from.1)..).next();
        Ok(first.filter(|(of, _, _)| of == key).map(|(_, rank, sequence)| (*rank, *sequence)))
    }

    fn dead_letters(
        &self,
        queue: QueueId,
        from: Bound<(&str, SequenceNumber)>,
        limit: usize,
    ) -> Read<Vec<(String, SequenceNumber)>> {
        let is_wanted = |reason: &str, sequence: SequenceNumber| match from {
            Bound::Included(from) => (reason, sequence) >= from,
            Bound::Excluded(from) => (reason, sequence) > from,
            Bound::Unbounded => true,
        };
        let of_queue = self.dead_by_reason.iter().filter(|(of, _, _)| *of == queue);
        let wanted = of_queue.filter(|(_, reason, sequence)| is_wanted(reason, *sequence));
        Ok(wanted.map(|(_, reason, sequence)| (reason.clone(), *sequence)).take(limit).collect())
    }

    fn duplicate(&self, queue: QueueId, id: &MessageId) -> Read<Option<Duplicate>> {
        Ok(self.duplicates.get(&(queue, id.clone())).copied())
    }

    fn answer(&self, queue: QueueId, key: &Arc<str>) -> Read<Option<Arc<AnswerRecord>>> {
        Ok(self.answers.get(&(queue, key.clone())).cloned())
    }

    fn answer_count(&self, queue: QueueId) -> Read<u64> {
        Ok(self.answer_counts.get(&queue).copied().unwrap_or_default())
    }

    fn topic(&self, name: &QueueName) -> Read<Option<Arc<TopicRecord>>> {
        Ok(self.topics.get(name).cloned())
    }

    fn handover_mark(&self, partition: u16) -> Read<Option<Arc<HandoverMark>>> {
        Ok(self.handovers.get(&partition).cloned())
    }

    fn topics(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<TopicRecord>>> {
        let later = self.topics.values().filter(|topic| after.is_none_or(|after| topic.name > *after));
        Ok(later.take(limit).cloned().collect())
    }

    fn audit(&self, number: u64) -> Read<Option<Arc<AuditEntry>>> {
        Ok(self.audit.get(&number).cloned())
    }

    fn audit_last(&self) -> Read<Option<Arc<AuditEntry>>> {
        Ok(self.audit.values().next_back().cloned())
    }

    fn audit_after(&self, number: u64, limit: usize) -> Read<Vec<Arc<AuditEntry>>> {
        Ok(self.audit.range(number + 1..).map(|(_, entry)| entry.clone()).take(limit).collect())
    }

    fn history(&self, queue: QueueId, number: u64) -> Read<Option<Arc<HistoryEntry>>> {
        Ok(self.history.get(&(queue, number)).cloned())
    }

    fn history_of_message(&self, queue: QueueId, sequence: SequenceNumber) -> Read<Option<u64>> {
        Ok(self.history_by_message.get(&(queue, sequence)).copied())
    }

    fn history_of_workflow(&self, key: &WorkflowKey, upto: u64) -> Read<Option<u64>> {
        let last = self.history_by_workflow.range(..=(key.clone(), upto)).next_back();
        Ok(last.filter(|(of, _)| of == key).map(|(_, number)| *number))
    }

    fn cursor(&self, key: &WorkflowKey) -> Read<Option<Cursor>> {
        Ok(self.cursors.get(key).copied())
    }

    fn cursor_oldest(&self, queue: QueueId) -> Read<Option<(Timestamp, WorkflowKey)>> {
        let oldest = self.cursors_by_age.iter().find(|(of, _, _)| *of == queue);
        Ok(oldest.map(|(_, since, stream)| (*since, WorkflowKey { queue, stream: stream.clone() })))
    }

    fn cursor_count(&self, queue: QueueId) -> Read<CursorCount> {
        Ok(self.cursor_counts.get(&queue).copied().unwrap_or_default())
    }
}

impl MutableRecords for Rows {
    fn begin_trial(&mut self) {
        self.trial = Some(Box::new(self.clone()));
    }

    fn roll_back(&mut self) {
        let before = self.trial.take().expect("only a trial that has begun can end");
        *self = *before;
    }

    fn write(&mut self, change: Change) -> Result<(), Fault> {
        self.changes += 1;
        self.kinds.insert(std::mem::discriminant(&change));
        match change {
            Change::Numbers(numbers) => self.numbers = numbers,
            Change::Queue(record) => drop(self.queues.insert(record.id, Arc::from(record))),
            Change::QueueGone(queue) => self.delete_queue(queue),
            Change::Counters(queue, counters) => drop(self.counters.insert(queue, *counters)),
            Change::Workflow(key, record) => put(&mut self.workflows, key, record.map(|record| *record)),
            Change::State(key, state) => put(&mut self.states, key, state),
            Change::Message(key, record) => put(&mut self.messages, key, record),
            Change::Content(key, content) => put(&mut self.contents, key, content),
            Change::Line(key, rank, entry) => put(&mut self.line, (key, rank), entry),
            Change::Aside(key, rank, entry) => put(&mut self.aside, (key, rank), entry),
            Change::Link(key, after, link) => put(&mut self.links, (key, after), link),
            Change::Trail(key, rank, entry) => put(&mut self.trails, (key, rank), entry),
            Change::Root(key, sequence, there) => list(&mut self.roots, (key, sequence), there),
            Change::Waiting(key, id, entry) => put(&mut self.waiting, (key, id), entry),
            Change::Mark(key, rank, mark) => put(&mut self.marks, (key, rank), mark),
            Change::Holding(key, holding) => put(&mut self.holdings, key, holding),
            Change::Ready(queue, ticket, stream) => put(&mut self.ready, (queue, ticket), stream),
            Change::Reminder(reminder, there) => {
                let bytes = postcard::to_stdvec(&reminder.what).expect("a reminder has bytes");
                let key = (reminder.due, reminder.queue, bytes);
                put(&mut self.reminders, key, there.then_some(reminder));
            }
            Change::DeadLetter(key, there) => {
                let queue = key.workflow.queue;
                list(&mut self.dead_by_workflow, (key.workflow, key.rank, key.sequence), there);
                list(&mut self.dead_by_reason, (queue, key.reason, key.sequence), there);
            }
            Change::Duplicate(queue, id, entry) => put(&mut self.duplicates, (queue, id), entry),
            Change::Answer(queue, key, answered) => put(&mut self.answers, (queue, key), answered),
            Change::Topic(name, topic) => put(&mut self.topics, name, topic),
            Change::Handovers(partition, mark) => put(&mut self.handovers, partition, mark),
            Change::Audit(number, entry) => put(&mut self.audit, number, entry),
            Change::AnswerCount(queue, count) => put(&mut self.answer_counts, queue, count),
            Change::History(queue, number, entry) => put(&mut self.history, (queue, number), entry),
            Change::HistoryOfMessage(queue, sequence, entry) => {
                put(&mut self.history_by_message, (queue, sequence), entry);
            }
            Change::HistoryOfWorkflow(key, number, there) => {
                list(&mut self.history_by_workflow, (key, number), there);
            }
            Change::Cursor(key, since, cursor) => {
                let listed = (key.queue, since, key.stream.clone());
                list(&mut self.cursors_by_age, listed, cursor.is_some());
                put(&mut self.cursors, key, cursor);
            }
            Change::CursorCount(queue, count) => put(&mut self.cursor_counts, queue, count),
        }
        Ok(())
    }
}
