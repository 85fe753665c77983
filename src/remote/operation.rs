//! What an operator asks for, on one workflow or on all that match, and what became of it.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::Problem;
use crate::wire::views::BlockedCause;
use crate::wire::views::HoldWord;
use crate::wire::views::WorkflowEnvelope;
use crate::wire::views::WorkflowWord;

/// What an operator says with a verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// Why, for the record; required when messages or places are given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says what would happen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// With resume: puts the workflow's dead letters back in their places.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redrive: bool,
    /// With resume: lifts only this cause of the hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<HoldWord>,
    /// With void: the first position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// With void: the last position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

/// What became of an operation on one workflow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationOutcome {
    /// What was done, or would be, in a sentence.
    pub effect: String,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// With purge: how many messages were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged: Option<u64>,
    /// With redrive: how many dead letters are back in their places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_back: Option<u64>,
    /// With redrive: how many stayed dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stayed: Option<u64>,
    /// The workflow as it is now; absent when nothing is stored of it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowEnvelope>,
}

/// A verb for every workflow that a filter finds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BulkOperation {
    /// The verb.
    pub verb: String,
    /// Which are meant.
    pub filter: OperationFilter,
    /// What else is said.
    #[serde(flatten)]
    pub operation: Operation,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many are done at most before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Which workflows are meant; each field that is given narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OperationFilter {
    /// All of the queue; said when nothing narrows it.
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hold_cause: Vec<HoldWord>,
    /// Those whose last error or hold reason has this text in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl OperationFilter {
    /// The filter, with `all` said if nothing narrows it.
    #[must_use]
    pub fn or_all(mut self) -> OperationFilter {
        self.all = self == OperationFilter::default();
        self
    }
}

/// What became of a page of a bulk operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BulkOutcome {
    /// How many matched.
    pub matched: u64,
    /// To how many of them it was done, or would be.
    pub done: u64,
    /// Those that refused.
    pub refused: Vec<RefusedOperation>,
    /// With a dry run: those to which it would be done.
    pub workflow_ids: Vec<String>,
    /// With purge: how many messages were removed.
    pub purged: Option<u64>,
    /// With redrive: how many dead letters are back in their places.
    pub put_back: Option<u64>,
    /// With redrive: how many stayed dead letters.
    pub stayed: Option<u64>,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// Where to go on; none at the end.
    pub after: Option<String>,
}

/// A workflow that refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefusedOperation {
    /// Its ID.
    pub workflow_id: String,
    /// Why.
    pub error: Problem,
}

/// How a dead letter is put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Redrive {
    /// A new position, when its workflow has gone past its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Why, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says how it would come back, or why it would not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Another body, as UTF-8 text: the original stays a dead letter with the reason `edited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_text: Option<String>,
    /// Another body, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

/// How a dead letter came back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RedriveOutcome {
    /// Whether it returned to its own place, or was sent as a new message.
    pub redriven: RedrivenWord,
    /// Its number now; with a dry run and as a new message, the number that one would have now.
    pub sequence_number: u64,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
}

/// How a dead letter came back, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedrivenWord {
    /// To its own place, under its own number.
    InPlace,
    /// As a new message.
    AsNew,
}

/// Which dead letters are put back: all, those with a reason, or those of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RedriveMany {
    /// All of the queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Those that were moved aside for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub letter_reason: Option<String>,
    /// Those of this workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Why, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says what would become of them, each for itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Which dead letters came back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RedriveManyOutcome {
    /// How many were found.
    pub matched: u64,
    /// How many returned to their own places.
    pub in_place: u64,
    /// How many were sent as new messages.
    pub as_new: u64,
    /// Which stayed dead letters, and why.
    pub refused: Vec<RefusedLetter>,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// Where to go on; none at the end.
    pub after: Option<String>,
}

/// A dead letter that stayed one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefusedLetter {
    /// Its number.
    pub sequence_number: u64,
    /// Why.
    pub error: Problem,
}

/// Why messages are removed for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Purge {
    /// Why, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says how many would be removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// How many messages were removed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeOutcome {
    /// How many were removed, or would be.
    pub purged: u64,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
}
