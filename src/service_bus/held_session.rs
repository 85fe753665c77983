//! A session that a link holds, and taking one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::engine::AcceptedWorkflow;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
use crate::error::SettleError;
use crate::service_bus::elapsed::millis;
use crate::service_bus::entity::Entity;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// Which session a receiver wants.
pub(crate) enum SessionChoice {
    Named(String),
    /// The next that has work, waiting for one so long.
    Next(Duration),
}

/// A session that a link holds.
pub(crate) struct HeldSession {
    pub(crate) id: String,
    pub(crate) accepted: AcceptedWorkflow,
    /// Milliseconds of the clock's elapsed time; renewals move it.
    ends_at_ms: AtomicU64,
}

impl HeldSession {
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
        self.ends_at_ms.store(millis(ends_at), Ordering::Relaxed);
        Ok(until)
    }
}

/// Takes a session. Once it is not wanted any more, it waits for none.
pub(crate) async fn accept(
    shared: &EndpointState,
    entity: &Entity,
    wanted: SessionChoice,
    unwanted: &CancellationToken,
) -> Result<HeldSession, AmqpRefusal> {
    let accepted = match wanted {
        SessionChoice::Named(id) => match entity.queue.accept_workflow(&id).await {
            Ok(accepted) => accepted,
            Err(ReceiveError::Refused(ReceiveRefusal::WorkflowLocked)) => {
                let description = format!("session {id:?} is locked by another receiver");
                return Err(AmqpRefusal::new(condition::SESSION_CANNOT_BE_LOCKED, description));
            }
            Err(error) => return Err(error.into()),
        },
        SessionChoice::Next(wait) => {
            let next = tokio::select! {
                next = entity.queue.accept_next_workflow_until(wait, unwanted.cancelled()) => next?,
                () = shared.stopping.cancelled() => None,
            };
            next.ok_or_else(|| AmqpRefusal::new(condition::TIMEOUT, "no session has work"))?
        }
    };
    accepted.settle_apart().await?;
    let id = accepted.workflow_id().map(ToString::to_string).unwrap_or_default();
    let ends_at_ms = AtomicU64::new(millis(accepted.first_end()));
    Ok(HeldSession { id, accepted, ends_at_ms })
}
