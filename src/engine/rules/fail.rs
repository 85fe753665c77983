//! What becomes of a message that failed, was set aside, expired, or is moved to the dead letters.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::rules::command::Retry;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::shown;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::line::LinePlace;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::output::Output;
use crate::engine::rules::record::Attempt;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::DeferralRecord;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Suspicion;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::HoldKind;

/// Reason of a dead letter whose delivery count reached the maximum.
pub(crate) const MAX_DELIVERY_COUNT_EXCEEDED: &str = "MaxDeliveryCountExceeded";
/// Reason of a dead letter whose time to live was over.
pub(crate) const TTL_EXPIRED: &str = "TTLExpiredException";

/// Why a message is exhausted that was set aside on the one delivery that it had beyond the maximum.
pub(crate) const DEFERRED_AGAIN: &str = "it was deferred again, beyond its last delivery";

/// Why an attempt has failed: in one line, and what its handler wrote.
#[derive(Clone, Copy)]
pub(crate) struct Why<'a> {
    pub(crate) reason: &'a str,
    pub(crate) output: &'a Output,
}

impl<'a> Why<'a> {
    /// A reason that no handler gave.
    pub(crate) fn of(reason: &'a str) -> Why<'a> {
        static NOTHING: Output = Output { text: String::new(), cut_bytes: 0 };
        Why { reason, output: &NOTHING }
    }
}

/// A message that was handed out and is back.
struct ReturnedMessage {
    sequence: SequenceNumber,
    before: Arc<MessageRecord>,
    /// What it becomes.
    message: MessageRecord,
    /// The deferral it had when it was fetched by its number.
    fetched: Option<DeferralRecord>,
}

impl OpenWorkflow {
    /// A handed-out message has failed: it is tried again, or it is exhausted.
    pub(crate) fn fail(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        retry: Retry,
        why: Why<'_>,
    ) -> Read<()> {
        self.fail_as(step, sequence, retry, why, false)
    }

    /// Consecutive messages were handled together, and nobody says which of them failed: all are suspects. One alone is
    /// none: it has failed.
    pub(crate) fn fail_together(
        &mut self,
        step: &mut Step<'_>,
        run: &[SequenceNumber],
        retry: Retry,
        why: Why<'_>,
    ) -> Read<()> {
        if let [sequence] = run {
            return self.fail(step, *sequence, retry, why);
        }
        let reason = format!("{}; it was one of {} messages handled together", why.reason, run.len());
        let why = Why { reason: &reason, ..why };
        for (index, sequence) in run.iter().enumerate() {
            // The others wait behind the first.
            let retry = if index == 0 { retry } else { Retry::Now };
            self.fail_shared(step, *sequence, retry, why)?;
        }
        Ok(())
    }

    /// A message has failed together with others: it is a suspect, and never exhausted by that. One that is a suspect already
    /// was handled alone, and has failed by itself.
    pub(crate) fn fail_shared(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        retry: Retry,
        why: Why<'_>,
    ) -> Read<()> {
        let message = step.message_listed(self.key.queue, sequence)?;
        let is_shared = !message.is_suspect() && !self.is_aside(&message);
        self.fail_as(step, sequence, retry, why, is_shared)
    }

    fn fail_as(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        retry: Retry,
        why: Why<'_>,
        is_shared: bool,
    ) -> Read<()> {
        let now = step.clocks();
        let returned = self.take_from_hands(step, sequence, |message| {
            note_attempt(message, message.delivery_count, now, why);
            if is_shared {
                message.rare.suspicion = Suspicion::Counted;
            }
        })?;
        let Some(returned) = returned else { return Ok(()) };
        let deliveries = returned.message.delivery_count;
        let due = self.due_of_retry(step, retry, deliveries);
        let is_exhausted = !is_shared && deliveries >= self.queue.options.delivery_count_max;
        let is_aside = self.is_aside(&returned.before);
        let by_another = [HoldKind::Exhausted, HoldKind::Quarantine, HoldKind::Predecessor];
        let held_by_another = by_another.into_iter().any(|kind| self.record.rare.holds.has(kind));
        match is_exhausted {
            // Beside the line it blocks nobody, so there is nothing to hold.
            true if is_aside && !step.has_all_dead_letters(&self.queue)? => {
                self.dead_letter_exhausted(step, &returned, why.reason)
            }
            true if !is_aside && !held_by_another => self.exhaust(step, returned, due, why.reason),
            _ => self.await_retry(step, returned, due, why.reason),
        }
    }

    /// A message was handled, and what it leads to has to wait for room: it is tried again, and that attempt is not counted.
    /// The delay grows as if it were, so that its handler does not run over and over while nothing changes.
    pub(crate) fn postpone(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        retry: Retry,
        reason: &str,
    ) -> Read<()> {
        let now = step.clocks();
        let returned = self.take_from_hands(step, sequence, |message| {
            note_attempt(message, message.delivery_count, now, Why::of(reason));
            message.delivery_count -= 1;
        })?;
        let Some(returned) = returned else { return Ok(()) };
        let before = &returned.before;
        let is_same = |attempt: &&Attempt| attempt.delivery_count == before.delivery_count;
        let times = before.rare.attempts.iter().rev().take_while(is_same).count();
        let growth = u32::try_from(times).unwrap_or(u32::MAX);
        let due = self.due_of_retry(step, retry, before.delivery_count.saturating_add(growth));
        self.await_retry(step, returned, due, reason)
    }

    /// Takes a message back from its holder, with what that changes of it; `None` when its time to live is over, which ends it.
    fn take_from_hands(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        change: impl FnOnce(&mut MessageRecord),
    ) -> Read<Option<ReturnedMessage>> {
        let before = step.message_listed(self.key.queue, sequence)?;
        let Status::Locked { fetched } = before.status else {
            unreachable!("only a handed-out message comes back")
        };
        let mut message = MessageRecord::clone(&before);
        change(&mut message);
        if is_expired(&message, step.clocks()) {
            self.restate(step, sequence, Some(&before), &message)?;
            self.expire(step, sequence, &message)?;
            return Ok(None);
        }
        Ok(Some(ReturnedMessage { sequence, before, message, fetched }))
    }

    /// Lets a message that comes back wait until its retry is due: in its place, or beside the line if it was fetched there.
    fn await_retry(
        &mut self,
        step: &mut Step<'_>,
        ReturnedMessage { sequence, before, mut message, fetched }: ReturnedMessage,
        due: Option<Due>,
        reason: &str,
    ) -> Read<()> {
        message.status = match (fetched, due) {
            (Some(DeferralRecord { due: back, aside: true }), due) => {
                Status::ByConsumer { due: due.or(back), aside: true }
            }
            (_, Some(due)) => Status::Failed { due: Some(due) },
            (_, None) => Status::Ready,
        };
        if let Status::Failed { due: Some(due) } = message.status {
            let until = due.shown(step.clocks());
            let blocked = EventKind::Blocked { until, reason: reason.to_owned() };
            self.emit(step, Some(sequence), blocked)?;
        }
        self.restate(step, sequence, Some(&before), &message)
    }

    fn due_of_retry(&self, step: &Step<'_>, retry: Retry, delivery_count: u32) -> Option<Due> {
        let due = match retry {
            Retry::Now => return None,
            Retry::After(delay) => Due::engine(step.now + delay.min(limits::DURATION_MAX)),
            Retry::At(at) => Due::wall(at),
            Retry::Backoff(entropy) => {
                Due::engine(step.now + self.queue.options.backoff.delay(delivery_count, entropy))
            }
        };
        (!due.is_past(step.clocks())).then_some(due)
    }

    /// A message has failed as often as it may: the queue's policy decides.
    fn exhaust(
        &mut self,
        step: &mut Step<'_>,
        mut returned: ReturnedMessage,
        due: Option<Due>,
        reason: &str,
    ) -> Read<()> {
        let sequence = returned.sequence;
        let is_alone = matches!(self.key.stream, WorkflowRef::Single(_));
        let is_full = step.has_all_dead_letters(&self.queue)?;
        match (self.queue.options.exhausted_policy(), is_alone, is_full) {
            // Nobody could name its workflow to resume it, so it comes back by itself.
            (_, true, true) => {
                let longest = Due::engine(step.now + self.queue.options.backoff.max);
                self.await_retry(step, returned, due.or(Some(longest)), reason)
            }
            // A message for itself has nothing behind it.
            (_, true, false) | (ExhaustedPolicy::Skip, false, false) => {
                self.dead_letter_exhausted(step, &returned, reason)
            }
            (ExhaustedPolicy::Quarantine, false, false) => {
                self.dead_letter_exhausted(step, &returned, reason)?;
                self.hold(step, HoldCause::Quarantine(sequence), reason)
            }
            (ExhaustedPolicy::Hold, false, _) | (_, false, true) => {
                returned.message.status = Status::Failed { due: None };
                self.restate(step, sequence, Some(&returned.before), &returned.message)?;
                self.hold(step, HoldCause::Exhausted(sequence), reason)
            }
        }
    }

    fn dead_letter_exhausted(
        &mut self,
        step: &mut Step<'_>,
        ReturnedMessage { sequence, before, message, .. }: &ReturnedMessage,
        reason: &str,
    ) -> Read<()> {
        self.restate(step, *sequence, Some(before), message)?;
        self.dead_letter_quietly(step, *sequence, MAX_DELIVERY_COUNT_EXCEEDED, reason)
    }

    /// Gives back a message that its holder has not started: its hand-out is not counted.
    pub(crate) fn give_back(&mut self, step: &mut Step<'_>, sequence: SequenceNumber) -> Read<()> {
        let returned = self.take_from_hands(step, sequence, |message| message.delivery_count -= 1)?;
        let Some(ReturnedMessage { before, mut message, fetched, .. }) = returned else { return Ok(()) };
        message.status = Status::of_unstarted(fetched);
        self.restate(step, sequence, Some(&before), &message)
    }

    /// Sets a handed-out message aside; the workflow goes on without it, unless its queue says that it waits.
    pub(crate) fn set_aside(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        until: DeferralEnd,
    ) -> Read<()> {
        let before = step.message_listed(self.key.queue, sequence)?;
        let was_aside = self.is_aside(&before);
        if is_expired(&before, step.clocks()) {
            return self.expire(step, sequence, &before);
        }
        let aside = was_aside || !self.queue.options.hold_on_defer;
        let mut message = MessageRecord::clone(&before);
        let due = match until {
            DeferralEnd::ByConsumer => None,
            DeferralEnd::After(delay) => Some(Due::engine(step.now + delay.min(limits::DURATION_MAX))),
            DeferralEnd::At(at) => Some(Due::wall(at)),
        };
        message.status = Status::ByConsumer { due, aside };
        message.rare.has_extra = message.delivery_count >= self.queue.options.delivery_count_max;
        if self.queue.options.keep_deferred {
            message.rare.expires_at = None;
        }
        let moves = aside && !was_aside;
        if moves {
            self.leave(step, sequence, &before)?;
            let rank = message.rank.expect("a message that was handed out has a rank");
            self.join(step, sequence, LinePlace::Aside(rank))?;
        }
        self.restate(step, sequence, Some(&before), &message)?;
        if moves { self.pass(step, &message, SettlementKind::Aside) } else { Ok(()) }
    }

    /// Whether a message that is handed out has no delivery left, not even the one that a deferral allows beyond the
    /// maximum.
    pub(crate) fn has_used_extra(&self, message: &MessageRecord) -> bool {
        message.rare.has_extra && message.delivery_count > self.queue.options.delivery_count_max
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
        self.hold_followers(step, sequence, reason)
    }

    /// In after-order, what follows a message that was not completed waits for an operator, unless exhausted messages are passed.
    fn hold_followers(&mut self, step: &mut Step<'_>, sequence: SequenceNumber, reason: &str) -> Read<()> {
        if self.is_chained() && self.queue.options.exhausted_policy() == ExhaustedPolicy::Hold {
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
        let dead_letter = DeadLetter::new(reason, description.to_owned(), step.wall);
        message.status = Status::DeadLettered(Box::new(dead_letter));
        message.rare.suspicion = Suspicion::None;
        self.restate(step, sequence, Some(&before), &message)?;
        self.list_dead_letter(step, sequence, &message, true)?;
        let how = if reason == TTL_EXPIRED { SettlementKind::Expired } else { SettlementKind::DeadLettered };
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
        let Status::DeadLettered(dead_letter) = &message.status else {
            unreachable!("only dead letters are listed")
        };
        let reason = dead_letter.reason.clone();
        let key = DeadLetterKey {
            workflow: self.key.clone(),
            rank: message.rank.unwrap_or(0),
            sequence,
            reason: reason.clone(),
        };
        step.write(Change::DeadLetter(Box::new(key), listed))?;
        let message_key = self.message_key(sequence);
        match listed {
            true => step.offer_dead_letter(message_key, reason.clone())?,
            false => step.end_lock_of_dead_letter(message_key),
        }
        if listed {
            self.emit(step, Some(sequence), EventKind::DeadLettered { reason })?;
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
            ExpiryPolicy::DeadLetter => {
                self.dead_letter(step, sequence, TTL_EXPIRED, "its time to live is over")
            }
            ExpiryPolicy::Drop => {
                self.end(step, sequence, message, SettlementKind::Expired)?;
                self.hold_followers(step, sequence, TTL_EXPIRED)
            }
        }
    }
}

pub(crate) fn is_expired(message: &MessageRecord, now: ClockInstants) -> bool {
    message.rare.expires_at.is_some_and(|expiry| expiry.is_past(now))
}

/// Keeps the last attempts with the message, so that "why is it stuck" has an answer.
pub(crate) fn note_attempt(
    message: &mut MessageRecord,
    delivery_count: u32,
    now: ClockInstants,
    why: Why<'_>,
) {
    if message.rare.attempts.len() == limits::ATTEMPTS_KEPT {
        message.rare.attempts.remove(0);
    }
    message.rare.attempts.push(Attempt {
        delivery_count,
        at: shown(message.handed_out_at, now),
        lasted: now.engine.since(message.handed_out_at),
        reason: why.reason.to_owned(),
        output: why.output.clone(),
    });
    let mut left = limits::OUTPUTS_KEPT_BYTES_MAX;
    for attempt in message.rare.attempts.iter_mut().rev() {
        match left.checked_sub(attempt.output.text.len()) {
            Some(less) => left = less,
            None => attempt.output.cut(),
        }
    }
}
