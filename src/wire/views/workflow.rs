//! A workflow, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// A workflow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowView {
    /// Its ID; none for a message that is a workflow of its own.
    pub workflow_id: Option<String>,
    /// What it does, or why it does nothing: ready, locked, blocked, scheduled, waiting_for_predecessor, held, idle.
    pub status: String,
    /// Until when, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
    /// The message at its head, when that is what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Why its head waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hold, when it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldView>,
    /// The next position to settle, in order by position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_position: Option<u64>,
    /// Unsettled messages that stand in its line, handed out ones included.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<GapView>,
}

/// A hold: a workflow that offers nothing until someone resumes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldView {
    /// Why: operator, spent, gap, predecessor, quarantine or redriving.
    pub cause: String,
    /// The message it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Since when.
    pub since: WireTime,
    /// What was said when it was held.
    #[serde(default)]
    pub reason: String,
}

/// A gap that later messages wait behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GapView {
    /// The first missing position, in order by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_missing: Option<u64>,
    /// The lowest position that waits, in order by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_waiting: Option<u64>,
    /// Since when messages wait.
    pub since: WireTime,
    /// When the queue's gap policy acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<WireTime>,
}

/// A page of workflows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkflowPage {
    /// The workflows, in order of ID.
    pub workflows: Vec<WorkflowView>,
    /// Where the next page goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
