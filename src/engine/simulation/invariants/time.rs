//! Time: never early, done as soon as there is a turn, never back.

use crate::engine::simulation::ledger::fact::Fact;
use crate::engine::simulation::view::Finding;
use crate::engine::simulation::view::View;
use crate::engine::simulation::view::expect;

/// I8: nothing is handed out before its schedule, its retry or the end of its deferral, unless it is asked for.
pub(crate) fn nothing_is_early(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Delivered { not_before: Some(not_before), is_fetched: false, .. } = fact else { continue };
        expect(*not_before <= view.now, || format!("at {}: {fact:?}", view.now))?;
    }
    Ok(())
}

/// I8: after a turn there is no lock that has run out, and no reminder that was due before it.
pub(crate) fn nothing_due_is_left_undone(view: &View<'_>) -> Finding {
    if let Some((until, token)) = view.locks().first_deadline() {
        expect(view.now < until, || format!("at {}: lock {token} has run out at {until}", view.now))?;
    }
    // What is set for an instant that has passed is done in the next turn.
    let Some(due) = view.due.as_ref().filter(|reminder| reminder.due < view.now) else { return Ok(()) };
    let is_left = view.rows().reminders.values().any(|reminder| reminder == due);
    expect(!is_left, || format!("at {}: {due:?}", view.now))
}

/// I8: nobody waits for longer than he said.
pub(crate) fn nobody_waits_too_long(view: &View<'_>) -> Finding {
    let until = view.plain.wakeups.first_deadline();
    let is_over = until.is_some_and(|until| until <= view.elapsed);
    expect(!is_over, || format!("somebody waits until {until:?}, and it is {:?}", view.elapsed))
}

/// I14: the engine's time never runs back, whatever the clock does, and over restarts.
pub(crate) fn time_never_runs_back(view: &View<'_>) -> Finding {
    expect(view.before <= view.now, || format!("{} after {}", view.now, view.before))?;
    expect(view.plain.stamped <= view.now, || format!("{} was stamped {}", view.now, view.plain.stamped))
}
