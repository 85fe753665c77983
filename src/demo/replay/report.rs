//! What a replay found.

use std::time::Duration;

use serde::Serialize;

use crate::demo::replay::progress::ReplayOutcome;

/// What a replay found; its JSON form is the last line of `demo git --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) changes: u64,
    pub(crate) workflows: u64,
    /// Messages that arrived before an earlier one of their workflow.
    pub(crate) arrived_early: u64,
    /// Most messages seen deferred at once, early or waiting for a retry; it is sampled.
    pub(crate) deferred_max: u64,
    pub(crate) failures_injected: u64,
    pub(crate) crashes: u32,
    pub(crate) wrong_predecessors: u64,
    pub(crate) tree_equal: bool,
    pub(crate) seconds: f64,
    pub(crate) changes_per_second: f64,
    /// Whether every change was applied exactly once.
    #[serde(skip)]
    pub(crate) complete: bool,
}

impl Report {
    pub(crate) fn new(
        outcome: &ReplayOutcome,
        changes: u64,
        arrived_early: u64,
        deferred_max: u64,
        crashes: u32,
        took: Duration,
    ) -> Report {
        let seconds = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
        let rate = if seconds > 0.0 { changes as f64 / seconds } else { 0.0 };
        Report {
            changes,
            workflows: outcome.workflows,
            arrived_early,
            deferred_max,
            failures_injected: outcome.failures_injected,
            crashes,
            wrong_predecessors: outcome.wrong_predecessors,
            tree_equal: outcome.tree_equal,
            seconds,
            changes_per_second: rate.round(),
            complete: outcome.applied == changes,
        }
    }

    /// Whether nothing was wrong.
    pub(crate) fn is_right(&self) -> bool {
        self.wrong_predecessors == 0 && self.tree_equal && self.complete
    }
}
