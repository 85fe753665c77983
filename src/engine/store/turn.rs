//! One turn of the store: a write transaction, its tables, and the commit.

use std::sync::Arc;

use redb::WriteTransaction;

use crate::clock::Timestamp;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::store::key::Key;
use crate::engine::store::schema;
use crate::engine::store::shelf::Shelf;
use crate::engine::store::store::Kept;
use crate::error::Fault;

/// A turn: rows as they are after everything written in it so far.
pub(crate) struct Turn<'t> {
    pub(crate) kept: &'t mut Kept,
    pub(crate) queues: Shelf<'t>,
    pub(crate) tallies: Shelf<'t>,
    pub(crate) workflows: Shelf<'t>,
    pub(crate) states: Shelf<'t>,
    pub(crate) messages: Shelf<'t>,
    pub(crate) contents: Shelf<'t>,
    pub(crate) line: Shelf<'t>,
    pub(crate) aside: Shelf<'t>,
    pub(crate) links: Shelf<'t>,
    pub(crate) trails: Shelf<'t>,
    pub(crate) roots: Shelf<'t>,
    pub(crate) waiting: Shelf<'t>,
    pub(crate) marks: Shelf<'t>,
    pub(crate) holdings: Shelf<'t>,
    pub(crate) ready: Shelf<'t>,
    pub(crate) reminders: Shelf<'t>,
    pub(crate) dead_by_reason: Shelf<'t>,
    pub(crate) dead_by_workflow: Shelf<'t>,
    pub(crate) duplicates: Shelf<'t>,
    pub(crate) changed: bool,
}

impl<'t> Turn<'t> {
    pub(crate) fn new(transaction: &'t WriteTransaction, kept: &'t mut Kept) -> Turn<'t> {
        let shelf = |definition| Shelf::new(transaction, definition);
        Turn {
            kept,
            queues: shelf(schema::QUEUES),
            tallies: shelf(schema::TALLIES),
            workflows: shelf(schema::WORKFLOWS),
            states: shelf(schema::STATES),
            messages: shelf(schema::MESSAGES),
            contents: shelf(schema::CONTENTS),
            line: shelf(schema::LINE),
            aside: shelf(schema::ASIDE),
            links: shelf(schema::LINKS),
            trails: shelf(schema::TRAILS),
            roots: shelf(schema::ROOTS),
            waiting: shelf(schema::WAITING),
            marks: shelf(schema::MARKS),
            holdings: shelf(schema::HOLDINGS),
            ready: shelf(schema::READY),
            reminders: shelf(schema::REMINDERS),
            dead_by_reason: shelf(schema::DEAD_BY_REASON),
            dead_by_workflow: shelf(schema::DEAD_BY_WORKFLOW),
            duplicates: shelf(schema::DUPLICATES),
            changed: false,
        }
    }

    /// Whether anything was written, so that the turn has to be committed.
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// Notes the position and hash of the batch that the turn applied, and its instant.
    pub(crate) fn stamp(&mut self, position: u64, hash: u64, now: Timestamp) {
        self.kept.batch.position = position;
        self.kept.batch.hash = hash;
        self.kept.batch.time = self.kept.batch.time.max(now);
    }

    /// Deletes every row of a queue.
    pub(crate) fn delete_queue(&mut self, queue: QueueId) -> Result<(), Fault> {
        let prefix = Key::queue(queue);
        for shelf in self.shelves_of_a_queue() {
            shelf.delete_prefix(&prefix)?;
        }
        // A reminder's key begins with its instant; the queue follows.
        self.reminders.delete_where(|key| key.get(8..12) == Some(prefix.bytes()))?;
        if let Some(record) = self.kept.queues.remove(&queue) {
            self.kept.names.remove(&record.name);
        }
        self.kept.tallies.remove(&queue);
        self.kept.dirty_tallies.remove(&queue);
        Ok(())
    }

    fn shelves_of_a_queue(&self) -> [&Shelf<'t>; 18] {
        [
            &self.queues,
            &self.tallies,
            &self.workflows,
            &self.states,
            &self.messages,
            &self.contents,
            &self.line,
            &self.aside,
            &self.links,
            &self.trails,
            &self.roots,
            &self.waiting,
            &self.marks,
            &self.holdings,
            &self.ready,
            &self.dead_by_reason,
            &self.dead_by_workflow,
            &self.duplicates,
        ]
    }

    /// Writes back the counters that were kept in memory during the turn.
    pub(crate) fn write_back(&mut self) -> Result<(), Fault> {
        for queue in std::mem::take(&mut self.kept.dirty_tallies) {
            let tally = self.kept.tallies.get(&queue);
            self.tallies.set(&Key::queue(queue), tally)?;
        }
        Ok(())
    }

    pub(crate) fn keep_queue(&mut self, record: QueueRecord) {
        let record = Arc::new(record);
        self.kept.names.insert(record.name.clone(), record.id);
        self.kept.queues.insert(record.id, record);
    }
}
