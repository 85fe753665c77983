//! All that can be looked up, as one number: whatever the layout, the same rows give the same number.

use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Records;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::tests::crash::random_messages::WORKFLOWS;
use crate::engine::tests::crash::story;
use crate::engine::tests::crash::story::keys;
use crate::engine::tests::crash::story::message_ids;
use crate::error::Fault;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::Order;

/// The highest rank whose trail is looked up; positions and ordinals of a story are lower.
const TRAILS: u64 = 16;

/// The newest entries of each history that are looked up.
const HISTORY_SHOWN: usize = 100;

/// More rows than any story has: a walk that finds as many goes round in circles.
const ROWS_MAX: usize = 10_000;

/// A walk over all rows; it says what it found as a number, or as lines to compare by eye.
#[derive(Default)]
pub(crate) struct Listing {
    hasher: Xxh3,
    bytes: Vec<u8>,
    lines: Option<Vec<String>>,
    rows: usize,
}

impl Listing {
    /// The number of all rows. It uses up the reminders and ready lists, of which only the first can be looked up, so
    /// the turn must not be committed.
    pub(crate) fn number(records: &mut dyn MutableRecords) -> Result<u64, Fault> {
        let mut listing = Listing::default();
        listing.add_all(records)?;
        Ok(listing.hasher.digest())
    }

    /// The number of what can be looked up without writing.
    pub(crate) fn surface(records: &dyn Records) -> Result<u64, Fault> {
        let mut listing = Listing::default();
        listing.add_surface(records)?;
        Ok(listing.hasher.digest())
    }

    /// All rows as lines; like [`Listing::number`], it uses rows up.
    pub(crate) fn lines(records: &mut dyn MutableRecords) -> Result<Vec<String>, Fault> {
        let mut listing = Listing { lines: Some(Vec::new()), ..Listing::default() };
        listing.add_all(records)?;
        Ok(listing.lines.unwrap_or_default())
    }

    /// False in a damaged file whose keys are in no order; the number is then that of no state.
    fn goes_on(&self) -> bool {
        self.rows < ROWS_MAX
    }

    fn add(&mut self, what: &str, row: &(impl Serialize + Debug)) {
        self.rows += 1;
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{what} {row:?}"));
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(&(what, row), bytes).expect("every row has bytes");
        self.hasher.update(&self.bytes);
        self.bytes.clear();
    }

    fn add_all(&mut self, records: &mut dyn MutableRecords) -> Result<(), Fault> {
        self.add_surface(records)?;
        for queue in records.queues(None, limits::QUEUES_MAX)? {
            while let Some((ticket, stream)) = records.ready_from(queue.id, 0)?
                && self.goes_on()
            {
                self.add("ready", &(queue.id, ticket, &stream));
                records.write(Change::Ready(queue.id, ticket, None))?;
            }
        }
        while let Some(reminder) = first_reminder(records)?
            && self.goes_on()
        {
            self.add("reminder", &reminder);
            records.write(Change::Reminder(reminder, false))?;
        }
        Ok(())
    }

    fn add_surface(&mut self, records: &dyn Records) -> Result<(), Fault> {
        self.add("numbers", &(records.numbers()?, records.queue_count()?));
        for queue in records.queues(None, limits::QUEUES_MAX)? {
            self.add_queue(records, &queue)?;
        }
        for topic in records.topics(None, limits::TOPICS_MAX)? {
            self.add("topic", &topic);
            for key in keys() {
                let text = Arc::from(format!("{}/{}", topic.number, key.as_str()));
                self.add("answer of a topic", &records.answer(QueueId::OF_TOPICS, &text)?);
            }
        }
        self.add("handovers", &records.handover_mark(story::SOURCE)?);
        self.add("answers of topics", &records.answer_count(QueueId::OF_TOPICS)?);
        self.add("reminder", &first_reminder(records)?);
        self.add("audit", &(records.audit_after(0, limits::PAGE_MAX)?, records.audit_last()?));
        let mut after = None;
        while let Some((key, holding)) = records.holding_after(after.as_ref())?
            && self.goes_on()
        {
            self.add("holding", &(&key, holding));
            after = Some(key);
        }
        Ok(())
    }

    fn add_queue(&mut self, records: &dyn Records, queue: &QueueRecord) -> Result<(), Fault> {
        let named = records.queue_named(&queue.name)?.map(|named| named.id);
        self.add("queue", &(queue, named, records.queue(queue.id)?.is_some()));
        self.add("tally", &records.counters(queue.id)?);
        self.add("first ready", &records.ready_from(queue.id, 0)?);
        let mut after: Option<WorkflowRef> = None;
        while self.goes_on() {
            let page = records.workflows(queue.id, after.as_ref(), limits::PAGE_MAX)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (stream, record) in page {
                self.add_workflow(records, queue, WorkflowKey { queue: queue.id, stream }, &record)?;
            }
        }
        let mut from = SequenceNumber::new(0);
        while let Some((sequence, record)) = records.message_from(queue.id, from)?
            && self.goes_on()
        {
            let key = MessageKey { queue: queue.id, sequence };
            self.add("message", &(sequence, record, records.message(key)?.is_some()));
            self.add("content", &records.content(key)?);
            from = sequence.next();
        }
        self.add("dead", &records.dead_letters(queue.id, Bound::Unbounded, limits::PAGE_MAX)?);
        self.add("answers", &records.answer_count(queue.id)?);
        self.add_history(records, queue)?;
        self.add_cursors(records, queue)?;
        for key in keys() {
            self.add("answer", &records.answer(queue.id, key.text())?);
        }
        if queue.options.duplicate_window.is_some() {
            for id in message_ids() {
                self.add("duplicate", &records.duplicate(queue.id, &id)?);
            }
        }
        Ok(())
    }

    fn add_history(&mut self, records: &dyn Records, queue: &QueueRecord) -> Result<(), Fault> {
        let span = records.counters(queue.id)?.history;
        for number in (span.first..span.next).rev().take(HISTORY_SHOWN) {
            let entry = records.history(queue.id, number)?;
            let of = entry.as_ref().and_then(|entry| entry.sequence_number);
            let of_message = of.map(|sequence| records.history_of_message(queue.id, sequence)).transpose()?;
            let id = entry.as_ref().and_then(|entry| entry.workflow_id.clone());
            let key = id.map(|id| WorkflowKey { queue: queue.id, stream: WorkflowRef::Named(id) });
            let of_workflow = key.map(|key| records.history_of_workflow(&key, number)).transpose()?;
            self.add("history", &(entry, of_message, of_workflow));
        }
        Ok(())
    }

    fn add_cursors(&mut self, records: &dyn Records, queue: &QueueRecord) -> Result<(), Fault> {
        self.add("cursors", &(records.cursor_count(queue.id)?, records.cursor_oldest(queue.id)?));
        for id in WORKFLOWS {
            let id = WorkflowId::new(id).expect("a good ID");
            let key = WorkflowKey { queue: queue.id, stream: WorkflowRef::Named(id) };
            if let Some(cursor) = records.cursor(&key)? {
                self.add("cursor", &cursor);
                self.add_marks(records, &key)?;
            }
        }
        Ok(())
    }

    fn add_marks(&mut self, records: &dyn Records, key: &WorkflowKey) -> Result<(), Fault> {
        let mut rank = 0;
        while let Some(mark) = records.mark_from(key, rank)?
            && self.goes_on()
        {
            self.add("mark", &(mark, records.mark_upto(key, mark.to)?));
            rank = mark.from + 1;
        }
        Ok(())
    }

    fn add_workflow(
        &mut self,
        records: &dyn Records,
        queue: &QueueRecord,
        key: WorkflowKey,
        record: &WorkflowRecord,
    ) -> Result<(), Fault> {
        self.add("workflow", &(&key, record, records.workflow(&key)?.is_some()));
        self.add("state", &records.state(&key)?);
        let mut rank = 0;
        while let Some((found, sequence)) = records.line_from(&key, rank)?
            && self.goes_on()
        {
            self.add("line", &(found, sequence));
            rank = found + 1;
        }
        rank = 0;
        while let Some((found, sequence)) = records.aside_from(&key, rank)?
            && self.goes_on()
        {
            self.add("aside", &(found, sequence));
            rank = found + 1;
        }
        self.add_marks(records, &key)?;
        let mut from = (0, SequenceNumber::new(0));
        while let Some(dead) = records.dead_letter_of(&key, from)?
            && self.goes_on()
        {
            self.add("dead", &dead);
            from = (dead.0, dead.1.next());
        }
        match queue.options.order {
            Order::After => self.add_chain(records, &key),
            _ => Ok(()),
        }
    }

    fn add_chain(&mut self, records: &dyn Records, key: &WorkflowKey) -> Result<(), Fault> {
        self.add("root", &(records.root_from(key, SequenceNumber::new(0))?, records.waiting_first(key)?));
        self.add("first link", &records.link(key, None)?);
        for id in message_ids() {
            self.add("link", &(records.link(key, Some(&id))?, records.waiting(key, &id)?));
        }
        for rank in 1..=TRAILS {
            let trail = records.trail_from(key, rank)?.filter(|(at, _)| *at == rank);
            self.add("trail", &trail.map(|(_, trail)| trail));
        }
        Ok(())
    }
}

fn first_reminder(records: &dyn Records) -> Result<Option<Reminder>, Fault> {
    records.reminder_from(Due::engine(Timestamp::default()))
}
