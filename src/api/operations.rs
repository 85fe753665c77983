//! What an operator asks for, on one workflow or on all that match, and what became of it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::Problem;
use crate::api::hold_kinds;
use crate::api::views::BlockedCause;
use crate::api::views::WorkflowEnvelope;
use crate::api::views::WorkflowWord;
use crate::queue::HoldKind;

/// What an operator can do to a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Holds it: nothing of it is offered until it is resumed.
    Hold,
    /// Resumes it; an exhausted message at its head is tried again.
    Resume,
    /// Tries the failed message at its head again now.
    Retry,
    /// Dead-letters the message at its head and goes on with the next.
    Skip,
    /// Takes it from its holder; what that has out counts as failed.
    ReleaseLock,
    /// Declares that missing positions will never come.
    Void,
    /// Gives up everything that is missing before the lowest waiting message.
    SkipGap,
    /// Removes its messages for good, dead letters included.
    Purge,
}

impl Verb {
    /// The verb as it stands in paths and bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Hold => "hold",
            Verb::Resume => "resume",
            Verb::Retry => "retry",
            Verb::Skip => "skip",
            Verb::ReleaseLock => "release_lock",
            Verb::Void => "void",
            Verb::SkipGap => "skip_gap",
            Verb::Purge => "purge",
        }
    }

    /// Whether messages or places are given up: then somebody has to say why.
    pub(crate) fn needs_reason(self) -> bool {
        matches!(self, Verb::Skip | Verb::Void | Verb::SkipGap | Verb::Purge)
    }
}

/// How an operator wants it done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OperateRequest {
    /// Why, for the record; required for `skip`, `void`, `skip_gap` and `purge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says whether it would be done, and what it would lead to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// With `resume`: puts its dead letters whose places are ahead back in place before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redrive: bool,
    /// With `resume`: lifts only this cause of the hold; without it, all.
    #[serde(deserialize_with = "hold_kinds::one", skip_serializing_if = "Option::is_none")]
    pub cause: Option<HoldKind>,
    /// With `void`: the first missing position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// With `void`: the last missing position; the first if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// With `skip`: only if this message is at the head; without it, the one that is seen there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
}

/// What was done, and what the workflow does now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OperateResponse {
    /// What was done, or would be, in a sentence.
    pub effect: String,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
    /// With `skip`: the message that is dead-lettered, where it was known before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// With `purge`: how many messages were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged: Option<u64>,
    /// With `redrive`: how many dead letters are back in their places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_back: Option<u64>,
    /// With `redrive`: how many stayed dead letters, because their places are passed or there is no room for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stayed: Option<u64>,
    /// The workflow as it is now; absent when nothing is stored of it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowEnvelope>,
}

/// What is done, and to which workflows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// What is done; anything but `void`.
    pub verb: Verb,
    /// To which workflows.
    pub filter: WorkflowFilter,
    /// Why, for the record; required for `skip`, `skip_gap` and `purge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `resume`: puts dead letters back in place before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redrive: bool,
    /// With `resume`: lifts only this cause of a hold.
    #[serde(default, deserialize_with = "hold_kinds::one", skip_serializing_if = "Option::is_none")]
    pub cause: Option<HoldKind>,
    /// Only says what would be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Where the request before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many workflows at most: 100 if it is not given, 1,000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Which workflows; each field that is given narrows it. One has to be given: `all` if all are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowFilter {
    /// Every workflow of the queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Those with one of these statuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<WorkflowWord>,
    /// Those whose ID begins so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Those that do not get on for one of these causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cause: Vec<BlockedCause>,
    /// Those that are held for one of these causes.
    #[serde(deserialize_with = "hold_kinds::many", skip_serializing_if = "Vec::is_empty")]
    pub hold_cause: Vec<HoldKind>,
    /// Those whose last error or hold reason has this text in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl WorkflowFilter {
    /// The filter, with `all` set if nothing narrows it.
    #[must_use]
    pub fn or_all(mut self) -> WorkflowFilter {
        self.all = self == WorkflowFilter::default();
        self
    }
}

/// What was done, and where to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BulkResponse {
    /// How many workflows the filter found.
    pub matched: u64,
    /// To how many of them it was done, or would be.
    pub done: u64,
    /// Which refused it, and why.
    pub refused: Vec<RefusedWorkflow>,
    /// With a dry run: the workflows to which it would be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflow_ids: Vec<String>,
    /// With `purge`: how many messages were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged: Option<u64>,
    /// With `redrive`: how many dead letters are back in their places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_back: Option<u64>,
    /// With `redrive`: how many stayed dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stayed: Option<u64>,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
    /// Where to go on: there may be more. Absent when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A workflow that refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RefusedWorkflow {
    /// Its ID.
    pub workflow_id: String,
    /// Why.
    pub error: Problem,
}
