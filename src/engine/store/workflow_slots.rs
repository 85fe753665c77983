//! What the window has of each workflow, in one place: a command finds it once, and what it touches there lies side by side.

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::schema::HoldingRow;
use crate::engine::store::schema::Line;
use crate::engine::store::schema::WorkflowRow;
use crate::engine::store::slots::InSlots;
use crate::engine::store::slots::KeysInOrder;
use crate::engine::store::slots::in_slots;
use crate::lookup::SlotLookup;
use crate::lookup::SlotNumber;

/// The rows of the window of all workflows.
#[derive(Default)]
pub(crate) struct WorkflowSlots {
    workflows: SlotLookup<WorkflowKey, Box<WindowWorkflow>>,
    records_in_order: KeysInOrder<WorkflowKey>,
    holdings_in_order: KeysInOrder<WorkflowKey>,
}

/// What the window has of one workflow.
#[derive(Default)]
pub(crate) struct WindowWorkflow {
    record: PrefixGroup<WorkflowRow>,
    line: PrefixGroup<Line>,
    holding: PrefixGroup<HoldingRow>,
}

impl WindowWorkflow {
    #[inline]
    fn is_empty(&self) -> bool {
        self.record.is_empty() && self.line.is_empty() && self.holding.is_empty()
    }
}

in_slots!(WorkflowSlots of WindowWorkflow {
    record: WorkflowRow, in order: records_in_order;
    line: Line;
    holding: HoldingRow, in order: holdings_in_order;
});

impl WorkflowSlots {
    /// The key of a workflow as the window has it, and its record if that has changed.
    #[inline]
    pub(crate) fn kept(&self, key: &WorkflowKey) -> Option<(&WorkflowKey, Option<&WorkflowRecord>)> {
        let (key, workflow) = self.workflows.get_key_value(key)?;
        Some((key, workflow.record.rows.get(&()).map(|slot| &slot.value)))
    }

    /// Of how many workflows the window has something, or has had it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.workflows.len()
    }

    /// Gives up workflows that the window says nothing of, and room that is not needed. They are kept until here, because a busy
    /// workflow runs empty again and again.
    pub(crate) fn tidy(&mut self) {
        self.workflows.retain(|_, workflow| {
            workflow.line.rows.trim();
            !workflow.is_empty()
        });
        (self.records_in_order, self.holdings_in_order) = Default::default();
    }
}

impl<T> Groups<T> for WorkflowSlots
where
    T: InSlots<Prefix = WorkflowKey, Place = SlotNumber, Slots = WorkflowSlots, Slot = WindowWorkflow>,
{
    #[inline]
    fn group(&self, key: &WorkflowKey) -> Option<&PrefixGroup<T>> {
        self.workflows.get(key).map(|workflow| T::of(workflow))
    }

    #[inline]
    fn group_mut(&mut self, key: &WorkflowKey) -> Option<&mut PrefixGroup<T>> {
        self.workflows.get_mut(key).map(|workflow| T::of_mut(workflow))
    }

    #[inline]
    fn group_to_change(&mut self, key: &WorkflowKey) -> (SlotNumber, &mut PrefixGroup<T>) {
        T::note_change(self, key);
        let (slot, workflow) = self.workflows.get_or_insert_with(key, Box::default);
        (slot, T::of_mut(workflow))
    }

    #[inline]
    fn group_at(&self, slot: &SlotNumber) -> Option<&PrefixGroup<T>> {
        self.workflows.at(*slot).map(|(_, workflow)| T::of(workflow))
    }

    #[inline]
    fn prefix_at<'p>(&'p self, slot: &'p SlotNumber) -> Option<&'p WorkflowKey> {
        self.workflows.at(*slot).map(|(key, _)| key)
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.workflows.retain(|key, _| wanted(key.queue));
    }

    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g WorkflowKey, &'g PrefixGroup<T>)) {
        self.workflows.iter().for_each(|(key, workflow)| with(key, T::of(workflow)));
    }
}
