//! Whoever hears every event and asks nothing knows what is held and what is dead.

use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::queue::HoldKind;

/// I12: of every workflow that is held and of every one that goes on, the last that was told is so.
pub(crate) fn holds_are_told(view: &View<'_>) -> Finding {
    for (key, workflow) in &view.rows().workflows {
        let WorkflowRef::Named(id) = &key.stream else { continue };
        // It is held by what an operator has asked for, until that is done.
        if workflow.rare.holds.has(HoldKind::Redriving) {
            continue;
        }
        let Some(queue) = view.rows().queues.get(&key.queue) else { continue };
        let is_reported = view.ledger.event_listener.held.contains(&(queue.name.clone(), id.clone()));
        let is_held = !workflow.rare.holds.is_empty();
        expect(is_reported == is_held, || {
            format!("{key:?} is held: {is_held}, told: {is_reported}; {workflow:?}")
        })?;
    }
    Ok(())
}

/// I12: of every dead letter it was told that it is one, and of no other message.
pub(crate) fn dead_letters_are_told(view: &View<'_>) -> Finding {
    for (key, message) in &view.rows().messages {
        let is_dead = matches!(message.status, Status::DeadLettered(_));
        let is_reported = view.ledger.event_listener.dead.contains(&key.sequence);
        expect(is_dead == is_reported, || {
            format!("{} is dead: {is_dead}, told: {is_reported}; {message:?}", key.sequence)
        })?;
    }
    Ok(())
}
