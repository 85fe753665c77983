//! A session that a link holds, and taking one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::AcceptedWorkflow;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
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
    /// Milliseconds; renewals move it.
    locked_until: AtomicU64,
}

impl HeldSession {
    pub(crate) fn locked_until(&self) -> Timestamp {
        Timestamp::from_millis(self.locked_until.load(Ordering::Relaxed))
    }

    pub(crate) fn note_renewal(&self, until: Timestamp) {
        self.locked_until.store(until.as_millis(), Ordering::Relaxed);
    }
}

/// Takes a session.
pub(crate) async fn accept(
    shared: &EndpointState,
    entity: &Entity,
    wanted: SessionChoice,
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
                next = entity.queue.accept_next_workflow(wait) => next?,
                () = shared.stopping.cancelled() => None,
            };
            next.ok_or_else(|| AmqpRefusal::new(condition::TIMEOUT, "no session has work"))?
        }
    };
    accepted.settle_apart().await?;
    let id = accepted.workflow_id().map(ToString::to_string).unwrap_or_default();
    let locked_until = AtomicU64::new(accepted.locked_until().as_millis());
    Ok(HeldSession { id, accepted, locked_until })
}
