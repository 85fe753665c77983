//! A session that a link holds.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::clock::whole_millis;
use crate::engine::AcceptedWorkflow;
use crate::error::SettleError;

/// A session that a link holds.
pub(crate) struct HeldSession {
    pub(crate) id: String,
    pub(crate) accepted: AcceptedWorkflow,
    /// Milliseconds of the clock's elapsed time; renewals move it.
    ends_at_ms: AtomicU64,
}

impl HeldSession {
    pub(crate) fn new(accepted: AcceptedWorkflow) -> HeldSession {
        let id = accepted.workflow_id().map(ToString::to_string).unwrap_or_default();
        let ends_at_ms = AtomicU64::new(whole_millis(accepted.first_end()));
        HeldSession { id, accepted, ends_at_ms }
    }

    /// When its lock ends, in the clock's elapsed time, as the engine counts it: whoever went by the wall clock would give
    /// the session back, uncounted, a moment before its lock is lost.
    pub(crate) fn ends_at(&self) -> Duration {
        Duration::from_millis(self.ends_at_ms.load(Ordering::Relaxed))
    }

    /// Prolongs its lock, and says until when.
    ///
    /// # Errors
    /// As [`Settler::renew`](crate::engine::Settler::renew).
    pub(crate) async fn renew(&self) -> Result<Timestamp, SettleError> {
        let (until, ends_at) = self.accepted.renewal().renew_until().await?;
        self.ends_at_ms.store(whole_millis(ends_at), Ordering::Relaxed);
        Ok(until)
    }
}
