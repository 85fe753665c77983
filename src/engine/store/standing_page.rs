//! Pages of the workflows that may stand still, with what is stored of them.

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::turn::Turn;
use crate::id::WorkflowId;
use crate::limits;

/// Workflows with their records, in order of ID.
type Workflows = Vec<(WorkflowRef, WorkflowRecord)>;

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
        if !self.meta.standing.knows_all(queue) {
            return Ok(None);
        }
        let mut found = Vec::new();
        let mut from = after.cloned();
        while found.len() < limit
            && let Some(id) = self.meta.standing.next_after(queue, from.as_ref())
        {
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
        let Some(after) = self.meta.standing.scans_after(queue) else { return Ok(()) };
        let page = self.workflows(queue, Some(&after), limits::PAGE_MAX)?;
        let is_last = page.len() < limits::PAGE_MAX;
        let next = page.last().filter(|_| !is_last).map(|(last, _)| last.clone());
        self.meta.standing.note_scanned(queue, &page, next);
        Ok(())
    }
}
