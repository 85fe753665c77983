//! A workflow as JSON: what it does, or why it does nothing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;
use crate::api::views::blocked::BlockedView;
use crate::api::views::history::HistoryView;
use crate::api::views::hold::GapView;
use crate::api::views::hold::HoldView;
use crate::api::views::hold::held_message;
use crate::engine::HistoryEntry;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::queue::HoldKind;

/// A workflow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Held: every cause, oldest first. It goes on when the last is lifted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldView>,
    /// Held: the oldest cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_cause: Option<HoldKind>,
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
    /// When its state was last set; absent without one, and for one that an older file has brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_set_at: Option<WireTime>,
    /// The gap later messages wait behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<GapView>,
    /// The first and the last position of each range beyond the next position that is settled already, or given up; the first 256 ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled_ahead: Vec<(u64, u64)>,
    /// Ready, but the rate of its queue is used up: when hand-out goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limited_until: Option<WireTime>,
    /// A blocked workflow that is requested alone: why, since when, and what happens next by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Box<BlockedView>>,
    /// Ended: what ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<HistoryView>,
}

/// What a workflow does, or why it does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    #[default]
    Idle,
    /// Nothing is stored of it any more, and its queue remembers how it ended.
    Ended,
}

impl WorkflowEnvelope {
    /// Shows a workflow.
    pub fn show(view: &WorkflowView) -> WorkflowEnvelope {
        let shown = WorkflowEnvelope {
            workflow_id: view.workflow_id.as_ref().map(ToString::to_string),
            status: WorkflowWord::show(&view.status),
            holds: view.holds.iter().map(HoldView::show).collect(),
            next_position: view.next_position,
            messages: view.messages,
            early: view.early,
            set_aside: view.set_aside,
            dead_letters: view.dead_letters,
            has_state: view.has_state,
            state_set_at: view.state_set_at.map(WireTime),
            gap: view.gap.as_ref().map(GapView::show),
            settled_ahead: view.settled_ahead.clone(),
            rate_limited_until: view.rate_limited_until.map(WireTime),
            ..WorkflowEnvelope::default()
        };
        shown.with_status(&view.status)
    }

    /// Shows a workflow of which nothing is stored any more; this ended last.
    pub fn show_ended(last: &HistoryEntry) -> WorkflowEnvelope {
        WorkflowEnvelope {
            workflow_id: last.workflow_id.as_ref().map(ToString::to_string),
            status: WorkflowWord::Ended,
            ended: Some(HistoryView::show(last)),
            ..WorkflowEnvelope::default()
        }
    }

    fn with_status(mut self, status: &WorkflowStatus) -> WorkflowEnvelope {
        match status {
            WorkflowStatus::Locked { until } | WorkflowStatus::Scheduled { until } => {
                self.until = Some(WireTime(*until));
            }
            WorkflowStatus::Blocked { sequence_number, until, why: _, reason } => {
                self.sequence_number = Some(sequence_number.get());
                self.until = until.map(WireTime);
                self.reason = Some(reason.clone());
            }
            WorkflowStatus::Held(hold) => {
                self.hold_cause = Some(hold.cause.kind());
                self.held_for = held_message(&hold.cause);
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
