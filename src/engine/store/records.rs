//! The store's face towards the rules: look-ups in the turn's tables.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::record::Content;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::Link;
use crate::engine::rules::record::Mark;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Stream;
use crate::engine::rules::record::Tally;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRecord;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::store::codec;
use crate::engine::store::key::Key;
use crate::engine::store::key::Parts;
use crate::engine::store::shelf::Shelf;
use crate::engine::store::turn::Turn;
use crate::error::Fault;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// How long the part of a key is that names its queue.
const QUEUE_LEN: usize = 4;

impl Records for Turn<'_> {
    fn numbers(&self) -> Read<Numbers> {
        Ok(self.kept.numbers)
    }

    fn queue(&self, id: QueueId) -> Read<Option<Arc<QueueRecord>>> {
        Ok(self.kept.queues.get(&id).cloned())
    }

    fn queue_named(&self, name: &QueueName) -> Read<Option<Arc<QueueRecord>>> {
        Ok(self.kept.names.get(name).and_then(|id| self.kept.queues.get(id)).cloned())
    }

    fn queues(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<QueueRecord>>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let ids = self.kept.names.range::<QueueName, _>((from, Bound::Unbounded)).take(limit);
        Ok(ids.filter_map(|(_, id)| self.kept.queues.get(id)).cloned().collect())
    }

    fn queue_count(&self) -> Read<usize> {
        Ok(self.kept.queues.len())
    }

    fn tally(&self, queue: QueueId) -> Read<Tally> {
        Ok(self.kept.tallies.get(&queue).copied().unwrap_or_default())
    }

    fn workflow(&self, key: &WorkflowKey) -> Read<Option<WorkflowRecord>> {
        self.workflows.get(&Key::workflow(key))
    }

    fn workflows(
        &self,
        queue: QueueId,
        after: Option<&Stream>,
        limit: usize,
    ) -> Read<Vec<(Stream, WorkflowRecord)>> {
        let prefix = Key::queue(queue);
        let after = after.map(|stream| prefix.clone().stream(stream));
        let from = after.as_ref().map_or(Bound::Included(&prefix), Bound::Excluded);
        let page = self.workflows.page(&prefix, from, limit)?;
        let parts = |(key, record): (Vec<u8>, WorkflowRecord)| {
            let stream = Parts::after(&key, QUEUE_LEN).stream();
            stream.map(|stream| (stream, record)).ok_or_else(|| self.workflows.bad_key())
        };
        page.into_iter().map(parts).collect()
    }

    fn state(&self, key: &WorkflowKey) -> Read<Option<Bytes>> {
        self.states.get(&Key::workflow(key))
    }

    fn message(&self, key: MessageKey) -> Read<Option<MessageRecord>> {
        self.messages.get(&Key::message(key))
    }

    fn message_from(
        &self,
        queue: QueueId,
        from: SequenceNumber,
    ) -> Read<Option<(SequenceNumber, MessageRecord)>> {
        let prefix = Key::queue(queue);
        match self.messages.first(&prefix, &prefix.clone().number(from.get()))? {
            Some((key, record)) => {
                let sequence = Parts::after(&key, QUEUE_LEN).sequence();
                Ok(Some((sequence.ok_or_else(|| self.messages.bad_key())?, record)))
            }
            None => Ok(None),
        }
    }

    fn content(&self, key: MessageKey) -> Read<Option<Content>> {
        self.contents.get(&Key::message(key))
    }

    fn line_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        place_from(&self.line, key, rank)
    }

    fn aside_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
        place_from(&self.aside, key, rank)
    }

    fn link(&self, key: &WorkflowKey, after: Option<&MessageId>) -> Read<Option<Link>> {
        self.links.get(&Key::workflow(key).optional_id(after))
    }

    fn trail(&self, key: &WorkflowKey, rank: u64) -> Read<Option<TrailEntry>> {
        self.trails.get(&Key::workflow(key).number(rank))
    }

    fn root_first(&self, key: &WorkflowKey) -> Read<Option<SequenceNumber>> {
        let prefix = Key::workflow(key);
        match self.roots.first::<()>(&prefix, &prefix)? {
            Some((found, ())) => {
                let sequence = Parts::after(&found, prefix.bytes().len()).sequence();
                Ok(Some(sequence.ok_or_else(|| self.roots.bad_key())?))
            }
            None => Ok(None),
        }
    }

    fn waiting(&self, key: &WorkflowKey, id: &MessageId) -> Read<Option<SequenceNumber>> {
        self.waiting.get(&Key::workflow(key).text(id.as_str()))
    }

    fn waiting_first(&self, key: &WorkflowKey) -> Read<Option<SequenceNumber>> {
        let prefix = Key::workflow(key);
        Ok(self.waiting.first(&prefix, &prefix)?.map(|(_, sequence)| sequence))
    }

    fn mark_upto(&self, key: &WorkflowKey, rank: u64) -> Read<Option<Mark>> {
        let prefix = Key::workflow(key);
        Ok(self.marks.last(&prefix, &prefix.clone().number(rank))?.map(|(_, mark)| mark))
    }

    fn mark_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<Mark>> {
        let prefix = Key::workflow(key);
        Ok(self.marks.first(&prefix, &prefix.clone().number(rank))?.map(|(_, mark)| mark))
    }

    fn holding_after(&self, key: Option<&WorkflowKey>) -> Read<Option<(WorkflowKey, Holding)>> {
        let after = key.map(Key::workflow);
        let start = Key::default();
        let from = after.as_ref().map_or(Bound::Included(&start), Bound::Excluded);
        let Some((key, holding)) = self.holdings.page(&Key::default(), from, 1)?.pop() else {
            return Ok(None);
        };
        let mut parts = Parts::after(&key, 0);
        match (parts.queue(), parts.stream()) {
            (Some(queue), Some(stream)) => Ok(Some((WorkflowKey { queue, stream }, holding))),
            _ => Err(self.holdings.bad_key()),
        }
    }

    fn ready_first(&self, queue: QueueId) -> Read<Option<(u64, Stream)>> {
        let prefix = Key::queue(queue);
        match self.ready.first(&prefix, &prefix)? {
            Some((key, stream)) => {
                let ticket = Parts::after(&key, QUEUE_LEN).number();
                Ok(Some((ticket.ok_or_else(|| self.ready.bad_key())?, stream)))
            }
            None => Ok(None),
        }
    }

    fn reminder_first(&self) -> Read<Option<Reminder>> {
        let start = Key::default();
        let Some((key, ())) = self.reminders.first(&start, &start)? else {
            return Ok(None);
        };
        let mut parts = Parts::after(&key, 0);
        let (due, queue) = (parts.number(), parts.queue());
        match (due, queue, codec::decode(parts.rest())) {
            (Some(due), Some(queue), Some(what)) => {
                Ok(Some(Reminder { due: Timestamp::from_millis(due), queue, what }))
            }
            _ => Err(self.reminders.bad_key()),
        }
    }

    fn dead_letter_of(
        &self,
        key: &WorkflowKey,
        from: (u64, SequenceNumber),
    ) -> Read<Option<(u64, SequenceNumber)>> {
        let prefix = Key::workflow(key);
        let from = prefix.clone().number(from.0).number(from.1.get());
        let Some((found, ())) = self.dead_by_workflow.first(&prefix, &from)? else {
            return Ok(None);
        };
        let mut parts = Parts::after(&found, prefix.bytes().len());
        match (parts.number(), parts.sequence()) {
            (Some(rank), Some(sequence)) => Ok(Some((rank, sequence))),
            _ => Err(self.dead_by_workflow.bad_key()),
        }
    }

    fn dead_letters(
        &self,
        queue: QueueId,
        from: Bound<(&str, SequenceNumber)>,
        limit: usize,
    ) -> Read<Vec<(String, SequenceNumber)>> {
        let prefix = Key::queue(queue);
        let key =
            |(reason, sequence): (&str, SequenceNumber)| prefix.clone().text(reason).number(sequence.get());
        let from = match from {
            Bound::Included(from) => Bound::Included(key(from)),
            Bound::Excluded(from) => Bound::Excluded(key(from)),
            Bound::Unbounded => Bound::Included(prefix.clone()),
        };
        let page = self.dead_by_reason.page::<()>(&prefix, from.as_ref(), limit)?;
        let parts = |(key, ()): (Vec<u8>, ())| {
            let mut parts = Parts::after(&key, QUEUE_LEN);
            let (reason, sequence) = (parts.text(), parts.sequence());
            reason.zip(sequence).ok_or_else(|| self.dead_by_reason.bad_key())
        };
        page.into_iter().map(parts).collect()
    }

    fn duplicate(&self, queue: QueueId, id: &MessageId) -> Read<Option<Duplicate>> {
        self.duplicates.get(&Key::queue(queue).text(id.as_str()))
    }

    fn write(&mut self, change: Change) -> Result<(), Fault> {
        self.apply_change(change)
    }
}

fn place_from(shelf: &Shelf<'_>, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>> {
    let prefix = Key::workflow(key);
    match shelf.first(&prefix, &prefix.clone().number(rank))? {
        Some((found, sequence)) => {
            let rank = Parts::after(&found, prefix.bytes().len()).number();
            Ok(Some((rank.ok_or_else(|| shelf.bad_key())?, sequence)))
        }
        None => Ok(None),
    }
}
