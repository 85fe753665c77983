//! Time: never early on its own clock, done as soon as there is a turn, never back, and no step of the wall clock counts
//! that was taken back.

use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;

/// I8: nothing is handed out before its schedule, its retry or the end of its deferral, unless it is asked for.
pub(crate) fn nothing_is_early(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Delivered { not_before: Some(not_before), is_fetched: false, .. } = fact else { continue };
        expect(not_before.is_past(view.now), || format!("at {:?}: {fact:?}", view.now))?;
    }
    Ok(())
}

/// I8: after a turn there is no lock that has run out, and no reminder that was due before it.
pub(crate) fn nothing_due_is_left_undone(view: &View<'_>) -> Finding {
    if let Some((until, token)) = view.locks().first_deadline() {
        expect(view.now.engine < until, || {
            format!("at {:?}: lock {token} has run out at {until}", view.now)
        })?;
    }
    // What is set for an instant that has passed is done in the next turn.
    for due in view.due.iter().filter(|reminder| reminder.due.at() < reminder.due.clock(view.now)) {
        let is_left = view.rows().reminders.values().any(|reminder| reminder == due);
        expect(!is_left, || format!("at {:?}: {due:?}", view.now))?;
    }
    Ok(())
}

/// I8: nobody waits for longer than he said.
pub(crate) fn nobody_waits_too_long(view: &View<'_>) -> Finding {
    let until = view.plain.wakeups.first_deadline();
    let is_over = until.is_some_and(|until| until <= view.shown.elapsed());
    expect(!is_over, || format!("somebody waits until {until:?}, and it is {:?}", view.shown.elapsed()))
}

/// I14: engine time advances by what has passed, whatever the wall clock does, and never runs back over restarts.
pub(crate) fn engine_time_counts_what_has_passed(view: &View<'_>) -> Finding {
    let (before, now) = (view.before.engine, view.now.engine);
    let passed = view.shown.passed();
    expect(now == before + passed, || format!("{now} after {before}, and {passed:?} have passed"))?;
    expect(view.plain.stamped.engine <= now, || format!("{now} was stamped {:?}", view.plain.stamped))
}

/// I14: the wall clock that is believed is never ahead of what is shown, nor of a step forward that may be taken back.
pub(crate) fn no_step_is_believed_before_it_has_lasted(view: &View<'_>) -> Finding {
    let (believed, shown) = (view.now.wall, view.shown.wall());
    expect(believed <= shown, || format!("{believed} is believed, {shown} is shown"))?;
    let most = view.shown.believable();
    expect(believed <= most, || format!("{believed} is believed, and at most {most} has lasted"))
}

/// I14: a wall clock that nobody sets for long enough is believed.
pub(crate) fn a_step_that_lasts_is_believed(view: &View<'_>) -> Finding {
    let (believed, shown) = (view.now.wall, view.shown.wall());
    expect(believed == shown || !view.shown.is_steady(), || {
        format!("{believed} is believed, {shown} is shown, and nobody sets it")
    })
}
