//! Read-only looks: peek, list, count. Bounded pages, answered between turns, so that they see what was committed.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::clock::Timestamp;
use crate::engine::history;
use crate::engine::page;
use crate::engine::page::LiveMessages;
use crate::engine::rules::Rules;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::dead_letters::delivery_count_of;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::shown;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::rate_buckets::RateBuckets;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::Turn;
use crate::engine::upcoming::next_hand_out;
use crate::engine::view::DeadLetterView;
use crate::engine::view::Deferral;
use crate::engine::view::Gap;
use crate::engine::view::MessageView;
use crate::engine::view::QueueView;
use crate::engine::view::WorkflowStatus;
use crate::engine::view::WorkflowView;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// What was found, to be told once what it has seen is on disk; or why it is not told.
pub(crate) type Look = Box<dyn FnOnce(Result<(), Unavailable>) + Send>;

/// Where what is found goes. It has the type of what is looked for.
pub(crate) struct LookSlot<T>(pub(crate) oneshot::Sender<Result<T, Unavailable>>);

impl<T: Send + 'static> LookSlot<T> {
    /// What was found.
    pub(crate) fn found(self, found: T) -> Look {
        Box::new(move |committed| drop(self.0.send(committed.map(|()| found))))
    }
}

/// Makes something of each thing that can be looked up in an engine or in several: what is said, and what is found.
macro_rules! looks {
    ($make:ident) => {
        $make! {
            Queues { after: Option<QueueName>, limit: usize } -> Vec<QueueView>;
            Queue { name: QueueName } -> Option<QueueView>;
            Workflows { queue: QueueName, after: Option<WorkflowId>, limit: usize } -> Option<Vec<WorkflowView>>;
            Workflow { queue: QueueName, id: WorkflowId } -> Option<Option<WorkflowView>>;
            /// Messages for themselves, each as the workflow that it is.
            Alone { queue: QueueName, from: SequenceNumber, limit: usize }
                -> Option<Vec<(SequenceNumber, WorkflowView)>>;
            Messages { queue: QueueName, from: SequenceNumber, limit: usize } -> Option<Vec<MessageView>>;
            /// The messages that would be handed out next, in that order.
            Offered { queue: QueueName, limit: usize } -> Option<Vec<MessageView>>;
            /// The line of one workflow from a rank on.
            Line { queue: QueueName, id: WorkflowId, from: u64, limit: usize } -> Option<Vec<MessageView>>;
            DeadLetters { queue: QueueName, after: Option<(String, SequenceNumber)>, limit: usize }
                -> Option<Vec<DeadLetterView>>;
            State { queue: QueueName, id: WorkflowId } -> Option<Option<Bytes>>;
            /// What has ended in a queue or in one workflow of it, newest first, before the entry with this number.
            History { queue: QueueName, id: Option<WorkflowId>, before: Option<u64>, limit: usize }
                -> Option<Vec<HistoryEntry>>;
            /// How a message has ended.
            Ended { queue: QueueName, sequence: SequenceNumber } -> Option<Vec<HistoryEntry>>;
            /// When the next thing is due, or when a queue that has something ready may hand it out again.
            NextDue {} -> Option<Timestamp>;
            Topic { name: QueueName } -> Option<Arc<TopicRecord>>;
            Topics { after: Option<QueueName>, limit: usize } -> Vec<Arc<TopicRecord>>;
            /// Workflows that may stand still: never too few of them, and `None` while they are not all known.
            Standing { queue: QueueName, after: Option<WorkflowId>, limit: usize }
                -> Option<Option<Vec<WorkflowView>>>;
        }
    };
}
#[cfg(feature = "cluster")]
pub(crate) use looks;

/// Makes the queries of one engine: what is looked up, and where what is found goes.
macro_rules! queries {
    ($($(#[$doc:meta])* $look:ident { $($field:ident: $kind:ty),* $(,)? } -> $found:ty;)*) => {
        /// Something to look up. What is found in a queue is `None` when there is no such queue.
        pub(crate) enum Query {
            $($(#[$doc])* $look { $($field: $kind,)* slot: LookSlot<$found> },)*
            /// What operators did, after the entry with this number.
            Audit { after: u64, limit: usize, slot: LookSlot<Vec<AuditEntry>> },
            /// Messages that are no dead letters.
            #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
            Live { queue: QueueName, from: SequenceNumber, limit: usize, slot: LookSlot<Option<LiveMessages>> },
            /// The name of a queue that differs from this one in case only.
            #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
            NamedAlike { name: String, slot: LookSlot<Option<QueueName>> },
            /// The options of a queue, which every partition of a cluster has.
            #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
            Options { name: QueueName, slot: LookSlot<Option<QueueOptions>> },
        }
    };
}

looks!(queries);

impl Query {
    /// The queue it looks into.
    pub(crate) fn queue(&self) -> Option<&QueueName> {
        match self {
            Query::Queue { name, .. } | Query::Options { name, .. } => Some(name),
            Query::Workflows { queue, .. }
            | Query::Workflow { queue, .. }
            | Query::Alone { queue, .. }
            | Query::Messages { queue, .. }
            | Query::Live { queue, .. }
            | Query::Offered { queue, .. }
            | Query::Line { queue, .. }
            | Query::DeadLetters { queue, .. }
            | Query::State { queue, .. }
            | Query::History { queue, .. }
            | Query::Ended { queue, .. }
            | Query::Standing { queue, .. } => Some(queue),
            Query::Topic { .. }
            | Query::Topics { .. }
            | Query::Queues { .. }
            | Query::Audit { .. }
            | Query::NamedAlike { .. }
            | Query::NextDue { .. } => None,
        }
    }

    /// Whether it is a use of the queue: a peek at messages is, a look at counters is not.
    pub(crate) fn is_use(&self) -> bool {
        matches!(
            self,
            Query::Messages { .. } | Query::Live { .. } | Query::Offered { .. } | Query::Line { .. }
        )
    }
}

/// Looks something up.
pub(crate) fn look(query: Query, turn: &mut Turn<'_>, rules: &Rules, now: ClockInstants) -> Read<Look> {
    let (locks, rates) = (rules.locks(), rules.rates());
    let page = |limit: usize| limit.min(limits::PAGE_MAX);
    let queue = match query.queue() {
        Some(name) => turn.queue_named(name)?,
        None => None,
    };
    // Before all else, because only this one notes what it comes across.
    let standing = match (&query, &queue) {
        (Query::Standing { after, limit, .. }, Some(queue)) => {
            turn.standing(queue.id, after.as_ref(), page(*limit))?
        }
        _ => None,
    };
    let records: &dyn Records = turn;
    let look = queue.map(|queue| QueueLook { queue, records, locks, rates, now });
    let look = look.as_ref();
    Ok(match query {
        Query::Queues { after, limit, slot } => {
            slot.found(queues(records, rates, after.as_ref(), limit, now)?)
        }
        Query::Topic { name, slot } => slot.found(records.topic(&name)?),
        Query::Topics { after, limit, slot } => slot.found(records.topics(after.as_ref(), page(limit))?),
        Query::Audit { after, limit, slot } => slot.found(page::audit(records, after, limit)?),
        Query::NamedAlike { name, slot } => slot.found(named_alike(records, &name)?),
        Query::NextDue { slot } => slot.found(next_hand_out(records, rules, now)?.shown(now)),
        Query::Queue { slot, .. } => slot.found(look.map(QueueLook::view).transpose()?),
        Query::Options { slot, .. } => slot.found(look.map(|look| look.queue.options.clone())),
        Query::Workflows { after, limit, slot, .. } => {
            slot.found(look.map(|look| look.workflows(after, limit)).transpose()?)
        }
        Query::Workflow { id, slot, .. } => slot.found(look.map(|look| look.workflow(id)).transpose()?),
        Query::Alone { from, limit, slot, .. } => {
            slot.found(look.map(|look| look.alone(from, limit)).transpose()?)
        }
        Query::Messages { from, limit, slot, .. } => {
            slot.found(look.map(|look| look.messages(from, limit)).transpose()?)
        }
        Query::Live { from, limit, slot, .. } => {
            slot.found(look.map(|look| look.live(from, limit)).transpose()?)
        }
        Query::Offered { limit, slot, .. } => slot.found(look.map(|look| look.offered(limit)).transpose()?),
        Query::Line { id, from, limit, slot, .. } => {
            slot.found(look.map(|look| look.line(id, from, limit)).transpose()?)
        }
        Query::DeadLetters { after, limit, slot, .. } => {
            slot.found(look.map(|look| look.dead_letters(after, limit)).transpose()?)
        }
        Query::State { id, slot, .. } => {
            let state = |look: &QueueLook<'_>| records.state(&look.key(WorkflowRef::Named(id)));
            slot.found(look.map(state).transpose()?)
        }
        Query::History { id, before, limit, slot, .. } => {
            let entries = |look: &QueueLook<'_>| history::page(records, look.queue.id, id, before, limit);
            slot.found(look.map(entries).transpose()?)
        }
        Query::Standing { slot, .. } => {
            let views = |look: &QueueLook<'_>| standing.map(|found| look.views(found)).transpose();
            slot.found(look.map(views).transpose()?)
        }
        Query::Ended { sequence, slot, .. } => {
            let entries = |look: &QueueLook<'_>| history::of_message(records, look.queue.id, sequence);
            slot.found(look.map(entries).transpose()?)
        }
    })
}

fn queues(
    records: &dyn Records,
    rates: &RateBuckets,
    after: Option<&QueueName>,
    limit: usize,
    now: ClockInstants,
) -> Read<Vec<QueueView>> {
    let page = records.queues(after, limit.min(limits::PAGE_MAX))?;
    page.iter().map(|queue| QueueView::look(records, rates, queue, now)).collect()
}

fn named_alike(records: &dyn Records, name: &str) -> Read<Option<QueueName>> {
    let mut after = None;
    loop {
        let page = records.queues(after.as_ref(), limits::PAGE_MAX)?;
        let mut names = page.iter().map(|queue| &queue.name);
        if let Some(alike) = names.find(|known| known.as_str().eq_ignore_ascii_case(name)) {
            return Ok(Some(alike.clone()));
        }
        let Some(last) = page.last() else { return Ok(None) };
        after = Some(last.name.clone());
    }
}

/// A look into one queue.
pub(crate) struct QueueLook<'a> {
    pub(crate) queue: Arc<QueueRecord>,
    pub(crate) records: &'a dyn Records,
    pub(crate) locks: &'a LockTable,
    rates: &'a RateBuckets,
    pub(crate) now: ClockInstants,
}

impl QueueLook<'_> {
    fn view(&self) -> Read<QueueView> {
        QueueView::look(self.records, self.rates, &self.queue, self.now)
    }

    pub(crate) fn key(&self, stream: WorkflowRef) -> WorkflowKey {
        WorkflowKey { queue: self.queue.id, stream }
    }

    /// Named workflows only: those before the first name are messages for themselves.
    fn workflows(&self, after: Option<WorkflowId>, limit: usize) -> Read<Vec<WorkflowView>> {
        let after = after.map_or(WorkflowRef::Single(SequenceNumber::new(u64::MAX)), WorkflowRef::Named);
        let page = self.records.workflows(self.queue.id, Some(&after), limit.min(limits::PAGE_MAX))?;
        self.views(page)
    }

    fn views(&self, workflows: Vec<(WorkflowRef, WorkflowRecord)>) -> Read<Vec<WorkflowView>> {
        let view = |(stream, record)| self.workflow_view(&self.key(stream), &record);
        workflows.into_iter().map(view).collect()
    }

    fn alone(&self, from: SequenceNumber, limit: usize) -> Read<Vec<(SequenceNumber, WorkflowView)>> {
        let before = from.get().checked_sub(1).map(|before| WorkflowRef::Single(SequenceNumber::new(before)));
        let page = self.records.workflows(self.queue.id, before.as_ref(), limit.min(limits::PAGE_MAX))?;
        let mut views = Vec::with_capacity(page.len());
        for (stream, record) in page {
            let WorkflowRef::Single(sequence) = stream else { break };
            views.push((sequence, self.workflow_view(&self.key(stream), &record)?));
        }
        Ok(views)
    }

    fn workflow(&self, id: WorkflowId) -> Read<Option<WorkflowView>> {
        let key = self.key(WorkflowRef::Named(id));
        match self.records.workflow(&key)? {
            Some(record) => Ok(Some(self.workflow_view(&key, &record)?)),
            None => Ok(None),
        }
    }

    fn workflow_view(&self, key: &WorkflowKey, record: &WorkflowRecord) -> Read<WorkflowView> {
        let status = self.workflow_status(key, record)?;
        let paced = match status {
            WorkflowStatus::Ready => self.rates.pauses_until(&self.queue, self.now.engine),
            _ => None,
        };
        Ok(WorkflowView {
            workflow_id: key.stream.workflow_id().cloned(),
            rate_limited_until: paced.map(|until| shown(until, self.now)),
            status,
            next_position: matches!(self.queue.options.order, Order::Position { .. })
                .then_some(record.cursor),
            messages: record.line,
            early: record.early,
            set_aside: record.aside,
            dead_letters: record.dead,
            has_state: record.rare.has_state,
            state_set_at: record.rare.state_set_at,
            holds: record.rare.holds.iter().cloned().collect(),
            gap: self.gap(key, record)?,
            settled_ahead: self.settled_ahead(key, record)?,
        })
    }

    fn workflow_status(&self, key: &WorkflowKey, record: &WorkflowRecord) -> Read<WorkflowStatus> {
        if let Some(hold) = record.rare.holds.iter().next() {
            return Ok(WorkflowStatus::Held(hold.clone()));
        }
        if let Some((_, lock)) = self.locks.of(key) {
            return Ok(WorkflowStatus::Locked { until: shown(lock.until, self.now) });
        }
        let Some((rank, sequence)) = self.records.line_from(key, 0)? else {
            // In after-order, what waits for an unknown predecessor has no place in the line yet.
            let waits = record.line > 0;
            return Ok(if waits { WorkflowStatus::WaitingForPredecessor } else { WorkflowStatus::Idle });
        };
        let Some(head) = self.records.message(MessageKey { queue: key.queue, sequence })? else {
            return Ok(WorkflowStatus::Idle);
        };
        let blocked = |why, due, reason| {
            let until = self.shown(due);
            WorkflowStatus::Blocked { sequence_number: sequence, until, why, reason }
        };
        Ok(match head.status {
            Status::Scheduled { due } => WorkflowStatus::Scheduled { until: due.shown(self.now) },
            Status::Failed { due } => {
                let reason =
                    head.rare.attempts.last().map(|attempt| attempt.reason.clone()).unwrap_or_default();
                blocked(Deferral::Retry, due, reason)
            }
            Status::ByConsumer { due, .. } => blocked(Deferral::ByConsumer, due, "set aside".to_owned()),
            _ if self.is_beyond(record, rank) => WorkflowStatus::WaitingForPredecessor,
            _ => WorkflowStatus::Ready,
        })
    }

    /// An instant as people are shown it.
    pub(crate) fn shown(&self, due: Option<Due>) -> Option<Timestamp> {
        due.map(|due| due.shown(self.now))
    }

    pub(crate) fn is_beyond(&self, record: &WorkflowRecord, rank: u64) -> bool {
        self.queue.options.order.has_places() && record.is_beyond(rank)
    }

    fn gap(&self, key: &WorkflowKey, record: &WorkflowRecord) -> Read<Option<Gap>> {
        let Some(gap) = &record.rare.gap else { return Ok(None) };
        let held = record.rare.holds.has(HoldKind::Gap);
        let by_position = matches!(self.queue.options.order, Order::Position { .. });
        let waiting = match by_position {
            true => self.records.line_from(key, record.through + 1)?.map(|(rank, _)| rank),
            false => None,
        };
        // In after-order the gap is that before one message, whose predecessor is unknown.
        let stray = match by_position {
            true => None,
            false => self
                .records
                .message(MessageKey { queue: key.queue, sequence: SequenceNumber::new(gap.at) })?,
        };
        Ok(Some(Gap {
            first_missing: by_position.then_some(record.through + 1),
            first_waiting: waiting,
            missing_predecessor: stray.and_then(|stray| stray.rare.after.clone()),
            since: gap.since,
            due: gap.due.filter(|_| !held).map(|due| shown(due, self.now)),
        }))
    }

    fn dead_letters(
        &self,
        after: Option<(String, SequenceNumber)>,
        limit: usize,
    ) -> Read<Vec<DeadLetterView>> {
        let from = match &after {
            Some((reason, sequence)) => Bound::Excluded((reason.as_str(), *sequence)),
            None => Bound::Unbounded,
        };
        let page = self.records.dead_letters(self.queue.id, from, limit.min(limits::PAGE_MAX))?;
        let mut views = Vec::with_capacity(page.len());
        let mut bytes = 0;
        for (_, sequence) in page {
            let Some(record) = self.records.message(MessageKey { queue: self.queue.id, sequence })? else {
                continue;
            };
            let workflow_id = match record.stream {
                WorkflowRef::Named(ref id) => Some(id.clone()),
                // What a message without order says of its workflow is kept with its body.
                WorkflowRef::Single(_) if bytes >= limits::RECEIVE_BYTES_MAX as u64 => break,
                WorkflowRef::Single(_) => {
                    bytes += record.bytes;
                    let content = self.records.content(MessageKey { queue: self.queue.id, sequence })?;
                    content.and_then(|content| content.workflow_id.clone())
                }
            };
            let (delivery_count, locked_until) =
                (delivery_count_of(&record), self.locked_until(sequence, &record));
            let record = Arc::unwrap_or_clone(record);
            let Status::DeadLettered(dead_letter) = record.status else {
                continue;
            };
            views.push(DeadLetterView {
                sequence_number: sequence,
                workflow_id,
                message_id: record.message_id,
                delivery_count,
                locked_until,
                dead_letter: *dead_letter,
            });
        }
        Ok(views)
    }
}
