//! In their places, one after another.

use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// I4: whoever has a message out has every earlier one of its workflow out as well, or that is settled or set aside.
/// What was taken back within the turn is nobody's any more.
pub(crate) fn messages_are_handed_out_in_order(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Delivered { queue, sequence, token, is_fetched: false, .. } = fact else { continue };
        let Some(message) = view.message(queue, *sequence) else { continue };
        if !is_out(view, *token, *sequence) || matches!(message.stream, WorkflowRef::Single(_)) {
            continue;
        }
        let Some(queue) = view.queue(queue) else { continue };
        for (key, earlier) in view.messages_of(queue.id) {
            // Ranks first: they tell most of them apart without comparing names.
            let is_before = earlier.rank.is_some() && earlier.rank < message.rank;
            if !is_before || earlier.stream != message.stream {
                continue;
            }
            let is_out = is_out(view, *token, key.sequence);
            // It may have come back to its place in the line after the other had gone.
            let is_new =
                view.facts.iter().any(|fact| matches!(fact, Fact::Rescheduled(of) if *of == key.sequence));
            let is_passed =
                is_out || is_new || is_beside(earlier, queue.options.order == crate::queue::Order::Arrival);
            expect(is_passed, || format!("{sequence} was handed out before {}: {earlier:?}", key.sequence))?;
        }
    }
    Ok(())
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
