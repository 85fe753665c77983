//! What the window has of each workflow, in one place: a command finds it once, and what it touches there lies side by side.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::ops::Bound;

use foldhash::fast::RandomState;

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::schema::HoldingRow;
use crate::engine::store::schema::Line;
use crate::engine::store::schema::WorkflowRow;
use crate::engine::store::table::Table;
use crate::id::SequenceNumber;

/// The rows of the window of all workflows. Each workflow has a slot, which it keeps while the window says something of it.
#[derive(Default)]
pub(crate) struct WorkflowSlots {
    slots: Vec<Option<Box<WindowWorkflow>>>,
    /// Slots that nobody has.
    free: Vec<usize>,
    by_key: HashMap<WorkflowKey, usize, RandomState>,
    /// The slot that was found last: nearly always the one that is looked for next.
    last: Cell<usize>,
    workflows_in_order: KeysInOrder,
    holdings_in_order: KeysInOrder,
}

/// What the window has of one workflow.
pub(crate) struct WindowWorkflow {
    key: WorkflowKey,
    record: PrefixGroup<WorkflowRow>,
    line: PrefixGroup<Line>,
    holding: PrefixGroup<HoldingRow>,
}

impl WindowWorkflow {
    fn new(key: WorkflowKey) -> WindowWorkflow {
        WindowWorkflow {
            key,
            record: PrefixGroup::default(),
            line: PrefixGroup::default(),
            holding: PrefixGroup::default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.record.is_empty() && self.line.is_empty() && self.holding.is_empty()
    }
}

/// A table whose rows of a workflow are in its slot.
pub(crate) trait InSlots: Table<Prefix = WorkflowKey> {
    fn of(workflow: &WindowWorkflow) -> &PrefixGroup<Self>
    where
        Self: Sized;
    fn of_mut(workflow: &mut WindowWorkflow) -> &mut PrefixGroup<Self>
    where
        Self: Sized;
    /// The workflows that have a row, if they are asked for in order.
    fn in_order(slots: &WorkflowSlots) -> Option<&KeysInOrder>;
}

impl InSlots for WorkflowRow {
    fn of(workflow: &WindowWorkflow) -> &PrefixGroup<WorkflowRow> {
        &workflow.record
    }

    fn of_mut(workflow: &mut WindowWorkflow) -> &mut PrefixGroup<WorkflowRow> {
        &mut workflow.record
    }

    fn in_order(slots: &WorkflowSlots) -> Option<&KeysInOrder> {
        Some(&slots.workflows_in_order)
    }
}

impl InSlots for Line {
    fn of(workflow: &WindowWorkflow) -> &PrefixGroup<Line> {
        &workflow.line
    }

    fn of_mut(workflow: &mut WindowWorkflow) -> &mut PrefixGroup<Line> {
        &mut workflow.line
    }

    fn in_order(_: &WorkflowSlots) -> Option<&KeysInOrder> {
        None
    }
}

impl InSlots for HoldingRow {
    fn of(workflow: &WindowWorkflow) -> &PrefixGroup<HoldingRow> {
        &workflow.holding
    }

    fn of_mut(workflow: &mut WindowWorkflow) -> &mut PrefixGroup<HoldingRow> {
        &mut workflow.holding
    }

    fn in_order(slots: &WorkflowSlots) -> Option<&KeysInOrder> {
        Some(&slots.holdings_in_order)
    }
}

/// The workflows that may have a row of a table, in order: made when it is first asked for, and kept until it is tidied up.
/// Those that have none any more go when somebody passes them.
#[derive(Default)]
pub(crate) struct KeysInOrder(RefCell<Option<BTreeSet<WorkflowKey>>>);

impl KeysInOrder {
    /// Notes that a workflow may have a row from now on.
    fn note(&self, key: &WorkflowKey) {
        if let Some(keys) = self.0.borrow_mut().as_mut() {
            keys.insert(key.clone());
        }
    }

    /// The first workflow of the queue from a bound on that has a row.
    fn first(
        &self,
        queue: QueueId,
        from: Bound<&WorkflowRef>,
        all: impl FnOnce() -> BTreeSet<WorkflowKey>,
        has_row: impl Fn(&WorkflowKey) -> bool,
    ) -> Option<WorkflowKey> {
        let mut keys = self.0.borrow_mut();
        let keys = keys.get_or_insert_with(all);
        let from = match from {
            Bound::Unbounded => Bound::Included(WorkflowRef::Single(SequenceNumber::new(0))),
            bound => bound.cloned(),
        };
        let from = from.map(|stream| WorkflowKey { queue, stream });
        loop {
            let next = keys.range((from.as_ref(), Bound::Unbounded)).next()?.clone();
            if next.queue != queue {
                return None;
            }
            if has_row(&next) {
                return Some(next);
            }
            keys.remove(&next);
        }
    }
}

impl WorkflowSlots {
    fn find(&self, key: &WorkflowKey) -> Option<usize> {
        let last = self.last.get();
        if self.slots.get(last).is_some_and(|slot| slot.as_ref().is_some_and(|workflow| workflow.key == *key)) {
            return Some(last);
        }
        let found = *self.by_key.get(key)?;
        self.last.set(found);
        Some(found)
    }

    fn workflow(&self, key: &WorkflowKey) -> Option<&WindowWorkflow> {
        self.slots[self.find(key)?].as_deref()
    }

    fn workflow_mut(&mut self, key: &WorkflowKey) -> Option<&mut WindowWorkflow> {
        let slot = self.find(key)?;
        self.slots[slot].as_deref_mut()
    }

    /// A workflow's slot; it is given one if it has none.
    fn slot_of(&mut self, key: &WorkflowKey) -> usize {
        if let Some(slot) = self.find(key) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(Box::new(WindowWorkflow::new(key.clone())));
        self.by_key.insert(key.clone(), slot);
        self.last.set(slot);
        slot
    }

    /// A row that each workflow has at most once, and the workflow as the window names it.
    pub(crate) fn row<T: InSlots<Key = ()>>(&self, key: &WorkflowKey) -> Option<(&WorkflowRef, &T::Value)> {
        let workflow = self.workflow(key)?;
        let slot = T::of(workflow).rows.get(&())?;
        Some((&workflow.key.stream, &slot.value))
    }

    /// The first workflow of the queue from a bound on that has a row of the table in the window.
    pub(crate) fn first_of_queue<T: InSlots>(
        &self,
        queue: QueueId,
        from: Bound<&WorkflowRef>,
    ) -> Option<WorkflowKey> {
        let has_row = |workflow: &WindowWorkflow| !T::of(workflow).rows.is_empty();
        let all = || {
            let workflows = self.slots.iter().flatten().filter(|workflow| has_row(workflow));
            workflows.map(|workflow| workflow.key.clone()).collect()
        };
        T::in_order(self)?.first(queue, from, all, |key| self.workflow(key).is_some_and(has_row))
    }

    fn retain(&mut self, wanted: impl Fn(&WindowWorkflow) -> bool) {
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if let Some(workflow) = slot.take_if(|workflow| !wanted(workflow)) {
                self.by_key.remove(&workflow.key);
                self.free.push(number);
            }
        }
    }

    /// Gives up what is empty, and room that is not needed.
    pub(crate) fn tidy(&mut self) {
        self.retain(|workflow| !workflow.is_empty());
        self.slots.iter_mut().flatten().for_each(|workflow| workflow.line.rows.trim());
        (self.workflows_in_order, self.holdings_in_order) = Default::default();
        if self.by_key.is_empty() {
            *self = WorkflowSlots::default();
        }
    }
}

impl<T: InSlots> Groups<T> for WorkflowSlots {
    fn group(&self, prefix: &WorkflowKey) -> Option<&PrefixGroup<T>> {
        self.workflow(prefix).map(T::of)
    }

    fn group_mut(&mut self, prefix: &WorkflowKey) -> Option<&mut PrefixGroup<T>> {
        self.workflow_mut(prefix).map(T::of_mut)
    }

    fn group_to_change(&mut self, prefix: &WorkflowKey) -> &mut PrefixGroup<T> {
        let slot = self.slot_of(prefix);
        if let Some(keys) = T::in_order(self) {
            keys.note(prefix);
        }
        let workflow = self.slots[slot].as_deref_mut();
        T::of_mut(workflow.expect("whoever has a slot is in it"))
    }

    fn tidy(&mut self) {
        // Whoever has all tables does it once for those of a workflow.
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.retain(|workflow| wanted(workflow.key.queue));
    }

    #[cfg(test)]
    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g WorkflowKey, &'g PrefixGroup<T>)) {
        self.slots.iter().flatten().for_each(|workflow| with(&workflow.key, T::of(workflow)));
    }
}
