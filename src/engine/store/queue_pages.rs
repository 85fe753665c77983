//! Workflows of a queue in order, for what is kept in their slots.

use std::ops::Bound;

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::base::Base;
use crate::engine::store::groups::Groups;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::table::Row;
use crate::engine::store::table::Table;
use crate::engine::store::table_book::TableBook;
use crate::engine::store::workflow_slots::InSlots;
use crate::engine::store::workflow_slots::WorkflowSlots;
use crate::error::Fault;

impl<T> TableBook<T>
where
    T: InSlots<Key = ()>,
    T::Flushed: Table<Prefix = QueueId, Key = WorkflowRef>,
{
    /// Up to `limit` rows of the queue from a workflow on.
    pub(crate) fn page_of_queue(
        &self,
        slots: &WorkflowSlots,
        base: &Base<'_>,
        queue: QueueId,
        from: Bound<&WorkflowRef>,
        limit: usize,
    ) -> Result<Vec<Row<T::Flushed>>, Fault> {
        let mut page: Vec<Row<T::Flushed>> = Vec::new();
        while page.len() < limit {
            let from = page.last().map_or(from, |(last, _)| Bound::Excluded(last));
            let Some(row) = self.next_of_queue(slots, base, queue, from)? else { break };
            page.push(row);
        }
        Ok(page)
    }

    fn next_of_queue(
        &self,
        slots: &WorkflowSlots,
        base: &Base<'_>,
        queue: QueueId,
        from: Bound<&WorkflowRef>,
    ) -> Result<Option<Row<T::Flushed>>, Fault> {
        let own = slots.first_of_queue::<T>(queue, from);
        let is_shadowed = |stream: &WorkflowRef| {
            let group: Option<&PrefixGroup<T>> = slots.group(&WorkflowKey { queue, stream: stream.clone() });
            group.is_some_and(|group| group.shadows(&()))
        };
        let flushed = match self.flushed.any() {
            true => base.next_key::<T::Flushed>(&queue, from, |stream| !is_shadowed(stream))?,
            false => None,
        };
        match (own, flushed) {
            (Some(own), flushed) if flushed.as_ref().is_none_or(|flushed| own.stream < *flushed) => {
                let row = slots.row::<T>(&own);
                Ok(row.map(|(stream, value)| (stream.clone(), value.clone())))
            }
            (_, Some(stream)) => {
                let value = self.flushed.get(base, &queue, &stream)?;
                Ok(Some((stream, value.expect("a flushed key that was found has its row"))))
            }
            (_, None) => Ok(None),
        }
    }
}
