//! Requests and answers about queues.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::views::QueueEnvelope;

/// Which part of a listing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PageQuery {
    /// Where the page before ended; as answered there.
    pub after: Option<String>,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
}

/// A page of queues.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueuePage {
    /// The queues, in order of name.
    pub queues: Vec<QueueEnvelope>,
    /// Where the next page begins after; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Why something is removed for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PurgeRequest {
    /// Why, for the record; required unless it is a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says how many would be removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// How many messages were removed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurgeResponse {
    /// How many were removed, or would be.
    pub purged: u64,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
}
