//! Requests and answers about workflows: listing them, their messages and their history, and what does not go on.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::views::BlockedCause;
use crate::api::views::BlockedView;
use crate::api::views::HistoryView;
use crate::api::views::WorkflowEnvelope;

/// Which workflows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowsQuery {
    /// The ID after which the page begins.
    pub after: Option<String>,
    /// How many workflows at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
    /// Only those with one of these statuses, separated by commas.
    pub status: Option<String>,
    /// Only those whose ID begins so.
    pub prefix: Option<String>,
}

/// A page of workflows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowPage {
    /// The workflows, in order of ID.
    pub workflows: Vec<WorkflowEnvelope>,
    /// Where the next page begins after; absent on the last. A page may have fewer entries than the limit, even
    /// none, and still have one behind it: no request looks at more than 10,000 workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Names a workflow. IDs are data, so they stand in the query.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowQuery {
    /// The workflow's ID.
    pub id: String,
}

/// Which messages of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowMessagesQuery {
    /// The workflow's ID.
    pub id: String,
    /// The first position, or sequence number in order of arrival; from the start if it is not given.
    #[serde(default)]
    pub from: u64,
    /// How many messages at most: 100 if it is not given, 1,000 at most.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Which of what operators did to a workflow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowAuditQuery {
    /// The workflow's ID.
    pub id: String,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Which of the workflows that do not go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BlockedQuery {
    /// Only those of this queue.
    pub queue: Option<String>,
    /// Only those for this cause; without it, all but those that are locked.
    pub cause: Option<BlockedCause>,
    /// Only those whose last error or hold reason has this text in it.
    pub reason: Option<String>,
    /// Where the page before ended; as answered there.
    pub after: Option<String>,
    /// How many at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
}

/// A page of workflows that do not go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockedPage {
    /// The workflows, in order of queue and ID.
    pub blocked: Vec<BlockedView>,
    /// Where the next page begins after; absent on the last. A page may be empty and still have one behind it: no
    /// request looks at more than 10,000 workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Which part of a history.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryQuery {
    /// Only what ended in the workflow with this ID.
    pub workflow: Option<String>,
    /// The number of the entry before which the page begins, as the page before has answered; the newest if it is not given.
    pub before: Option<u64>,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
}

/// A page of what a queue remembers of messages that have ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPage {
    /// What has ended, newest first.
    pub history: Vec<HistoryView>,
    /// The number before which the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}
