//! Taking a session for a link.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// Which session a receiver wants.
pub(crate) enum SessionChoice {
    Named(String),
    /// The next that has work, waiting for one so long.
    Next(Duration),
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
    Ok(HeldSession::new(accepted))
}
