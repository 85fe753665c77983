//! What is looked up of a queue's history, a page at a time.

use std::sync::Arc;

use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;

/// Up to `limit` entries of a queue, or of one workflow of it, newest first, before the one with this number.
pub(crate) fn page(
    records: &dyn Records,
    queue: QueueId,
    id: Option<WorkflowId>,
    before: Option<u64>,
    limit: usize,
) -> Read<Vec<HistoryEntry>> {
    let span = records.counters(queue)?.history;
    let key = id.map(|id| WorkflowKey { queue, stream: WorkflowRef::Named(id) });
    let mut before = before.map_or(span.next, |before| before.min(span.next));
    let mut page = Vec::new();
    while page.len() < limit.min(limits::PAGE_MAX) && before > span.first {
        let number = match &key {
            Some(key) => records.history_of_workflow(key, before - 1)?,
            None => Some(before - 1),
        };
        let Some(number) = number else { break };
        let entry = records.history(queue, number)?;
        page.push(Arc::unwrap_or_clone(entry.expect("a history has every entry of its span")));
        before = number;
    }
    Ok(page)
}

/// How a message has ended: one entry, or none.
pub(crate) fn of_message(
    records: &dyn Records,
    queue: QueueId,
    sequence: SequenceNumber,
) -> Read<Vec<HistoryEntry>> {
    let entry = match records.history_of_message(queue, sequence)? {
        Some(number) => records.history(queue, number)?,
        None => None,
    };
    Ok(entry.map(Arc::unwrap_or_clone).into_iter().collect())
}
