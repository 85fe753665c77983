//! Which workflows may stand still, kept in memory, so that those who ask for them need not look at all others.
//!
//! It is never too few: a change that may stop a workflow enters it here, and only a change after which it is offered again,
//! or is gone, takes it out. It may be too many, so whoever asks looks at each. Workflows that were stopped before the file
//! was opened are found by going through all of them once, a slice with each look, while somebody asks.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRecord;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::store::turn::Turn;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;

/// Workflows with their records, in order of ID.
type Workflows = Vec<(WorkflowRef, Arc<WorkflowRecord>)>;

/// The workflows of each queue that may stand still.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    queues: BTreeMap<QueueId, OfQueue>,
    /// How many are known, of all queues.
    count: usize,
    /// Whether there were more than are kept, so that nobody can rely on it.
    is_overfull: bool,
}

#[derive(Debug, Default)]
struct OfQueue {
    known: BTreeSet<WorkflowId>,
    scan: Scan,
}

/// How far it was looked for workflows that stopped before the file was opened.
#[derive(Clone, Debug, Default)]
enum Scan {
    #[default]
    Begin,
    After(WorkflowRef),
    Done,
}

impl Standing {
    /// Notes what becomes of a workflow. What a trial does is taken back, so nothing is taken out by one.
    pub(crate) fn note(&mut self, key: &WorkflowKey, record: Option<&WorkflowRecord>, is_trial: bool) {
        let WorkflowRef::Named(id) = &key.stream else { return };
        match record {
            Some(record) if may_stop(record) => self.enter(key.queue, id),
            // A ticket is what it has while its head is offered.
            Some(record) if record.ticket.is_none() && record.line > 0 => {}
            _ if !is_trial => self.leave(key.queue, id),
            _ => {}
        }
    }

    /// Notes a message that failed or was set aside: its workflow may wait for it.
    pub(crate) fn note_message(&mut self, queue: QueueId, message: &MessageRecord) {
        if let (WorkflowRef::Named(id), Status::Failed { .. } | Status::ByConsumer { .. }) =
            (&message.stream, &message.status)
        {
            self.enter(queue, id);
        }
    }

    /// A queue begins, with nothing in it that had to be looked for.
    pub(crate) fn begin(&mut self, queue: QueueId) {
        self.queues.entry(queue).or_default().scan = Scan::Done;
    }

    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        let gone = self.queues.remove(&queue);
        self.count -= gone.map_or(0, |gone| gone.known.len());
    }

    fn enter(&mut self, queue: QueueId, id: &WorkflowId) {
        if self.is_overfull {
            return;
        }
        if self.queues.entry(queue).or_default().known.insert(id.clone()) {
            self.count += 1;
        }
        if self.count > limits::STANDING_KNOWN {
            *self = Standing { is_overfull: true, ..Standing::default() };
        }
    }

    fn leave(&mut self, queue: QueueId, id: &WorkflowId) {
        if self.count > 0 && self.queues.get_mut(&queue).is_some_and(|queue| queue.known.remove(id)) {
            self.count -= 1;
        }
    }
}

/// Whether a workflow may stand still for what its record says.
fn may_stop(record: &WorkflowRecord) -> bool {
    let misses_its_next = record.line > 0 && record.through < record.cursor;
    !record.holds.is_empty() || record.gap.is_some() || record.early > 0 || misses_its_next
}

impl Turn<'_> {
    /// Up to `limit` workflows of a queue that may stand still, in order of ID, after the given one; `None` as long as they
    /// are not all known. Each time that is so, it goes on looking for them.
    pub(crate) fn standing(
        &mut self,
        queue: QueueId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Read<Option<Workflows>> {
        self.scan_for_standing(queue)?;
        let mut found = Vec::new();
        let mut from = after.cloned();
        while found.len() < limit {
            let Some(of_queue) = self.meta.standing.queues.get(&queue) else { return Ok(None) };
            if self.meta.standing.is_overfull || !matches!(of_queue.scan, Scan::Done) {
                return Ok(None);
            }
            let bound = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let next = of_queue.known.range::<WorkflowId, _>((bound, Bound::Unbounded)).next().cloned();
            let Some(id) = next else { break };
            let key = WorkflowKey { queue, stream: WorkflowRef::Named(id.clone()) };
            match self.workflow(&key)? {
                Some(record) => found.push((key.stream, record)),
                // A trial has entered it.
                None => self.meta.standing.leave(queue, &id),
            }
            from = Some(id);
        }
        Ok(Some(found))
    }

    fn scan_for_standing(&mut self, queue: QueueId) -> Read<()> {
        if self.meta.standing.is_overfull {
            return Ok(());
        }
        let of_queue = self.meta.standing.queues.entry(queue).or_default();
        let after = match of_queue.scan.clone() {
            Scan::Done => return Ok(()),
            // Before the first name are messages for themselves.
            Scan::Begin => WorkflowRef::Single(SequenceNumber::new(u64::MAX)),
            Scan::After(last) => last,
        };
        let page = self.workflows(queue, Some(&after), limits::PAGE_MAX)?;
        let scan = match page.last() {
            Some((last, _)) if page.len() == limits::PAGE_MAX => Scan::After(last.clone()),
            _ => Scan::Done,
        };
        for (stream, record) in page {
            let is_offered = record.ticket.is_some() || record.line == 0;
            if let (WorkflowRef::Named(id), true) = (&stream, may_stop(&record) || !is_offered) {
                self.meta.standing.enter(queue, id);
            }
        }
        if let Some(of_queue) = self.meta.standing.queues.get_mut(&queue) {
            of_queue.scan = scan;
        }
        Ok(())
    }
}
