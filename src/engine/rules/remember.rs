//! The history of a queue: how messages ended is remembered, for as long and as far as the queue says.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::history::HistorySpan;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// Entries that are removed at most when one is added to a history that is full: more than one, so that a bound that was
/// lowered is come down to.
const REMOVED_AT_ONCE: u64 = 2;

/// What the history remembers.
#[derive(Clone, Copy)]
pub(crate) enum HistorySubject<'a> {
    /// A message. Its content has to be there still.
    Message(SequenceNumber, &'a MessageRecord),
    /// The first and the last of places that were given up, whose messages have never come.
    Places(u64, u64),
}

impl OpenWorkflow {
    /// Remembers how a message ended, or places, if the queue has a history.
    pub(crate) fn remember(
        &self,
        step: &mut Step<'_>,
        subject: HistorySubject<'_>,
        ending: HistoryEnding,
    ) -> Read<()> {
        if self.queue.options.history.is_none() {
            return Ok(());
        }
        let entry = HistoryEntry {
            number: 0,
            at: step.wall,
            ending,
            sequence_number: None,
            workflow_id: self.key.stream.workflow_id().cloned(),
            positions: None,
            message_id: None,
            accepted_at: None,
            delivery_count: 0,
            reason: None,
            since: step.now,
        };
        let entry = match subject {
            HistorySubject::Message(sequence, message) => {
                self.describe_message(step, sequence, message, entry)?
            }
            HistorySubject::Places(from, to) => HistoryEntry { positions: Some((from, to)), ..entry },
        };
        step.add_to_history(&self.queue, entry)
    }

    fn describe_message(
        &self,
        step: &Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
        mut entry: HistoryEntry,
    ) -> Read<HistoryEntry> {
        // What a message without order says of its workflow is kept with its body.
        if matches!(self.key.stream, WorkflowRef::Single(_)) && self.queue.options.order == Order::None {
            let content = step.records.content(self.message_key(sequence))?;
            entry.workflow_id = content.and_then(|content| content.workflow_id.clone());
        }
        let reason = match &message.status {
            Status::DeadLettered(dead_letter) => Some(dead_letter.reason.clone()),
            _ => message.rare.attempts.last().map(|attempt| attempt.reason.clone()),
        };
        let place = message.rank.filter(|_| self.has_places());
        Ok(HistoryEntry {
            sequence_number: Some(sequence),
            positions: place.map(|place| (place, place)),
            message_id: message.message_id.clone(),
            accepted_at: Some(message.accepted_at),
            delivery_count: message.delivery_count,
            reason,
            ..entry
        })
    }
}

impl Step<'_> {
    /// Appends an entry; of a history that is full, the oldest ones go.
    fn add_to_history(&mut self, queue: &QueueRecord, entry: HistoryEntry) -> Read<()> {
        let Some(lasts) = queue.options.history else { return Ok(()) };
        let mut span = self.counters(queue.id)?.history;
        if span.next == 0 {
            (span.first, span.next) = (1, 1);
        }
        let entry = HistoryEntry { number: span.next, ..entry };
        span.next += 1;
        self.list_in_history(queue.id, &entry, true)?;
        self.write(Change::History(queue.id, entry.number, Some(Arc::new(entry))))?;
        let excess = span.kept().saturating_sub(queue.options.history_max);
        for _ in 0..excess.min(REMOVED_AT_ONCE) {
            self.forget_first(queue.id, &mut span)?;
        }
        if span.check.is_none() {
            self.remind_of_history(queue.id, &mut span, self.now + lasts)?;
        }
        self.counters(queue.id)?.history = span;
        Ok(())
    }

    /// Forgets what is too old or too much, a limited number of entries at once.
    pub(crate) fn forget_history(&mut self, queue: &QueueRecord) -> Read<()> {
        let mut span = self.records.counters(queue.id)?.history;
        span.check = None;
        let mut due = self.end_of_first(queue, &queue.options, &span)?;
        for _ in 0..limits::SWEEP_MAX {
            if due.is_none_or(|due| due > self.now) {
                break;
            }
            self.forget_first(queue.id, &mut span)?;
            due = self.end_of_first(queue, &queue.options, &span)?;
        }
        if let Some(due) = due {
            let soonest = self.now + limits::HISTORY_FORGET_EVERY;
            let due = if due > self.now { due.max(soonest) } else { self.now };
            self.remind_of_history(queue.id, &mut span, due)?;
        }
        // Nobody uses the queue by that.
        self.counters_unused(queue.id)?.history = span;
        Ok(())
    }

    /// The options of a queue become others: what it remembers is judged by them.
    pub(crate) fn change_history(&mut self, queue: &QueueRecord, options: &QueueOptions) -> Read<()> {
        let mut span = self.records.counters(queue.id)?.history;
        let Some(check) = span.check.take() else { return Ok(()) };
        self.drop_reminder(check, queue.id, Remind::History)?;
        if let Some(due) = self.end_of_first(queue, options, &span)? {
            self.remind_of_history(queue.id, &mut span, due.max(self.now))?;
        }
        self.counters(queue.id)?.history = span;
        Ok(())
    }

    /// Until when the oldest entry is kept: not at all when there are too many, or there is to be no history.
    fn end_of_first(
        &self,
        queue: &QueueRecord,
        options: &QueueOptions,
        span: &HistorySpan,
    ) -> Read<Option<Timestamp>> {
        if span.kept() == 0 {
            return Ok(None);
        }
        let Some(lasts) = options.history.filter(|_| span.kept() <= options.history_max) else {
            return Ok(Some(self.now));
        };
        Ok(Some(self.kept_in_history(queue.id, span.first)?.since + lasts))
    }

    fn forget_first(&mut self, queue: QueueId, span: &mut HistorySpan) -> Read<()> {
        let entry = self.kept_in_history(queue, span.first)?;
        self.list_in_history(queue, &entry, false)?;
        self.write(Change::History(queue, span.first, None))?;
        span.first += 1;
        Ok(())
    }

    fn kept_in_history(&self, queue: QueueId, number: u64) -> Read<Arc<HistoryEntry>> {
        Ok(self.records.history(queue, number)?.expect("a history has every entry of its span"))
    }

    /// Enters an entry into the lists by which it is found, or takes it out.
    fn list_in_history(&mut self, queue: QueueId, entry: &HistoryEntry, there: bool) -> Read<()> {
        let number = entry.number;
        if let Some(sequence) = entry.sequence_number {
            self.write(Change::HistoryOfMessage(queue, sequence, there.then_some(number)))?;
        }
        if let Some(id) = &entry.workflow_id {
            let key = WorkflowKey { queue, stream: WorkflowRef::Named(id.clone()) };
            self.write(Change::HistoryOfWorkflow(key, number, there))?;
        }
        Ok(())
    }

    fn remind_of_history(&mut self, queue: QueueId, span: &mut HistorySpan, due: Timestamp) -> Read<()> {
        span.check = Some(due);
        self.set_reminder(due, queue, Remind::History)
    }
}
