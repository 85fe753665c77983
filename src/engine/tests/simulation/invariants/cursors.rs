//! Remembered cursors: no more and no less than the queue says, and for as long as it says.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::invariants::work::has_reminder;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::limits;

/// I6: every cursor is of a workflow that is forgotten, is listed by its age, and is counted.
pub(crate) fn every_cursor_is_counted_and_listed(view: &View<'_>) -> Finding {
    let mut found: BTreeMap<QueueId, u64> = BTreeMap::new();
    let mut by_age: BTreeSet<(QueueId, Timestamp, WorkflowRef)> = BTreeSet::new();
    for (key, cursor) in &view.rows().cursors {
        *found.entry(key.queue).or_default() += 1;
        by_age.insert((key.queue, cursor.since, key.stream.clone()));
        let workflow = view.rows().workflows.get(key);
        expect(workflow.is_none(), || format!("{key:?} is forgotten, and there: {workflow:?}"))?;
    }
    let listed = &view.rows().cursors_by_age;
    expect(*listed == by_age, || format!("{listed:?} are listed by age, {by_age:?} are there"))?;
    for (queue, count) in &view.rows().cursor_counts {
        let there = found.remove(queue).unwrap_or_default();
        expect(count.kept == there, || format!("{queue:?} has {there} cursors, and counts {count:?}"))?;
    }
    expect(found.is_empty(), || format!("nobody counts these cursors: {found:?}"))
}

/// I5: the oldest cursor is looked at when its time is over, and at once when there are too many.
pub(crate) fn cursors_are_forgotten_in_time(view: &View<'_>) -> Finding {
    for (queue, count) in &view.rows().cursor_counts {
        if let Some(check) = count.check {
            let reminder = Reminder { due: check.into(), queue: *queue, what: Remind::Cursors };
            expect(has_reminder(view, &reminder), || format!("nothing looks through {count:?}"))?;
        }
        let oldest = view.rows().cursors_by_age.iter().find(|(of, _, _)| of == queue);
        let Some((_, since, _)) = oldest else { continue };
        let (options, now) = (&view.rows().queues[queue].options, view.now.engine);
        let latest = match count.kept <= options.cursors_max {
            true => (*since + options.remember_cursor).max(now + limits::CURSORS_FORGET_EVERY),
            false => now,
        };
        let is_looked_at = count.check.is_some_and(|check| check <= latest);
        expect(is_looked_at, || format!("{count:?} is not looked through by {latest}: {oldest:?}"))?;
    }
    Ok(())
}

/// I5: what is settled belongs to a workflow that is known, or whose cursor is remembered.
pub(crate) fn every_mark_has_its_owner(view: &View<'_>) -> Finding {
    let rows = view.rows();
    for (key, _) in rows.marks.keys() {
        let is_owned = rows.workflows.contains_key(key) || rows.cursors.contains_key(key);
        expect(is_owned, || format!("marks of {key:?} are left behind"))?;
    }
    Ok(())
}
