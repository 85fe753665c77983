//! One turn of the store: rows as they are after everything written in it so far.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::base::Base;
use crate::engine::store::memtables::Memtables;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::meta::StoreMeta;
use crate::engine::store::stamp::Stamp;

/// What a trial has to take back of what is kept beside the tables.
pub(crate) struct TurnTrial {
    pub(crate) numbers: Numbers,
    pub(crate) counters: BTreeMap<QueueId, QueueCounters>,
    pub(crate) touched_counters: BTreeSet<QueueId>,
    pub(crate) has_changed: bool,
    pub(crate) written: TurnVolume,
}

/// How much a turn has written.
#[derive(Clone, Copy, Default)]
pub(crate) struct TurnVolume {
    pub(crate) rows: usize,
    /// About how many bytes, counted if they are bounded.
    pub(crate) bytes: u64,
}

/// A turn.
pub(crate) struct Turn<'t> {
    pub(crate) base: Base<'t>,
    pub(crate) memtables: &'t mut Memtables,
    pub(crate) meta: &'t mut StoreMeta,
    /// The queue that was last looked up by its name: nearly always the one that is asked for next.
    pub(crate) last_named: RefCell<Option<Arc<QueueRecord>>>,
    pub(crate) queue_changes: Vec<QueueChange>,
    pub(crate) changed: bool,
    pub(crate) written: TurnVolume,
    /// With how many bytes it takes no more.
    pub(crate) bytes_max: u64,
    /// What is to be taken back, while a trial runs.
    pub(crate) trial: Option<TurnTrial>,
}

impl Turn<'_> {
    /// Counts a row that is written.
    #[inline]
    pub(crate) fn note_written(&mut self, bytes: impl FnOnce() -> u64) {
        self.written.rows += 1;
        if self.bytes_max < u64::MAX {
            self.written.bytes += bytes();
        }
    }

    /// Notes what the clocks show in the turn.
    pub(crate) fn stamp(&mut self, stamp: impl Into<Stamp>) {
        self.meta.set_stamp(stamp.into());
    }

    pub(crate) fn put_queue(&mut self, record: QueueRecord) {
        assert!(self.trial.is_none(), "a trial changes no queue");
        let id = record.id;
        self.last_named.take();
        if !self.meta.queues.contains_key(&id) {
            self.meta.standing.begin(id);
        }
        self.meta.keep_queue(record);
        let record = self.meta.queues.get(&id).map(Arc::clone);
        self.queue_changes.extend(record.map(QueueChange::Put));
    }

    /// Deletes a queue with every row of it.
    pub(crate) fn delete_queue(&mut self, queue: QueueId) {
        assert!(self.trial.is_none(), "a trial deletes no queue");
        self.last_named.take();
        self.memtables.each(&mut |memtable| memtable.forget_queue(queue));
        self.meta.forget_queue(queue);
        self.queue_changes.push(QueueChange::Gone(queue));
    }
}
