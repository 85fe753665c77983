//! Whatever can go on does, and whatever waits waits for something.

use crate::clock::Timestamp;
use crate::engine::rules::dead_letters::lock_key;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::waits_for::WaitsFor;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;
use crate::queue::Order;

/// I11: nobody waits for work of a queue that offers some.
pub(crate) fn nobody_waits_while_there_is_work(view: &View<'_>) -> Finding {
    if view.plain.wakeups.len() == 0 {
        return Ok(());
    }
    for ((queue, ticket), stream) in &view.rows().ready {
        let Some(queue) = view.rows().queues.get(queue) else { continue };
        let waits = view.plain.wakeups.is_waited_for(&WaitsFor::Queue(queue.name.clone()));
        expect(!waits, || format!("somebody waits although {stream:?} is ready under {ticket}"))?;
    }
    Ok(())
}

/// I11: nobody waits for dead letters of a queue that has one which nobody has and nobody has set aside.
pub(crate) fn nobody_waits_while_there_are_dead_letters(view: &View<'_>) -> Finding {
    if view.plain.wakeups.len() == 0 {
        return Ok(());
    }
    for (key, message) in &view.rows().messages {
        let Some(queue) = view.rows().queues.get(&key.queue) else { continue };
        let Status::DeadLettered(dead_letter) = &message.status else { continue };
        let is_free = !dead_letter.deferred && view.locks().of(&lock_key(key.queue, key.sequence)).is_none();
        let waits = view.plain.wakeups.is_waited_for(&WaitsFor::DeadLetters(queue.name.clone()));
        expect(!waits || !is_free, || {
            format!("somebody waits although dead letter {} is free", key.sequence)
        })?;
    }
    Ok(())
}

/// I11: a workflow that nobody holds and whose head is ready is offered now, under its one ticket.
pub(crate) fn a_free_head_is_offered(view: &View<'_>) -> Finding {
    for (key, workflow) in &view.rows().workflows {
        let is_free = workflow.rare.holds.is_empty() && view.locks().of(key).is_none();
        let is_offered = workflow
            .ticket
            .is_some_and(|ticket| view.rows().ready.get(&(key.queue, ticket)) == Some(&key.stream));
        expect(is_offered == workflow.ticket.is_some(), || {
            format!("{key:?} has a ticket that is not listed")
        })?;
        let head = view.rows().line.range((key.clone(), 0)..).next().filter(|((of, _), _)| of == key);
        let head = head.and_then(|((_, rank), sequence)| Some((*rank, stored(view, key.queue, *sequence)?)));
        let is_ready =
            head.is_some_and(|(rank, head)| head.status == Status::Ready && is_next(view, key, rank));
        expect(is_offered == (is_free && is_ready), || {
            format!("{key:?} is offered: {is_offered}, free: {is_free}, ready: {is_ready}; {workflow:?}")
        })?;
    }
    let listed = view.rows().ready.len();
    let tickets = view.rows().workflows.values().filter(|workflow| workflow.ticket.is_some()).count();
    expect(listed == tickets, || format!("{listed} are listed as ready, {tickets} have tickets"))
}

fn stored<'a>(view: &'a View<'_>, queue: QueueId, sequence: SequenceNumber) -> Option<&'a MessageRecord> {
    view.rows().messages.get(&MessageKey { queue, sequence }).map(|message| &**message)
}

/// Whether every place before this one is settled or set aside, by the places that are known of and not by the cursor.
fn is_next(view: &View<'_>, key: &WorkflowKey, rank: u64) -> bool {
    let order = view.rows().queues.get(&key.queue).map(|queue| queue.options.order);
    match (order, &key.stream) {
        (Some(Order::Position { first }), WorkflowRef::Named(_)) => {
            let workflow = &view.rows().workflows[key];
            (workflow.cursor.max(first.get())..rank).all(|place| {
                let marked = view.rows().marks.range(..=(key.clone(), place)).next_back();
                marked.is_some_and(|((of, _), mark)| of == key && place <= mark.to)
            })
        }
        (Some(Order::After), WorkflowRef::Named(_)) => rank <= view.rows().workflows[key].through,
        _ => true,
    }
}

/// I5: whatever waits has what brings it on: a reminder, a predecessor, a holder with a lock, or somebody's word.
pub(crate) fn nothing_is_stranded(view: &View<'_>) -> Finding {
    for (key, message) in &view.rows().messages {
        let (due, is_locked) = match message.status {
            Status::Scheduled { due } => (Some(due), false),
            Status::Failed { due } | Status::ByConsumer { due, .. } => (due, false),
            Status::Locked { .. } => (None, true),
            _ => (None, false),
        };
        let reminds = |due: Due, what: Remind| has_reminder(view, &Reminder { due, queue: key.queue, what });
        let is_reminded = due.is_none_or(|due| reminds(due, Remind::Due(key.sequence)));
        expect(is_reminded, || format!("nothing reminds of {}: {message:?}", key.sequence))?;
        let expires = message.rare.expires_at.filter(|_| !matches!(message.status, Status::DeadLettered(_)));
        let is_ended = expires.is_none_or(|at| {
            reminds(at, Remind::Expiry(key.sequence)) || (is_locked && at.is_past(view.now))
        });
        expect(is_ended, || format!("nothing expires {}: {message:?}", key.sequence))?;
        if matches!(message.status, Status::DeadLettered(_)) {
            continue;
        }
        let workflow = WorkflowKey { queue: key.queue, stream: message.stream.clone() };
        let lock = view.locks().of(&workflow);
        let is_held = lock.is_some_and(|(_, lock)| lock.out.contains(key.sequence));
        expect(is_held == is_locked, || format!("{} is locked: {is_locked}, held: {is_held}", key.sequence))?;
    }
    view.rows().workflows.iter().try_for_each(|(key, workflow)| a_gap_is_watched(view, key, workflow))
}

/// I5: where early messages wait, a gap is timed, or has been and the workflow has not come to it or is held, or the end of the
/// run is still being looked for, step by step; a hold for a gap is about one that is there.
fn a_gap_is_watched(view: &View<'_>, key: &WorkflowKey, workflow: &WorkflowRecord) -> Finding {
    let held_for_gap = workflow.rare.holds.has(HoldKind::Gap);
    if workflow.early == 0 {
        return expect(!held_for_gap, || format!("{key:?} is held for a gap that is gone: {workflow:?}"));
    }
    let before = view.rows().line.range((key.clone(), 0)..=(key.clone(), workflow.through)).next();
    let Some(gap) = workflow.rare.gap else {
        if workflow.rare.extending || workflow.rare.shortening.is_some() {
            let goes_on = workflow.rare.sweep.is_some_and(|due| {
                let what = Remind::Sweep(key.stream.clone());
                has_reminder(view, &Reminder { due: due.into(), queue: key.queue, what })
            });
            return expect(goes_on, || format!("nobody looks for the end of {key:?}: {workflow:?}"));
        }
        let waits_on = before.is_some() || !has_stray(view, key);
        let is_quiet = is_chained(view, key) && waits_on;
        return expect(is_quiet, || format!("{key:?} has a gap that nobody knows: {workflow:?}"));
    };
    let what = || Remind::Gap(key.stream.clone());
    let is_timed = gap
        .due
        .is_some_and(|due| has_reminder(view, &Reminder { due: due.into(), queue: key.queue, what: what() }));
    // Whoever has the workflow does not stop the policy; what is held may wait for somebody's word.
    let is_judged = before.is_some() || !workflow.rare.holds.is_empty();
    let is_watched = is_timed || (gap.due.is_none() && is_judged);
    expect(is_watched, || format!("nobody watches the gap of {key:?}: {workflow:?}"))
}

fn is_chained(view: &View<'_>, key: &WorkflowKey) -> bool {
    view.rows().queues.get(&key.queue).is_some_and(|queue| queue.options.order == Order::After)
}

/// Whether a message waits that is not scheduled and names a predecessor of which nothing is known, or messages name each
/// other in a circle. In after-order, only then and only behind a settled chain is there a gap.
fn has_stray(view: &View<'_>, key: &WorkflowKey) -> bool {
    let roots = view.rows().roots.range((key.clone(), SequenceNumber::new(0))..);
    let mut roots = roots.take_while(|(of, _)| of == key).peekable();
    let is_ready = |sequence: &SequenceNumber| {
        stored(view, key.queue, *sequence).is_some_and(|message| message.status == Status::Ready)
    };
    roots.peek().is_none() || roots.any(|(_, sequence)| is_ready(sequence))
}

pub(crate) fn has_reminder(view: &View<'_>, reminder: &Reminder) -> bool {
    let bytes = postcard::to_stdvec(&reminder.what).expect("a reminder has bytes");
    view.rows().reminders.contains_key(&(reminder.due, reminder.queue, bytes))
}

/// I5: every reminder of a queue that exists is about something that is so.
pub(crate) fn every_reminder_has_its_reason(view: &View<'_>) -> Finding {
    for reminder in view.rows().reminders.values().filter(|reminder| {
        reminder.queue == QueueId::OF_TOPICS || view.rows().queues.contains_key(&reminder.queue)
    }) {
        let workflow = |stream: &WorkflowRef| {
            view.rows().workflows.get(&WorkflowKey { queue: reminder.queue, stream: stream.clone() })
        };
        let message = |sequence: &SequenceNumber| stored(view, reminder.queue, *sequence);
        let due = Some(reminder.due);
        let is_due = |at: Option<Timestamp>| at.map(Due::engine) == due;
        let has_reason = match &reminder.what {
            Remind::Due(sequence) => message(sequence).is_some_and(|message| match message.status {
                Status::Scheduled { due: at } => Some(at) == due,
                Status::Failed { due: at } | Status::ByConsumer { due: at, .. } => at == due,
                _ => false,
            }),
            Remind::Expiry(sequence) => {
                message(sequence).is_some_and(|message| message.rare.expires_at == due)
            }
            Remind::Gap(stream) => {
                workflow(stream).and_then(|workflow| workflow.rare.gap).is_some_and(|gap| is_due(gap.due))
            }
            Remind::Sweep(stream) => workflow(stream).is_some_and(|workflow| is_due(workflow.rare.sweep)),
            Remind::Forget(stream) => workflow(stream).is_some_and(|workflow| is_due(workflow.forget)),
            Remind::Duplicate(id) => view
                .rows()
                .duplicates
                .get(&(reminder.queue, id.clone()))
                .is_some_and(|known| is_due(Some(known.until))),
            Remind::Idle => is_due(view.rows().queues[&reminder.queue].idle_check),
            Remind::Answer(key) => view
                .rows()
                .answers
                .get(&(reminder.queue, key.clone()))
                .is_some_and(|known| is_due(Some(known.until))),
            Remind::Cursors => {
                is_due(view.rows().cursor_counts.get(&reminder.queue).and_then(|count| count.check))
            }
            Remind::History => {
                is_due(view.rows().counters.get(&reminder.queue).and_then(|counters| counters.history.check))
            }
        };
        expect(has_reason, || format!("{reminder:?} has no reason"))?;
    }
    Ok(())
}
