//! A workflow that does not get on, as JSON: why, since when, and what happens next by itself.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::Gap;
use crate::engine::Hold;
use crate::engine::HoldCause;
use crate::engine::MessageView;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::id::QueueName;
use crate::queue::GapThen;
use crate::queue::QueueOptions;
use crate::wire::time::WireTime;
use crate::wire::views::workflow::HoldWord;

/// A workflow that does not get on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockedView {
    /// Its queue.
    pub queue: String,
    /// Its ID.
    pub workflow_id: String,
    /// Why it does not get on.
    pub cause: BlockedCause,
    /// Since when; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<WireTime>,
    /// How many unsettled messages stand in its line.
    pub waiting: u64,
    /// The message at its head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// The position of that, in order by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// How often that was handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_count: Option<u32>,
    /// Why the last attempt at that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Held: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_cause: Option<HoldWord>,
    /// Held: what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_reason: Option<String>,
    /// The first missing position, if there is a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_missing: Option<u64>,
    /// The lowest position that waits behind the gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_waiting: Option<u64>,
    /// What happens next by itself, in a sentence.
    pub next: String,
    /// What happens next by itself, for programs.
    pub next_action: NextAction,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<WireTime>,
}

/// Why a workflow does not get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockedCause {
    /// The message at its head failed and waits for its retry.
    Retry,
    /// The message at its head was set aside by its consumer, and the queue waits for it.
    Deferred,
    /// A predecessor is missing.
    Gap,
    /// Somebody has to resume it.
    Held,
    /// Somebody holds it, and more messages wait behind.
    Locked,
}

/// What happens next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// Nothing: somebody has to act.
    Nothing,
    /// The message at the head is tried again.
    Retry,
    /// The workflow is held.
    Hold,
    /// The missing positions are given up.
    SkipGap,
    /// An event is raised, and the workflow keeps waiting.
    Alarm,
    /// The lock runs out, and the message is offered again.
    Unlock,
    /// The workflow resumes.
    Resume,
}

/// What happens next, and when.
struct Next(NextAction, Option<Timestamp>, String);

impl BlockedView {
    /// Shows a workflow that does not get on, given the message at its head; `None` when it does get on.
    pub fn show(
        queue: &QueueName,
        options: &QueueOptions,
        view: &WorkflowView,
        head: Option<&MessageView>,
    ) -> Option<BlockedView> {
        let workflow_id = view.workflow_id.as_ref()?.to_string();
        let cause = BlockedCause::of(view)?;
        let hold = match &view.status {
            WorkflowStatus::Held(hold) => Some(hold),
            _ => None,
        };
        let head = head.filter(|_| cause != BlockedCause::Gap);
        let attempts = head.map_or(&[][..], |head| &head.attempts);
        let Next(next_action, next_at, next) = next(options, view, cause);
        Some(BlockedView {
            queue: queue.to_string(),
            workflow_id,
            cause,
            since: match (cause, hold, &view.gap) {
                (BlockedCause::Held, Some(hold), _) => Some(WireTime(hold.since)),
                (BlockedCause::Gap, _, Some(gap)) => Some(WireTime(gap.since)),
                _ => attempts.first().map(|first| WireTime(first.at)),
            },
            waiting: view.messages,
            sequence_number: head.map(|head| head.sequence_number.get()),
            position: head.and_then(|head| head.position),
            delivery_count: head.map(|head| head.delivery_count),
            last_error: attempts.last().map(|last| last.reason.clone()),
            hold_cause: hold.map(|hold| HoldWord::show(&hold.cause).0),
            hold_reason: hold.map(|hold| hold.reason.clone()),
            first_missing: view.gap.and_then(|gap| gap.first_missing),
            first_waiting: view.gap.and_then(|gap| gap.first_waiting),
            next,
            next_action,
            next_at: next_at.map(WireTime),
        })
    }
}

impl BlockedCause {
    /// Why a workflow does not get on; `None` when it does. One that is locked counts when more waits behind.
    pub fn of(view: &WorkflowView) -> Option<BlockedCause> {
        match &view.status {
            WorkflowStatus::Held(_) => Some(BlockedCause::Held),
            WorkflowStatus::Blocked { reason, .. } if reason == "set aside" => Some(BlockedCause::Deferred),
            WorkflowStatus::Blocked { .. } => Some(BlockedCause::Retry),
            _ if view.gap.is_some() => Some(BlockedCause::Gap),
            WorkflowStatus::WaitingForPredecessor => Some(BlockedCause::Gap),
            WorkflowStatus::Locked { .. } if view.messages > 1 => Some(BlockedCause::Locked),
            WorkflowStatus::Locked { .. }
            | WorkflowStatus::Ready
            | WorkflowStatus::Scheduled { .. }
            | WorkflowStatus::Idle => None,
        }
    }
}

fn next(options: &QueueOptions, view: &WorkflowView, cause: BlockedCause) -> Next {
    match (&view.status, cause, view.gap) {
        (WorkflowStatus::Held(hold), ..) => after_hold(hold),
        (WorkflowStatus::Blocked { until: Some(until), sequence_number, .. }, ..) => {
            let sentence = format!("message {sequence_number} is tried again at {}", WireTime(*until));
            Next(NextAction::Retry, Some(*until), sentence)
        }
        (WorkflowStatus::Blocked { sequence_number, .. }, ..) => {
            let sentence = format!("nothing, until somebody asks for message {sequence_number}");
            Next(NextAction::Nothing, None, sentence)
        }
        (_, BlockedCause::Gap, Some(gap)) => after_gap(options, &gap),
        (WorkflowStatus::Locked { until }, ..) => {
            let sentence = format!(
                "the lock runs out at {}, unless its holder renews it or settles before",
                WireTime(*until)
            );
            Next(NextAction::Unlock, Some(*until), sentence)
        }
        _ => Next(NextAction::Nothing, None, "nothing, until the missing message comes".to_owned()),
    }
}

fn after_hold(hold: &Hold) -> Next {
    let sentence = match &hold.cause {
        HoldCause::Redriving => {
            let sentence = "it resumes once its dead letters are back in place".to_owned();
            return Next(NextAction::Resume, None, sentence);
        }
        HoldCause::Operator => "nothing, until somebody resumes it".to_owned(),
        HoldCause::Spent(number) => {
            format!("nothing, until somebody resumes it, which tries message {number} again, or skips that")
        }
        HoldCause::Gap => {
            "nothing, until somebody resumes it or declares the missing positions void".to_owned()
        }
        HoldCause::Predecessor(number) => {
            format!("nothing, until somebody resumes it although message {number} was not completed")
        }
        HoldCause::Quarantine(_) => {
            "what is sent to it is dead-lettered, until somebody resumes it".to_owned()
        }
    };
    Next(NextAction::Nothing, None, sentence)
}

fn after_gap(options: &QueueOptions, gap: &Gap) -> Next {
    let missing = match (gap.first_missing, gap.first_waiting) {
        (Some(missing), Some(waiting)) if waiting > missing + 1 => {
            format!("positions {missing} to {} are", waiting - 1)
        }
        (Some(missing), _) => format!("position {missing} is"),
        _ => "the missing predecessor is".to_owned(),
    };
    let (action, what) = match options.gap.then {
        GapThen::Hold => (NextAction::Hold, "the workflow is held"),
        GapThen::Skip => (NextAction::SkipGap, "what is missing is given up"),
        GapThen::Wait => (NextAction::Alarm, "an event is raised, and the wait goes on"),
    };
    let sentence = match gap.due {
        Some(due) => format!("if {missing} not there at {}, {what}", WireTime(due)),
        None => format!("if {missing} not there when the workflow comes to it, {what}"),
    };
    Next(action, gap.due, sentence)
}
