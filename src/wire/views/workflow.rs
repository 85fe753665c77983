//! A workflow as JSON: what it does, or why it does nothing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::Gap;
use crate::engine::HoldCause;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::wire::time::WireTime;

/// A workflow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowEnvelope {
    /// Its ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// What it does, or why it does nothing.
    pub status: WorkflowWord,
    /// Until when, if that ends by itself: the lock, the wait for a retry, the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
    /// Blocked: the message at its head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Blocked or held: why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Held: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_cause: Option<HoldWord>,
    /// Held: since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<WireTime>,
    /// Held: the message it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for: Option<u64>,
    /// The next position to settle, in order by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_position: Option<u64>,
    /// Unsettled messages in its line, handed out ones included.
    pub messages: u64,
    /// Of these, those whose predecessor is missing.
    pub early: u64,
    /// Messages set aside by a consumer, or scheduled in order of arrival.
    pub set_aside: u64,
    /// Its dead letters.
    pub dead_letters: u64,
    /// Whether it keeps a state.
    pub has_state: bool,
    /// The gap later messages wait behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<GapView>,
}

/// What a workflow does, or why it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowWord {
    /// Its next message can be handed out.
    Ready,
    /// Somebody holds it.
    Locked,
    /// Its head waits, and with it everything behind.
    Blocked,
    /// Its head is scheduled.
    Scheduled,
    /// The next message has not come; later ones wait.
    WaitingForPredecessor,
    /// Somebody has to resume it.
    Held,
    /// It has nothing to hand out.
    Idle,
}

/// Why a workflow is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldWord {
    /// An operator asked for it.
    Operator,
    /// The message at its head is spent.
    Spent,
    /// A missing predecessor has not come in time.
    Gap,
    /// A predecessor ended without being completed.
    Predecessor,
    /// A message was spent, and everything behind it goes to the dead letters.
    Quarantine,
    /// Its dead letters are being put back in place; it resumes by itself.
    Redriving,
}

/// A gap that later messages wait behind.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GapView {
    /// The first missing position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_missing: Option<u64>,
    /// The lowest position that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_waiting: Option<u64>,
    /// Since when messages wait.
    pub since: WireTime,
    /// When the queue's gap policy acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<WireTime>,
}

impl GapView {
    fn show(gap: &Gap) -> GapView {
        GapView {
            first_missing: gap.first_missing,
            first_waiting: gap.first_waiting,
            since: WireTime(gap.since),
            due: gap.due.map(WireTime),
        }
    }
}

impl HoldWord {
    /// The word for a cause, and the message it names.
    pub(crate) fn show(cause: &HoldCause) -> (HoldWord, Option<u64>) {
        match cause {
            HoldCause::Operator => (HoldWord::Operator, None),
            HoldCause::Spent(number) => (HoldWord::Spent, Some(number.get())),
            HoldCause::Gap => (HoldWord::Gap, None),
            HoldCause::Predecessor(number) => (HoldWord::Predecessor, Some(number.get())),
            HoldCause::Quarantine(number) => (HoldWord::Quarantine, Some(number.get())),
            HoldCause::Redriving => (HoldWord::Redriving, None),
        }
    }
}

impl WorkflowEnvelope {
    /// Shows a workflow.
    pub fn show(view: &WorkflowView) -> WorkflowEnvelope {
        let shown = WorkflowEnvelope {
            workflow_id: view.workflow_id.as_ref().map(ToString::to_string),
            status: WorkflowWord::show(&view.status),
            until: None,
            sequence_number: None,
            reason: None,
            hold_cause: None,
            held_since: None,
            held_for: None,
            next_position: view.next_position,
            messages: view.messages,
            early: view.early,
            set_aside: view.set_aside,
            dead_letters: view.dead_letters,
            has_state: view.has_state,
            gap: view.gap.as_ref().map(GapView::show),
        };
        shown.with_status(&view.status)
    }

    fn with_status(mut self, status: &WorkflowStatus) -> WorkflowEnvelope {
        match status {
            WorkflowStatus::Locked { until } | WorkflowStatus::Scheduled { until } => {
                self.until = Some(WireTime(*until));
            }
            WorkflowStatus::Blocked { sequence_number, until, reason } => {
                self.sequence_number = Some(sequence_number.get());
                self.until = until.map(WireTime);
                self.reason = Some(reason.clone());
            }
            WorkflowStatus::Held(hold) => {
                let (word, number) = HoldWord::show(&hold.cause);
                self.hold_cause = Some(word);
                self.held_for = number;
                self.held_since = Some(WireTime(hold.since));
                self.reason = Some(hold.reason.clone());
            }
            WorkflowStatus::Ready | WorkflowStatus::WaitingForPredecessor | WorkflowStatus::Idle => {}
        }
        self
    }
}

impl WorkflowWord {
    pub(crate) fn show(status: &WorkflowStatus) -> WorkflowWord {
        match status {
            WorkflowStatus::Ready => WorkflowWord::Ready,
            WorkflowStatus::Locked { .. } => WorkflowWord::Locked,
            WorkflowStatus::Blocked { .. } => WorkflowWord::Blocked,
            WorkflowStatus::Scheduled { .. } => WorkflowWord::Scheduled,
            WorkflowStatus::WaitingForPredecessor => WorkflowWord::WaitingForPredecessor,
            WorkflowStatus::Held(_) => WorkflowWord::Held,
            WorkflowStatus::Idle => WorkflowWord::Idle,
        }
    }
}
