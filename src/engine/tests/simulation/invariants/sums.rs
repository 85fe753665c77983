//! What a workflow's record counts is what its messages give, each of them listed where it is and nowhere else.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::tests::simulation::invariants::counts::is_early;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;

/// What a workflow's record counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    line: u64,
    early: u64,
    early_bytes: u64,
    aside: u64,
    dead: u64,
}

/// Where a message is listed in its workflow.
type Listed = BTreeSet<(QueueId, SequenceNumber)>;

/// I6: every workflow counts the messages of its line, those that are early with their bytes, those beside its line, and
/// its dead letters.
pub(crate) fn every_workflow_counts_its_messages(view: &View<'_>) -> Finding {
    let rows = view.rows();
    let in_line = rows.line.iter().map(|((key, _), sequence)| (key.queue, *sequence));
    let in_line: Listed =
        in_line.chain(rows.waiting.iter().map(|((key, _), sequence)| (key.queue, *sequence))).collect();
    let aside: Listed = rows.aside.iter().map(|((key, _), sequence)| (key.queue, *sequence)).collect();
    let mut found: BTreeMap<WorkflowKey, Sums> = BTreeMap::new();
    for (MessageKey { queue, sequence }, message) in &rows.messages {
        let key = WorkflowKey { queue: *queue, stream: message.stream.clone() };
        let sums = found.entry(key).or_default();
        let place = (*queue, *sequence);
        let is_dead = matches!(message.status, Status::DeadLettered(_));
        let lists =
            u64::from(in_line.contains(&place)) + u64::from(aside.contains(&place)) + u64::from(is_dead);
        expect(lists == 1, || format!("message {sequence} is listed {lists} times: {message:?}"))?;
        sums.dead += u64::from(is_dead);
        sums.aside += u64::from(aside.contains(&place));
        sums.line += u64::from(in_line.contains(&place));
        if message.status == Status::Ready && is_early(view, *queue, message) {
            sums.early += 1;
            sums.early_bytes += message.bytes;
        }
    }
    for (key, workflow) in &rows.workflows {
        let (line, early, early_bytes) = (workflow.line, workflow.early, workflow.early_bytes);
        let counted = Sums { line, early, early_bytes, aside: workflow.aside, dead: workflow.dead };
        let found = found.remove(key).unwrap_or_default();
        expect(counted == found, || format!("{key:?} counts {counted:?}, there are {found:?}"))?;
    }
    expect(found.is_empty(), || format!("there are messages of workflows that are not there: {found:?}"))
}
