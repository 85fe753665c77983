//! Holds: a workflow offers nothing as long as it has one, and goes on when the last is lifted.

use crate::engine::rules::effect::EventKind;
use crate::engine::rules::holds::Hold;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow::RankedMessage;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;

impl OpenWorkflow {
    /// Whether it offers nothing until a cause is gone or someone resumes it.
    pub(crate) fn is_held(&self) -> bool {
        !self.record.rare.holds.is_empty()
    }

    /// Holds the workflow for one cause more, unless one of that kind is there.
    pub(crate) fn hold(&mut self, step: &mut Step<'_>, cause: HoldCause, reason: &str) -> Read<()> {
        if self.record.rare.holds.has(cause.kind()) {
            return Ok(());
        }
        if cause.kind() == HoldKind::Quarantine {
            // What was put back would be dead-lettered again.
            self.record.rare.holds.remove(HoldKind::Redriving);
        }
        self.record.rare.holds.add(Hold {
            cause: cause.clone(),
            since: step.wall,
            reason: reason.to_owned(),
        });
        self.emit(step, None, EventKind::Held { cause, reason: reason.to_owned() })
    }

    /// Holds the workflow for an exhausted message that has come to the head, however it got there. A quarantine
    /// dead-letters it, and when dead letters are back in place it is tried again.
    pub(crate) fn hold_at_exhausted_head(
        &mut self,
        step: &mut Step<'_>,
        head: Option<&RankedMessage>,
    ) -> Read<()> {
        let holds = &self.record.rare.holds;
        let is_handled = holds.has(HoldKind::Quarantine) || holds.has(HoldKind::Redriving);
        match head {
            Some((_, sequence, head)) if !is_handled && head.status == (Status::Failed { due: None }) => {
                self.hold(step, HoldCause::Exhausted(*sequence), "it failed as often as it may")
            }
            _ => Ok(()),
        }
    }

    /// Lifts the hold of a kind whose cause is gone, if there is one.
    pub(crate) fn lift_hold(&mut self, step: &mut Step<'_>, kind: HoldKind) -> Read<()> {
        // Looked at first: writing to a rare field makes room for all of them.
        if self.record.rare.holds.has(kind) && self.record.rare.holds.remove(kind) && !self.is_held() {
            self.emit(step, None, EventKind::Resumed)?;
        }
        Ok(())
    }

    /// Lifts the hold that this message caused by being exhausted.
    pub(crate) fn lift_hold_of(&mut self, step: &mut Step<'_>, sequence: SequenceNumber) -> Read<()> {
        match self.record.rare.holds.exhausted() {
            Some(exhausted) if exhausted == sequence => self.lift_hold(step, HoldKind::Exhausted),
            _ => Ok(()),
        }
    }

    /// Lifts the hold of a kind although its cause is there: a gap is timed anew, and what is exhausted is tried again.
    pub(crate) fn resume_for(&mut self, step: &mut Step<'_>, kind: HoldKind) -> Read<()> {
        let exhausted = self.record.rare.holds.exhausted().filter(|_| kind == HoldKind::Exhausted);
        self.lift_hold(step, kind)?;
        self.try_again(step, exhausted)?;
        if kind == HoldKind::Gap || !self.is_held() {
            self.drop_gap(step)?;
        }
        if self.is_held() { Ok(()) } else { self.try_head_again(step) }
    }

    /// Lifts every hold.
    pub(crate) fn resume_for_all(&mut self, step: &mut Step<'_>) -> Read<()> {
        let kinds: Vec<HoldKind> = self.record.rare.holds.iter().map(|hold| hold.cause.kind()).collect();
        kinds.into_iter().try_for_each(|kind| self.resume_for(step, kind))
    }

    /// Holds it for nothing but the redrive that is to come: what held it is lifted.
    pub(crate) fn hold_for_redrive(&mut self, step: &mut Step<'_>) -> Read<()> {
        // One that was broken off may have come further than this one begins.
        step.locks.take_redrive_from(&self.key);
        let exhausted = self.record.rare.holds.exhausted();
        self.record.rare.holds.clear();
        let reason = "its dead letters are put back in place".to_owned();
        self.record.rare.holds.add(Hold { cause: HoldCause::Redriving, since: step.wall, reason });
        self.drop_gap(step)?;
        self.try_again(step, exhausted)?;
        self.try_head_again(step)
    }

    fn try_head_again(&mut self, step: &mut Step<'_>) -> Read<()> {
        let head = self.head(step)?.map(|(_, sequence, _)| sequence);
        self.try_again(step, head)
    }

    /// Makes an exhausted message ready.
    fn try_again(&mut self, step: &mut Step<'_>, sequence: Option<SequenceNumber>) -> Read<()> {
        let Some(sequence) = sequence else { return Ok(()) };
        let Some(before) = step.message(self.key.queue, sequence)? else { return Ok(()) };
        match before.status {
            Status::Failed { due: None } => self.make_ready(step, sequence, &before),
            _ => Ok(()),
        }
    }

    /// Makes a message ready that has failed.
    pub(crate) fn make_ready(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        before: &MessageRecord,
    ) -> Read<()> {
        let mut message = MessageRecord { status: Status::Ready, ..before.clone() };
        message.rare.has_extra = false;
        self.restate(step, sequence, Some(before), &message)
    }
}
