//! What becomes of a message that failed, was set aside, expired, or is moved to the dead letters.

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::rules::command::Retry;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::line::LinePlace;
use crate::engine::rules::record::Attempt;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::Deferred;
use crate::engine::rules::record::HoldCause;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Settled;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Stream;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow::Workflow;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::Expired;
use crate::queue::Spent;

/// Reason of a dead letter whose delivery count reached the maximum.
pub(crate) const MAX_DELIVERY_COUNT_EXCEEDED: &str = "MaxDeliveryCountExceeded";
/// Reason of a dead letter whose time to live was over.
pub(crate) const TTL_EXPIRED: &str = "TTLExpiredException";

impl Workflow {
    /// A handed-out message has failed: it is tried again, or it is spent.
    pub(crate) fn fail(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        retry: Retry,
        reason: &str,
    ) -> Read<()> {
        let before = step.message_listed(self.key.queue, sequence)?;
        let Status::Locked { fetched } = before.status else {
            unreachable!("only a handed-out message fails")
        };
        let mut message = MessageRecord::clone(&before);
        note_attempt(&mut message, step.now, reason);
        if is_expired(&message, step.now) {
            self.restate(step, sequence, Some(&before), &message)?;
            return self.expire(step, sequence, &message);
        }
        let due = self.due_of_retry(step, retry, message.delivery_count);
        let spent = message.delivery_count >= self.queue.options.delivery_count_max;
        if let Some(Deferred { due: back, aside: true }) = fetched {
            message.status = Status::Asked { due: due.or(back), aside: true };
            self.restate(step, sequence, Some(&before), &message)?;
            return match spent {
                // Beside the line it blocks nobody, so there is nothing to hold.
                true => self.dead_letter_quietly(step, sequence, MAX_DELIVERY_COUNT_EXCEEDED, reason),
                false => Ok(()),
            };
        }
        let held_by_another = self.record.hold.as_ref().is_some_and(|hold| {
            matches!(hold.cause, HoldCause::Spent(_) | HoldCause::Quarantine(_) | HoldCause::Predecessor(_))
        });
        if spent && !held_by_another {
            return self.spend(step, sequence, &before, message, reason);
        }
        message.status = due.map_or(Status::Ready, |due| Status::Failed { due: Some(due) });
        if let Some(until) = due {
            let blocked = EventKind::Blocked { until, reason: reason.to_owned() };
            self.tell(step, Some(sequence), blocked)?;
        }
        self.restate(step, sequence, Some(&before), &message)
    }

    fn due_of_retry(&self, step: &Step<'_>, retry: Retry, delivery_count: u32) -> Option<Timestamp> {
        let due = match retry {
            Retry::Now => step.now,
            Retry::After(delay) => step.now + delay.min(limits::DURATION_MAX),
            Retry::At(at) => at,
            Retry::Backoff(entropy) => step.now + self.queue.options.backoff.delay(delivery_count, entropy),
        };
        (due > step.now).then_some(due)
    }

    /// A message has failed as often as it may: the queue's policy decides.
    fn spend(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: &MessageRecord,
        mut message: MessageRecord,
        reason: &str,
    ) -> Read<()> {
        // A message for itself has nothing behind it, and nobody could name its workflow to resume it.
        let policy = match self.key.stream {
            Stream::Named(_) => self.queue.options.spent_policy(),
            Stream::Single(_) => Spent::Skip,
        };
        if policy == Spent::Hold {
            message.status = Status::Failed { due: None };
            self.restate(step, sequence, Some(before), &message)?;
            self.hold(step, HoldCause::Spent(sequence), reason)?;
            return Ok(());
        }
        self.restate(step, sequence, Some(before), &message)?;
        self.dead_letter(step, sequence, MAX_DELIVERY_COUNT_EXCEEDED, reason)?;
        if policy == Spent::Quarantine {
            self.hold(step, HoldCause::Quarantine(sequence), reason)?;
        }
        Ok(())
    }

    /// Gives back a message that its holder has not started: its hand-out is not counted.
    pub(crate) fn give_back(&mut self, step: &mut Step<'_>, sequence: SequenceNumber) -> Read<()> {
        let before = step.message_listed(self.key.queue, sequence)?;
        let Status::Locked { fetched } = before.status else {
            unreachable!("only a handed-out message comes back")
        };
        let mut message = MessageRecord::clone(&before);
        message.delivery_count -= 1;
        if is_expired(&message, step.now) {
            self.restate(step, sequence, Some(&before), &message)?;
            return self.expire(step, sequence, &message);
        }
        message.status = match fetched {
            Some(Deferred { due, aside }) => Status::Asked { due, aside },
            None => Status::Ready,
        };
        self.restate(step, sequence, Some(&before), &message)
    }

    /// Sets a handed-out message aside; the workflow goes on without it, unless its queue says that it waits.
    pub(crate) fn set_aside(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        until: Option<Timestamp>,
    ) -> Read<()> {
        let before = step.message_listed(self.key.queue, sequence)?;
        let was_aside = self.is_aside(&before);
        if is_expired(&before, step.now) {
            return self.expire(step, sequence, &before);
        }
        let aside = was_aside || !self.queue.options.hold_on_defer;
        let mut message = MessageRecord::clone(&before);
        message.status = Status::Asked { due: until, aside };
        let moves = aside && !was_aside;
        if moves {
            self.leave(step, sequence, &before)?;
            let rank = message.rank.expect("a message that was handed out has a rank");
            self.join(step, sequence, LinePlace::Aside(rank))?;
        }
        self.restate(step, sequence, Some(&before), &message)?;
        if moves { self.pass(step, &message, Settled::Aside) } else { Ok(()) }
    }

    /// Moves a message aside for good; its place counts as settled.
    pub(crate) fn dead_letter(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        reason: &str,
        description: &str,
    ) -> Read<()> {
        self.dead_letter_quietly(step, sequence, reason, description)?;
        if self.is_chained() && self.queue.options.spent_policy() == Spent::Hold {
            self.hold(step, HoldCause::Predecessor(sequence), reason)?;
        }
        Ok(())
    }

    /// Moves a message aside for good, and lets even an after-ordered workflow go on.
    pub(crate) fn dead_letter_quietly(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        reason: &str,
        description: &str,
    ) -> Read<()> {
        let before = step.message_listed(self.key.queue, sequence)?;
        self.leave(step, sequence, &before)?;
        let mut message = MessageRecord::clone(&before);
        let letter =
            DeadLetter { reason: reason.to_owned(), description: description.to_owned(), at: step.now };
        message.status = Status::DeadLettered(Box::new(letter));
        self.restate(step, sequence, Some(&before), &message)?;
        self.list_dead_letter(step, sequence, &message, true)?;
        let how = if reason == TTL_EXPIRED { Settled::Expired } else { Settled::DeadLettered };
        self.pass(step, &message, how)
    }

    /// Enters a dead letter into the lists, or takes it out.
    pub(crate) fn list_dead_letter(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
        listed: bool,
    ) -> Read<()> {
        let Status::DeadLettered(letter) = &message.status else {
            unreachable!("only dead letters are listed")
        };
        let reason = letter.reason.clone();
        let key = DeadLetterKey {
            workflow: self.key.clone(),
            rank: message.rank.unwrap_or(0),
            sequence,
            reason: reason.clone(),
        };
        step.write(Change::DeadLetter(key, listed))?;
        if listed {
            self.tell(step, Some(sequence), EventKind::DeadLettered { reason })?;
        }
        Ok(())
    }

    /// Ends a message whose time to live is over, in the way its queue says.
    pub(crate) fn expire(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        self.lift_hold_of(step, sequence)?;
        match self.queue.options.expired {
            Expired::DeadLetter => self.dead_letter(step, sequence, TTL_EXPIRED, "its time to live is over"),
            Expired::Drop => {
                self.end(step, sequence, message, Settled::Expired)?;
                if self.is_chained() && self.queue.options.spent_policy() == Spent::Hold {
                    self.hold(step, HoldCause::Predecessor(sequence), TTL_EXPIRED)?;
                }
                Ok(())
            }
        }
    }
}

pub(crate) fn is_expired(message: &MessageRecord, now: Timestamp) -> bool {
    message.expires_at.is_some_and(|at| at <= now)
}

/// Keeps the last attempts with the message, so that "why is it stuck" has an answer.
fn note_attempt(message: &mut MessageRecord, now: Timestamp, reason: &str) {
    if message.attempts.len() == limits::ATTEMPTS_KEPT {
        message.attempts.remove(0);
    }
    message.attempts.push(Attempt {
        delivery_count: message.delivery_count,
        at: message.handed_out_at,
        lasted: now.since(message.handed_out_at),
        reason: reason.to_owned(),
    });
}
