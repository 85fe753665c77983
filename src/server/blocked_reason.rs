//! The texts that say why a workflow does not go on.

use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;

/// The reasons that were given for its holds, and why its head failed.
pub(crate) fn held_or_failed_because(view: &WorkflowView) -> impl Iterator<Item = &str> {
    let held = view.holds.iter().map(|hold| hold.reason.as_str());
    let failed = match &view.status {
        WorkflowStatus::Blocked { reason, .. } => Some(reason.as_str()),
        _ => None,
    };
    held.chain(failed)
}
