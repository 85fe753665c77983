//! Which promises are looked at when.

use crate::engine::tests::simulation::invariants::answers;
use crate::engine::tests::simulation::invariants::audit;
use crate::engine::tests::simulation::invariants::chains;
use crate::engine::tests::simulation::invariants::counts;
use crate::engine::tests::simulation::invariants::cursors;
use crate::engine::tests::simulation::invariants::event_listener;
use crate::engine::tests::simulation::invariants::history;
use crate::engine::tests::simulation::invariants::locks;
use crate::engine::tests::simulation::invariants::order;
use crate::engine::tests::simulation::invariants::stored;
use crate::engine::tests::simulation::invariants::sums;
use crate::engine::tests::simulation::invariants::time;
use crate::engine::tests::simulation::invariants::work;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;

type Invariant = fn(&View<'_>) -> Finding;

/// What can be checked by a look at what was answered.
const EVERY_TURN: &[(&str, Invariant)] = &[
    ("I2 a message ends once", stored::a_message_ends_once),
    ("I3 a workflow has one holder", locks::a_workflow_has_one_holder),
    (
        "I3 a settle is accepted from the holder only",
        locks::a_settle_is_accepted_from_the_holder_and_nobody_else,
    ),
    ("I3 a lock lasts as long as its queue says", locks::a_lock_lasts_as_long_as_its_queue_says),
    ("I4 messages are handed out in order", order::messages_are_handed_out_in_order),
    ("I7 every delivery is counted", counts::every_delivery_is_counted),
    ("I7 an exhausted message is not handed out", counts::an_exhausted_message_is_not_handed_out),
    ("I8 nothing is early", time::nothing_is_early),
    ("I8 nothing due is left undone", time::nothing_due_is_left_undone),
    ("I8 nobody waits too long", time::nobody_waits_too_long),
    ("I9 a duplicate is accepted once", stored::a_duplicate_is_accepted_once),
    ("I9 a key is answered once", answers::a_key_is_answered_once),
    ("I9 numbers are never given twice", stored::numbers_are_never_given_twice),
    ("I10 what is cancelled stays cancelled", stored::what_is_cancelled_was_scheduled),
    ("I11 nobody waits while there is work", work::nobody_waits_while_there_is_work),
    ("I11 nobody waits while there are dead letters", work::nobody_waits_while_there_are_dead_letters),
    ("I14 engine time counts what has passed", time::engine_time_counts_what_has_passed),
    ("I14 no step is believed before it has lasted", time::no_step_is_believed_before_it_has_lasted),
    ("I14 a step that lasts is believed", time::a_step_that_lasts_is_believed),
];

/// What takes a walk over all rows.
const THOROUGHLY: &[(&str, Invariant)] = &[
    ("I1 nothing acknowledged is lost", stored::nothing_acknowledged_is_lost),
    ("I5 every dead letter is listed", stored::every_dead_letter_is_listed),
    ("I3 a suspect is out alone", locks::a_suspect_is_out_alone),
    ("I5 nothing is stranded", work::nothing_is_stranded),
    ("I5 every reminder has its reason", work::every_reminder_has_its_reason),
    ("I5 every trail leads to its link", chains::every_trail_leads_to_its_link),
    ("I5 every link has its trail", chains::every_link_has_its_trail),
    (
        "I6 every answer is counted and will be forgotten",
        answers::every_answer_is_counted_and_will_be_forgotten,
    ),
    ("I6 every entry of a history is counted and listed", history::every_entry_is_counted_and_listed),
    ("I5 a history is forgotten in time", history::a_history_is_forgotten_in_time),
    ("I12 a history tells what happened", history::a_history_tells_what_happened),
    ("I6 every cursor is counted and listed", cursors::every_cursor_is_counted_and_listed),
    ("I5 cursors are forgotten in time", cursors::cursors_are_forgotten_in_time),
    ("I5 every mark has its owner", cursors::every_mark_has_its_owner),
    ("I6 counters equal the rows", counts::counters_equal_the_rows),
    ("I6 every workflow counts its messages", sums::every_workflow_counts_its_messages),
    ("I6 counters equal the answers", counts::counters_equal_the_answers),
    ("I7 delivery counts equal the answers", counts::delivery_counts_equal_the_answers),
    ("I11 a free head is offered", work::a_free_head_is_offered),
    ("I12 holds are told", event_listener::holds_are_told),
    ("I12 dead letters are told", event_listener::dead_letters_are_told),
    ("I12 what operators do is written down", audit::what_operators_do_is_written_down),
];

/// Looks at what the last turn has brought.
pub(crate) fn after_every_turn(view: &View<'_>) -> Finding {
    all(EVERY_TURN, view)
}

/// Looks at everything.
pub(crate) fn thoroughly(view: &View<'_>) -> Finding {
    all(THOROUGHLY, view)
}

fn all(invariants: &[(&str, Invariant)], view: &View<'_>) -> Finding {
    for (name, invariant) in invariants {
        invariant(view).map_err(|wrong| format!("{name}: {wrong}"))?;
    }
    Ok(())
}
