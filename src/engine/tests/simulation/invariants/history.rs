//! History: what a queue remembers of messages that have ended, no more and no less, and for as long as it says.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::history::HistorySpan;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::invariants::work::has_reminder;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;
use crate::limits;

fn span(view: &View<'_>, queue: QueueId) -> HistorySpan {
    view.rows().counters.get(&queue).copied().unwrap_or_default().history
}

/// I5, I6: a history has every entry of its span and no other, and each is found by its message and its workflow.
pub(crate) fn every_entry_is_counted_and_listed(view: &View<'_>) -> Finding {
    let mut found: BTreeMap<QueueId, BTreeSet<u64>> = BTreeMap::new();
    let mut by_message: BTreeMap<(QueueId, SequenceNumber), u64> = BTreeMap::new();
    let mut by_workflow: BTreeSet<(WorkflowKey, u64)> = BTreeSet::new();
    for ((queue, number), entry) in &view.rows().history {
        expect(entry.number == *number, || format!("entry {number} says that it is {}", entry.number))?;
        found.entry(*queue).or_default().insert(*number);
        if let Some(sequence) = entry.sequence_number {
            by_message.insert((*queue, sequence), *number);
            let is_stored = view.rows().messages.contains_key(&MessageKey { queue: *queue, sequence });
            expect(!is_stored, || format!("message {sequence} is stored, and has ended: {entry:?}"))?;
        }
        if let Some(id) = entry.workflow_id.clone() {
            by_workflow.insert((WorkflowKey { queue: *queue, stream: WorkflowRef::Named(id) }, *number));
        }
    }
    for queue in view.rows().queues.keys() {
        let span = span(view, *queue);
        let expected: BTreeSet<u64> = (span.first..span.next).collect();
        let found = found.remove(queue).unwrap_or_default();
        expect(found == expected, || format!("the history of {queue:?} is {span:?}, found {found:?}"))?;
    }
    expect(found.is_empty(), || format!("there is history of queues that are gone: {found:?}"))?;
    let rows = view.rows();
    expect(rows.history_by_message == by_message, || {
        format!("by message {:?} are listed, {by_message:?} are there", rows.history_by_message)
    })?;
    expect(rows.history_by_workflow == by_workflow, || {
        format!("by workflow {:?} are listed, {by_workflow:?} are there", rows.history_by_workflow)
    })
}

/// I5: what is kept will be forgotten, within a moment of its time, and there is no more of it than the queue says.
pub(crate) fn a_history_is_forgotten_in_time(view: &View<'_>) -> Finding {
    for queue in view.rows().queues.values() {
        let span = span(view, queue.id);
        if let Some(check) = span.check {
            let reminder = Reminder { due: check.into(), queue: queue.id, what: Remind::History };
            expect(has_reminder(view, &reminder), || format!("nothing looks through {span:?}"))?;
        }
        let Some(first) = view.rows().history.get(&(queue.id, span.first)).filter(|_| span.kept() > 0) else {
            continue;
        };
        let latest = latest_check(view.now.engine, queue, &span, first);
        expect(span.check.is_some_and(|check| check <= latest), || {
            format!("{span:?} is not looked through by {latest}: {first:?}")
        })?;
    }
    Ok(())
}

/// When the oldest entry has to be looked at, at the latest.
fn latest_check(now: Timestamp, queue: &QueueRecord, span: &HistorySpan, first: &HistoryEntry) -> Timestamp {
    match queue.options.history {
        Some(lasts) if span.kept() <= queue.options.history_max => {
            (first.since + lasts).max(now + limits::HISTORY_FORGET_EVERY)
        }
        _ => now,
    }
}

/// I12: what is remembered of a message is what was answered of it, and nothing that ended is left out.
pub(crate) fn a_history_tells_what_happened(view: &View<'_>) -> Finding {
    for entry in view.rows().history.values() {
        let Some(sequence) = entry.sequence_number else { continue };
        let Some(known) = view.ledger.entries.get(&sequence) else {
            return Err(format!("message {sequence} was never sent: {entry:?}"));
        };
        let is_right = match known.end {
            Some(End::Completed) => entry.ending == HistoryEnding::Completed,
            Some(End::Cancelled) => entry.ending == HistoryEnding::Cancelled,
            Some(End::SentAnew) => matches!(entry.ending, HistoryEnding::Redriven(_)),
            Some(End::QueueGone) => false,
            _ => matches!(entry.ending, HistoryEnding::Expired | HistoryEnding::Purged),
        };
        expect(is_right, || format!("message {sequence}: {entry:?}, and {known:?}"))?;
        let (lowest, highest) = known.count;
        let is_counted = (lowest..=highest).contains(&entry.delivery_count);
        expect(is_counted, || format!("message {sequence}: {entry:?}, and {known:?}"))?;
    }
    for queue in view.rows().queues.values() {
        let counters = view.rows().counters.get(&queue.id).copied().unwrap_or_default();
        let (counts, next) = (counters.counts, counters.history.next);
        let ended = counts.completed + counts.expired + counts.cancelled + counts.purged;
        let known = view.ledger.queues.get(&queue.name);
        let is_whole = known.is_some_and(|known| known.has_always_history);
        expect(!is_whole || next.saturating_sub(1) >= ended, || {
            format!("{}: {ended} messages have ended, and {next} is the next to be remembered", queue.name)
        })?;
    }
    Ok(())
}
