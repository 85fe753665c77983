//! In their places, one after another.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;
use crate::queue::Order;
use crate::token::LockToken;

/// I4: whoever has a message out has every earlier one of its workflow out as well, or that is settled or set aside.
/// What was taken back within the turn is nobody's any more.
pub(crate) fn messages_are_handed_out_in_order(view: &View<'_>) -> Finding {
    // It may have come back to its place in the line after the other had gone.
    let new: BTreeSet<SequenceNumber> = view
        .facts
        .iter()
        .filter_map(|fact| if let Fact::Rescheduled(of) = fact { Some(*of) } else { None })
        .collect();
    for (token, (queue, sequence, message)) in last_out(view) {
        let Some(lock) = view.locks().get(token) else { continue };
        let out: BTreeSet<SequenceNumber> = lock.out.iter().collect();
        for (key, earlier) in view.messages_of(queue.id) {
            // Ranks first: they tell most of them apart without comparing names.
            let is_before = earlier.rank.is_some() && earlier.rank < message.rank;
            if !is_before || earlier.stream != message.stream {
                continue;
            }
            let is_passed = out.contains(&key.sequence)
                || new.contains(&key.sequence)
                || is_beside(earlier, queue.options.order == Order::Arrival);
            expect(is_passed, || format!("{sequence} was handed out before {}: {earlier:?}", key.sequence))?;
        }
    }
    Ok(())
}

/// The last message of its workflow that each holder has got in this turn and still has: what has to be before any other is before
/// this one.
fn last_out<'v>(
    view: &'v View<'_>,
) -> BTreeMap<LockToken, (&'v QueueRecord, SequenceNumber, &'v MessageRecord)> {
    let mut last: BTreeMap<LockToken, (&QueueRecord, SequenceNumber, &MessageRecord)> = BTreeMap::new();
    for fact in view.facts {
        let Fact::Delivered { queue, sequence, token, is_fetched: false, .. } = fact else { continue };
        let Some(message) = view.message(queue, *sequence) else { continue };
        let is_later = last.get(token).is_none_or(|(_, _, last)| last.rank < message.rank);
        if !is_later || matches!(message.stream, WorkflowRef::Single(_)) || !is_out(view, *token, *sequence) {
            continue;
        }
        let Some(queue) = view.queue(queue) else { continue };
        last.insert(*token, (queue, *sequence, message));
    }
    last
}

fn is_out(view: &View<'_>, token: LockToken, sequence: SequenceNumber) -> bool {
    view.locks().get(token).is_some_and(|lock| lock.out.contains(sequence))
}

/// Whether a workflow goes on without this message.
fn is_beside(message: &MessageRecord, in_arrival: bool) -> bool {
    match message.status {
        Status::DeadLettered(_) | Status::ByConsumer { aside: true, .. } => true,
        Status::Scheduled { .. } => in_arrival,
        _ => false,
    }
}
