//! What an operator asks for, on one workflow or on all that match, and what became of it.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::Problem;

/// What an operator says with a verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// Why, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says what would happen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// With resume: puts the workflow's dead letters back in their places.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redrive: bool,
    /// With void: the first position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// With void: the last position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// With the redrive of one dead letter: its new position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// What became of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationOutcome {
    /// How many messages or workflows it concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Whether nothing was changed because that was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// With redrive: whether the message returned to its own place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place: Option<bool>,
    /// With redrive as a new message: its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// What happens, or would happen, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// A verb for every workflow, or dead letter, that a filter matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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

/// Which workflows, or dead letters, are meant; what is not given does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationFilter {
    /// Those with one of these statuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// Those whose workflow ID begins so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Those held for this cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Those whose last error, or dead-letter reason, contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of a page of a bulk operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BulkOutcome {
    /// How many matched.
    pub matched: u64,
    /// How many were done.
    pub done: u64,
    /// Those that were refused.
    pub refused: Vec<RefusedOperation>,
    /// Where to go on; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One that was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefusedOperation {
    /// The workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Why.
    pub error: Problem,
}
