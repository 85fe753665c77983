//! A message's way through its workflow's line: in, from status to status, and out. Counters and reminders follow.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::due::Due;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::Counts;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::remember::HistorySubject;
use crate::engine::rules::step::Step;
use crate::id::SequenceNumber;

impl OpenWorkflow {
    /// Writes a message's new record over its old one; counters and reminders follow.
    pub(crate) fn restate(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: Option<&MessageRecord>,
        after: &MessageRecord,
    ) -> Read<()> {
        let mut after = after.clone();
        after.rare.trim();
        self.restate_as(step, sequence, before, Arc::new(after))
    }

    /// The same, of a record that is shared with whoever has it already.
    pub(crate) fn restate_as(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: Option<&MessageRecord>,
        after: Arc<MessageRecord>,
    ) -> Read<()> {
        let before = before.map(|before| self.leave_state(step, before)).transpose()?;
        self.enter_state(step, sequence, before, &after)?;
        step.write_message(self.message_key(sequence), Some(after))
    }

    /// Changes a message that was looked up; counters and reminders follow. Returns it as it is now.
    pub(crate) fn change_message(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        found: Arc<MessageRecord>,
        mut change: impl FnMut(&mut MessageRecord),
    ) -> Read<Arc<MessageRecord>> {
        let before = self.leave_state(step, &found)?;
        let after = step.update_message(self.message_key(sequence), found, &mut change)?;
        self.enter_state(step, sequence, Some(before), &after)?;
        Ok(after)
    }

    /// Counts a message no longer as what it was.
    fn leave_state(&mut self, step: &mut Step<'_>, before: &MessageRecord) -> Read<StateBefore> {
        self.count(step, before, -1)?;
        let was_out = !matches!(before.status, Status::Ready | Status::Scheduled { .. });
        Ok(StateBefore { was_out, due: due_of(before), expiry: expiry_of(before) })
    }

    /// Counts a message as what it has become, and moves its reminders.
    fn enter_state(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: Option<StateBefore>,
        after: &MessageRecord,
    ) -> Read<()> {
        let StateBefore { was_out, due, expiry } = before.unwrap_or_default();
        self.has_come_back |= matches!(after.status, Status::Ready) && was_out;
        self.count(step, after, 1)?;
        self.move_reminder(step, &Remind::Due(sequence), due, due_of(after))?;
        self.move_reminder(step, &Remind::Expiry(sequence), expiry, expiry_of(after))
    }

    /// Removes a message that has come to its end: it is remembered first, while its content is there, and counted.
    pub(crate) fn erase(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
        ending: HistoryEnding,
    ) -> Read<()> {
        self.remember(step, HistorySubject::Message(sequence, message), ending)?;
        self.count(step, message, -1)?;
        count_ending(&mut step.counters(self.key.queue)?.counts, ending);
        self.move_reminder(step, &Remind::Due(sequence), due_of(message), None)?;
        self.move_reminder(step, &Remind::Expiry(sequence), expiry_of(message), None)?;
        step.write_message(self.message_key(sequence), None)?;
        step.write_content(self.message_key(sequence), None)?;
        if matches!(ending, HistoryEnding::Cancelled | HistoryEnding::Purged) {
            step.forget_id(self.key.queue, sequence, message)?;
        }
        Ok(())
    }

    /// Ends a message as `how` and lets what waits behind it go on.
    pub(crate) fn end(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
        how: SettlementKind,
    ) -> Read<()> {
        if how == SettlementKind::Completed {
            self.record.done = self.record.done.max(message.rank.unwrap_or(0));
        }
        self.leave(step, sequence, message)?;
        self.erase(step, sequence, message, ending_of(how))?;
        self.pass(step, message, how)
    }

    /// Puts a message into the line, or beside it.
    pub(crate) fn join(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        place: LinePlace,
    ) -> Read<()> {
        match place {
            LinePlace::Line(rank) => {
                self.record.line += 1;
                step.write_line(&self.key, rank, Some(sequence))
            }
            LinePlace::Aside(rank) => {
                self.record.aside += 1;
                step.write(Change::Aside(self.key.clone(), rank, Some(sequence)))
            }
        }
    }

    /// Takes a message out of the line, or from beside it.
    pub(crate) fn leave(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        let Some(rank) = message.rank else {
            return self.unlink_waiting(step, sequence, message);
        };
        if self.is_aside(message) {
            self.record.aside -= 1;
            step.write(Change::Aside(self.key.clone(), rank, None))
        } else {
            self.record.line -= 1;
            step.write_line(&self.key, rank, None)
        }
    }

    /// Whether a message stands beside the line: set aside by its consumer, or scheduled in order of arrival.
    pub(crate) fn is_aside(&self, message: &MessageRecord) -> bool {
        match message.status {
            Status::Scheduled { .. } => !self.has_places(),
            Status::ByConsumer { aside, .. } => aside,
            Status::Locked { fetched } => fetched.is_some_and(|deferred| deferred.aside),
            _ => false,
        }
    }

    /// Takes a message's status into account, or out of it.
    fn count(&mut self, step: &mut Step<'_>, message: &MessageRecord, by: i64) -> Read<()> {
        let early = self.is_counted_early(message);
        if early {
            self.record.early = shifted(self.record.early, by);
            self.record.early_bytes = shifted(self.record.early_bytes, by * message.bytes.cast_signed());
        }
        if is_dead(message) {
            self.record.dead = shifted(self.record.dead, by);
        }
        let counts = &mut step.counters(self.key.queue)?.counts;
        let bucket = bucket_of(counts, &message.status, early);
        *bucket = shifted(*bucket, by);
        Ok(())
    }

    /// Takes an early message into the run: its predecessor is no longer missing.
    pub(crate) fn count_as_reached(&mut self, step: &mut Step<'_>, message: &MessageRecord) -> Read<()> {
        if matches!(message.status, Status::Ready) {
            self.record.early -= 1;
            self.record.early_bytes -= message.bytes;
            let counts = &mut step.counters(self.key.queue)?.counts;
            counts.early -= 1;
            counts.ready += 1;
        }
        Ok(())
    }

    /// Moves a reminder from one instant to another, either of which may be none, as both are of nearly all messages.
    #[inline]
    fn move_reminder(
        &mut self,
        step: &mut Step<'_>,
        what: &Remind,
        before: Option<Due>,
        after: Option<Due>,
    ) -> Read<()> {
        if before == after {
            return Ok(());
        }
        if let Some(at) = before {
            step.drop_reminder(at, self.key.queue, what.clone())?;
        }
        if let Some(at) = after {
            step.set_reminder(at, self.key.queue, what.clone())?;
        }
        Ok(())
    }

    pub(crate) fn message_key(&self, sequence: SequenceNumber) -> MessageKey {
        MessageKey { queue: self.key.queue, sequence }
    }
}

/// What has to be known of a message as it was, once it has become something else.
#[derive(Default)]
struct StateBefore {
    /// Whether it was handed out or set aside.
    was_out: bool,
    due: Option<Due>,
    expiry: Option<Due>,
}

/// Where a message stands.
pub(crate) enum LinePlace {
    Line(u64),
    Aside(u64),
}

pub(crate) fn is_dead(message: &MessageRecord) -> bool {
    matches!(message.status, Status::DeadLettered(_))
}

/// How the history calls it when a message in the line is settled for good.
fn ending_of(how: SettlementKind) -> HistoryEnding {
    match how {
        SettlementKind::Completed => HistoryEnding::Completed,
        SettlementKind::Expired => HistoryEnding::Expired,
        SettlementKind::Cancelled => HistoryEnding::Cancelled,
        SettlementKind::Purged => HistoryEnding::Purged,
        other => unreachable!("a message does not end as {other:?}"),
    }
}

/// Counts a message that has left the queue. One that was redriven is accepted anew, as another.
fn count_ending(counts: &mut Counts, ending: HistoryEnding) {
    match ending {
        HistoryEnding::Completed => counts.completed += 1,
        HistoryEnding::Expired => counts.expired += 1,
        HistoryEnding::Cancelled => counts.cancelled += 1,
        HistoryEnding::Purged => counts.purged += 1,
        HistoryEnding::Redriven(_) => counts.accepted -= 1,
        HistoryEnding::Skipped | HistoryEnding::Voided => {
            unreachable!("no message has places that were given up: {ending:?}")
        }
    }
}

/// When a reminder brings the message back.
fn due_of(message: &MessageRecord) -> Option<Due> {
    match message.status {
        Status::Scheduled { due } => Some(due),
        Status::Failed { due } | Status::ByConsumer { due, .. } => due,
        _ => None,
    }
}

/// When a reminder ends the message.
fn expiry_of(message: &MessageRecord) -> Option<Due> {
    message.rare.expires_at.filter(|_| !is_dead(message))
}

/// The counter a message counts in.
fn bucket_of<'a>(counts: &'a mut Counts, status: &Status, early: bool) -> &'a mut u64 {
    match status {
        Status::Ready if early => &mut counts.early,
        Status::Ready => &mut counts.ready,
        Status::Scheduled { .. } => &mut counts.scheduled,
        Status::Failed { due: Some(_) } => &mut counts.retry,
        Status::Failed { due: None } => &mut counts.exhausted,
        Status::ByConsumer { .. } => &mut counts.by_consumer,
        Status::Locked { .. } => &mut counts.locked,
        Status::DeadLettered(_) => &mut counts.dead_lettered,
    }
}

fn shifted(count: u64, by: i64) -> u64 {
    count.checked_add_signed(by).expect("a counter never falls below zero")
}
