//! When the next thing is due: a lock that runs out, a reminder, or a queue that may hand out again.

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::NextDue;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;

/// When a lock runs out or a reminder is due, whichever is first, on each clock.
pub(crate) fn next_due(records: &dyn Records, locks: &LockTable) -> Read<NextDue> {
    let [engine, wall] = first_reminders(records)?.map(|first| first.map(|reminder| reminder.due));
    let lock = locks.first_deadline().map(|(due, _)| Due::engine(due));
    Ok(NextDue { engine: [engine, lock].into_iter().flatten().min(), wall })
}

/// When the next thing is due, or when a queue that has something ready may hand it out again.
pub(crate) fn next_hand_out(records: &dyn Records, rules: &Rules, now: ClockInstants) -> Read<NextDue> {
    let mut due = next_due(records, rules.locks())?;
    for queue in rules.rates().queues() {
        if let Some(record) = records.queue(*queue)?
            && records.counters(*queue)?.counts.ready > 0
            && let Some(until) = rules.rates().pauses_until(&record, now.engine)
        {
            due.engine = due.engine.into_iter().chain([Due::engine(until)]).min();
        }
    }
    Ok(due)
}

/// The first reminder of engine time and that of wall time.
pub(crate) fn first_reminders(records: &dyn Records) -> Read<[Option<Reminder>; 2]> {
    let engine = records.reminder_from(Due::engine(Timestamp::default()))?;
    let wall = records.reminder_from(Due::FIRST_OF_WALL)?;
    Ok([engine.filter(|reminder| !reminder.due.is_of_wall()), wall])
}
