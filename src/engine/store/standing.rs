//! Which workflows may stand still, kept in memory, so that those who ask for them need not look at all others.
//!
//! It is never too few: a change that may stop a workflow enters it here, and only a change after which it is offered again,
//! or is gone, takes it out. It may be too many, so whoever asks looks at each. Workflows that were stopped before the file
//! was opened are found by going through all of them once, a slice with each look, while somebody asks.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Bound;

use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::lookup::Lookup;

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
    known: KnownWorkflows,
    scan: Scan,
}

/// Names in their order. Nearly every workflow that changes is asked for and none of them, which a hash tells sooner than a
/// search through thousands of names.
#[derive(Debug, Default)]
struct KnownWorkflows {
    names: BTreeSet<WorkflowId>,
    lookup: Lookup<WorkflowId, ()>,
}

impl KnownWorkflows {
    /// Whether it was not there before.
    fn insert(&mut self, id: &WorkflowId) -> bool {
        self.lookup.insert(id.clone(), ()).is_none() && self.names.insert(id.clone())
    }

    /// Whether it was there.
    fn remove(&mut self, id: &WorkflowId) -> bool {
        self.lookup.remove(id).is_some() && self.names.remove(id)
    }
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
        self.count -= gone.map_or(0, |gone| gone.known.names.len());
    }

    /// Whether all of a queue are known.
    pub(crate) fn knows_all(&self, queue: QueueId) -> bool {
        !self.is_overfull && self.queues.get(&queue).is_some_and(|queue| matches!(queue.scan, Scan::Done))
    }

    /// The next of a queue that is known, after the given one.
    pub(crate) fn next_after(&self, queue: QueueId, after: Option<&WorkflowId>) -> Option<WorkflowId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.queues.get(&queue)?.known.names.range::<WorkflowId, _>((from, Bound::Unbounded)).next().cloned()
    }

    /// Behind which workflow of a queue to go on looking for more; `None` when there is nothing to look for.
    pub(crate) fn scans_after(&mut self, queue: QueueId) -> Option<WorkflowRef> {
        if self.is_overfull {
            return None;
        }
        match self.queues.entry(queue).or_default().scan.clone() {
            Scan::Done => None,
            // Before the first name are messages for themselves.
            Scan::Begin => Some(WorkflowRef::Single(SequenceNumber::new(u64::MAX))),
            Scan::After(last) => Some(last),
        }
    }

    /// Notes workflows that were looked at, and behind which one to go on: `None` when they were the last.
    pub(crate) fn note_scanned(
        &mut self,
        queue: QueueId,
        scanned: &[(WorkflowRef, WorkflowRecord)],
        next: Option<WorkflowRef>,
    ) {
        for (stream, record) in scanned {
            let is_offered = record.ticket.is_some() || record.line == 0;
            if let (WorkflowRef::Named(id), true) = (stream, may_stop(record) || !is_offered) {
                self.enter(queue, id);
            }
        }
        if let Some(of_queue) = self.queues.get_mut(&queue) {
            of_queue.scan = next.map_or(Scan::Done, Scan::After);
        }
    }

    fn enter(&mut self, queue: QueueId, id: &WorkflowId) {
        if self.is_overfull {
            return;
        }
        if self.queues.entry(queue).or_default().known.insert(id) {
            self.count += 1;
        }
        if self.count > limits::STANDING_KNOWN {
            *self = Standing { is_overfull: true, ..Standing::default() };
        }
    }

    /// Takes a workflow out that does not stand still, or is gone.
    pub(crate) fn leave(&mut self, queue: QueueId, id: &WorkflowId) {
        if self.count > 0 && self.queues.get_mut(&queue).is_some_and(|queue| queue.known.remove(id)) {
            self.count -= 1;
        }
    }
}

/// Whether a workflow may stand still for what its record says.
fn may_stop(record: &WorkflowRecord) -> bool {
    let misses_its_next = record.line > 0 && record.through < record.cursor;
    !record.rare.holds.is_empty() || record.rare.gap.is_some() || record.early > 0 || misses_its_next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_known_while_it_stands_and_again_when_it_stands_again() {
        let (queue, mut standing) = (QueueId(1), Standing::default());
        let id = |name| WorkflowId::new(name).unwrap();
        let known = |standing: &Standing| {
            let mut known = vec![];
            while let Some(next) = standing.next_after(queue, known.last()) {
                known.push(next);
            }
            known
        };
        for name in ["b", "a", "c", "a"] {
            standing.enter(queue, &id(name));
        }
        assert_eq!(known(&standing), ["a", "b", "c"].map(id));
        for name in ["b", "b", "never"] {
            standing.leave(queue, &id(name));
        }
        assert_eq!((known(&standing), standing.count), (["a", "c"].map(id).to_vec(), 2));
        standing.enter(queue, &id("b"));
        assert_eq!((known(&standing), standing.count), (["a", "b", "c"].map(id).to_vec(), 3));
        standing.forget_queue(queue);
        assert_eq!((known(&standing), standing.count), (vec![], 0));
    }
}
