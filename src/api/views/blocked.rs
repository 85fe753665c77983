//! A workflow that does not go on, as JSON: why, since when, and what happens next by itself.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::plural::spanned;
use crate::api::time::WireTime;
use crate::api::views::held_back::HeldBackCause;
use crate::api::views::held_back::HeldBackView;
use crate::api::views::hold::HoldView;
use crate::clock::Timestamp;
use crate::engine::Deferral;
use crate::engine::Gap;
use crate::engine::Hold;
use crate::engine::HoldCause;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::QueueView;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::id::QueueName;
use crate::queue::GapAction;
use crate::queue::HoldKind;
use crate::queue::QueueOptions;

/// A workflow that does not go on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockedView {
    /// Its queue.
    pub queue: String,
    /// Its ID; absent where a message without a workflow keeps those behind it waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Why it does not go on.
    pub cause: BlockedCause,
    /// Since when; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<WireTime>,
    /// How many unsettled messages stand in its line.
    pub waiting: u64,
    /// The message it is about: the one at its head; of a quarantined workflow, the one whose retries were exhausted.
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
    /// Held: every cause, oldest first. It goes on when the last is lifted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldView>,
    /// Held: the oldest cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_cause: Option<HoldKind>,
    /// Held: the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_reason: Option<String>,
    /// The first missing position, if there is a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_missing: Option<u64>,
    /// The lowest position that waits behind the gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_waiting: Option<u64>,
    /// The message ID that is waited for, in after-order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_predecessor: Option<String>,
    /// Too large: how many bytes the message has on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Too large: how many the last receiver takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_bytes_max: Option<u64>,
    /// What happens next by itself, in a sentence.
    pub next: String,
    /// What happens next by itself, for programs.
    pub next_action: NextAction,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<WireTime>,
}

/// Why a workflow does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
    /// The message at its head is larger than its receivers take.
    TooLarge,
    /// It is ready, but the rate of its queue or of a handler is used up.
    RateLimited,
    /// Its receivers let locks run out in their buffers, and are sent less ahead.
    PrefetchWindow,
    /// It is ready, but the daemon is too short of file handles, processes or memory to start its handler.
    CannotStart,
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
    /// Hand-out goes on.
    HandOut,
}

/// What happens next, and when.
struct NextStep(NextAction, Option<Timestamp>, String);

impl BlockedView {
    /// Shows a workflow that does not go on, given the message it is about; `None` when it does go on.
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
        let NextStep(next_action, next_at, next) = next(options, view, cause);
        Some(BlockedView {
            queue: queue.to_string(),
            workflow_id: Some(workflow_id),
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
            holds: view.holds.iter().map(HoldView::show).collect(),
            hold_cause: hold.map(|hold| hold.cause.kind()),
            hold_reason: hold.map(|hold| hold.reason.clone()),
            first_missing: view.gap.as_ref().and_then(|gap| gap.first_missing),
            first_waiting: view.gap.as_ref().and_then(|gap| gap.first_waiting),
            missing_predecessor: missing_predecessor(view),
            message_bytes: None,
            receiver_bytes_max: None,
            next,
            next_action,
            next_at: next_at.map(WireTime),
        })
    }

    /// Shows a message that keeps those behind it waiting because it has more bytes than its receivers take.
    pub fn show_too_large(
        queue: &QueueName,
        message: &MessageView,
        (bytes, bytes_max): (u64, u64),
        since: Timestamp,
        waiting: u64,
    ) -> BlockedView {
        let next = format!(
            "nothing, until somebody receives message {} with a limit of at least {bytes} bytes, or dead-letters it",
            message.sequence_number
        );
        BlockedView {
            workflow_id: message.workflow_id.as_ref().map(ToString::to_string),
            since: Some(WireTime(since)),
            sequence_number: Some(message.sequence_number.get()),
            position: message.position,
            delivery_count: Some(message.delivery_count),
            last_error: message.attempts.last().map(|last| last.reason.clone()),
            message_bytes: Some(bytes),
            receiver_bytes_max: Some(bytes_max),
            ..BlockedView::of_queue(queue, BlockedCause::TooLarge, (waiting, NextAction::Nothing), next)
        }
    }

    /// Shows messages without a workflow that wait for their retries, given the first of them.
    pub fn show_alone(queue: &QueueName, waiting: u64, first: Option<&MessageView>) -> BlockedView {
        let until = first.and_then(|first| match first.status {
            MessageStatus::Deferred { until, .. } => until,
            _ => None,
        });
        let next = match (first, until) {
            (Some(first), Some(until)) => {
                format!("message {} is tried again at {}", first.sequence_number, WireTime(until))
            }
            _ => "each is tried again when its retry is due".to_owned(),
        };
        BlockedView {
            since: first.and_then(|first| first.attempts.first()).map(|attempt| WireTime(attempt.at)),
            sequence_number: first.map(|first| first.sequence_number.get()),
            delivery_count: first.map(|first| first.delivery_count),
            last_error: first.and_then(|first| first.attempts.last()).map(|last| last.reason.clone()),
            next_at: until.map(WireTime),
            ..BlockedView::of_queue(queue, BlockedCause::Retry, (waiting, NextAction::Retry), next)
        }
    }

    /// Shows messages without a workflow that are ready and handed to nobody for a while; `None` when nothing keeps them.
    pub fn show_ready_alone(
        view: &QueueView,
        held_back: Option<&HeldBackView>,
        waiting: u64,
    ) -> Option<BlockedView> {
        let of_queue =
            |cause, next| BlockedView::of_queue(&view.name, cause, (waiting, NextAction::HandOut), next);
        if let Some(until) = view.rate_limited_until {
            let NextStep(_, _, next) = after_pause(&view.options, Some(until));
            let next_at = Some(WireTime(until));
            return Some(BlockedView { next_at, ..of_queue(BlockedCause::RateLimited, next) });
        }
        let held_back = held_back?;
        let (cause, next) = after_held_back(held_back);
        Some(BlockedView {
            last_error: held_back.reason.clone(),
            next_at: Some(held_back.until),
            ..of_queue(cause, next)
        })
    }

    /// A row of a queue that names no workflow and no message yet.
    fn of_queue(
        queue: &QueueName,
        cause: BlockedCause,
        (waiting, next_action): (u64, NextAction),
        next: String,
    ) -> BlockedView {
        BlockedView {
            queue: queue.to_string(),
            workflow_id: None,
            cause,
            since: None,
            waiting,
            sequence_number: None,
            position: None,
            delivery_count: None,
            last_error: None,
            holds: Vec::new(),
            hold_cause: None,
            hold_reason: None,
            first_missing: None,
            first_waiting: None,
            missing_predecessor: None,
            message_bytes: None,
            receiver_bytes_max: None,
            next,
            next_action,
            next_at: None,
        }
    }

    /// Shows a queue whose ready messages wait, because its receivers are sent at most so many ahead.
    pub fn show_full_window(
        queue: &QueueName,
        messages: usize,
        since: Timestamp,
        waiting: u64,
    ) -> BlockedView {
        let next = format!(
            "a receiver that lets locks run out is sent at most {messages} ahead, and more when it settles them; another \
             receiver is sent them at once"
        );
        BlockedView {
            since: Some(WireTime(since)),
            ..BlockedView::of_queue(queue, BlockedCause::PrefetchWindow, (waiting, NextAction::Resume), next)
        }
    }
}

impl BlockedView {
    /// Shows a workflow that is ready, but whose handlers are handed nothing for a while.
    pub fn show_held_back(
        queue: &QueueName,
        view: &WorkflowView,
        held_back: &HeldBackView,
        head: Option<&MessageView>,
    ) -> Option<BlockedView> {
        let cause = BlockedCause::held_back(view, held_back)?;
        let (_, next) = after_held_back(held_back);
        Some(BlockedView {
            workflow_id: Some(view.workflow_id.as_ref()?.to_string()),
            sequence_number: head.map(|head| head.sequence_number.get()),
            position: head.and_then(|head| head.position),
            delivery_count: head.map(|head| head.delivery_count),
            last_error: held_back.reason.clone(),
            next_at: Some(held_back.until),
            ..BlockedView::of_queue(queue, cause, (view.messages, NextAction::HandOut), next)
        })
    }
}

impl BlockedCause {
    /// Why a workflow that is ready waits for its handlers.
    pub fn held_back(view: &WorkflowView, held_back: &HeldBackView) -> Option<BlockedCause> {
        let is_ready = matches!(view.status, WorkflowStatus::Ready) && BlockedCause::of(view).is_none();
        is_ready.then(|| after_held_back(held_back).0)
    }

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            BlockedCause::Retry => "retry",
            BlockedCause::Deferred => "deferred",
            BlockedCause::Gap => "gap",
            BlockedCause::Held => "held",
            BlockedCause::Locked => "locked",
            BlockedCause::TooLarge => "too_large",
            BlockedCause::RateLimited => "rate_limited",
            BlockedCause::PrefetchWindow => "prefetch_window",
            BlockedCause::CannotStart => "cannot_start",
        }
    }

    /// Why a workflow does not go on; `None` when it does. One that is locked counts when more waits behind. What the
    /// engine does not know, that a message is too large for its receivers, is not shown here.
    pub fn of(view: &WorkflowView) -> Option<BlockedCause> {
        match &view.status {
            WorkflowStatus::Held(_) => Some(BlockedCause::Held),
            WorkflowStatus::Blocked { why: Deferral::ByConsumer, .. } => Some(BlockedCause::Deferred),
            WorkflowStatus::Blocked { .. } => Some(BlockedCause::Retry),
            _ if view.gap.is_some() => Some(BlockedCause::Gap),
            WorkflowStatus::WaitingForPredecessor => Some(BlockedCause::Gap),
            WorkflowStatus::Locked { .. } if view.messages > 1 => Some(BlockedCause::Locked),
            WorkflowStatus::Ready if view.rate_limited_until.is_some() => Some(BlockedCause::RateLimited),
            WorkflowStatus::Locked { .. }
            | WorkflowStatus::Ready
            | WorkflowStatus::Scheduled { .. }
            | WorkflowStatus::Idle => None,
        }
    }
}

fn next(options: &QueueOptions, view: &WorkflowView, cause: BlockedCause) -> NextStep {
    match (&view.status, cause, &view.gap) {
        (WorkflowStatus::Held(_), ..) if view.holds.len() > 1 => {
            let causes: Vec<&str> = view.holds.iter().map(|hold| hold.cause.kind().as_str()).collect();
            let sentence = format!("nothing, until every cause of the hold is lifted: {}", causes.join(", "));
            NextStep(NextAction::Nothing, None, sentence)
        }
        (WorkflowStatus::Held(hold), ..) => after_hold(hold, missing_predecessor(view)),
        (WorkflowStatus::Blocked { until: Some(until), sequence_number, .. }, ..) => {
            let sentence = format!("message {sequence_number} is tried again at {}", WireTime(*until));
            NextStep(NextAction::Retry, Some(*until), sentence)
        }
        (WorkflowStatus::Blocked { sequence_number, .. }, ..) => {
            let sentence = format!("nothing, until somebody asks for message {sequence_number}");
            NextStep(NextAction::Nothing, None, sentence)
        }
        (_, BlockedCause::Gap, Some(gap)) => after_gap(options, gap),
        (WorkflowStatus::Locked { until }, ..) => {
            let sentence = format!(
                "the lock runs out at {}, unless its holder renews it or settles before",
                WireTime(*until)
            );
            NextStep(NextAction::Unlock, Some(*until), sentence)
        }
        (_, BlockedCause::RateLimited, _) => after_pause(options, view.rate_limited_until),
        _ => NextStep(NextAction::Nothing, None, "nothing, until the missing message comes".to_owned()),
    }
}

/// Why handlers are handed nothing, and what happens then.
fn after_held_back(held_back: &HeldBackView) -> (BlockedCause, String) {
    match (held_back.cause, &held_back.reason) {
        (HeldBackCause::CannotStart, reason) => {
            let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            let next = format!("the daemon tries to start its handler again at {}{reason}", held_back.until);
            (BlockedCause::CannotStart, next)
        }
        (HeldBackCause::RateLimited, _) => {
            let next = format!("the rate of its handler allows the next hand-out at {}", held_back.until);
            (BlockedCause::RateLimited, next)
        }
    }
}

fn after_pause(options: &QueueOptions, until: Option<Timestamp>) -> NextStep {
    let rate = options.rate.map(|rate| format!("the rate of {rate}")).unwrap_or_default();
    let at = until.map(|until| format!(" at {}", WireTime(until))).unwrap_or_default();
    NextStep(NextAction::HandOut, until, format!("{rate} allows the next hand-out of the queue{at}"))
}

fn missing_predecessor(view: &WorkflowView) -> Option<String> {
    view.gap.as_ref()?.missing_predecessor.as_ref().map(ToString::to_string)
}

fn after_hold(hold: &Hold, missing_predecessor: Option<String>) -> NextStep {
    let sentence = match &hold.cause {
        HoldCause::Redriving => {
            let sentence = "it resumes once its dead letters are back in place".to_owned();
            return NextStep(NextAction::Resume, None, sentence);
        }
        HoldCause::Operator => "nothing, until somebody resumes it".to_owned(),
        HoldCause::Exhausted(number) => {
            format!("nothing, until somebody resumes it, which tries message {number} again, or skips that")
        }
        HoldCause::Gap => match missing_predecessor {
            Some(id) => format!(
                "nothing, until the predecessor {id:?} comes, or somebody skips the gap, which dead-letters what waits for it"
            ),
            None => {
                "nothing, until what is missing comes, or somebody declares it void or resumes the workflow"
                    .to_owned()
            }
        },
        HoldCause::Predecessor(number) => {
            format!("nothing, until somebody resumes it although message {number} was not completed")
        }
        HoldCause::Quarantine(_) => {
            "what is sent to it is dead-lettered, until somebody resumes it".to_owned()
        }
    };
    NextStep(NextAction::Nothing, None, sentence)
}

fn after_gap(options: &QueueOptions, gap: &Gap) -> NextStep {
    let missing = match (gap.first_missing, gap.first_waiting) {
        (Some(missing), Some(waiting)) if waiting > missing + 1 => {
            format!("{} are", spanned("position", missing, waiting - 1))
        }
        (Some(missing), _) => format!("position {missing} is"),
        _ => match &gap.missing_predecessor {
            Some(id) => format!("the predecessor {:?} is", id.as_str()),
            None => "the missing predecessor is".to_owned(),
        },
    };
    let (action, what) = match options.gap.then {
        GapAction::Hold => (NextAction::Hold, "the workflow is held"),
        GapAction::Skip => (NextAction::SkipGap, "what is missing is given up"),
        GapAction::Wait => (NextAction::Alarm, "an event is raised, and the wait goes on"),
    };
    let sentence = match gap.due {
        Some(due) => format!("if {missing} not there at {}, {what}", WireTime(due)),
        None => format!("if {missing} not there when the workflow comes to it, {what}"),
    };
    NextStep(action, gap.due, sentence)
}
