//! Taking a session for a link.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::AcceptedWorkflow;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
use crate::limits;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// The reason of a dead letter that names no session where every message has to, as Service Bus says it.
const NO_SESSION: &str = "Session ID is null.";

const NO_SESSION_DESCRIPTION: &str = "the entity requires sessions, and the message names none";

/// Which session a receiver wants.
pub(crate) enum SessionChoice {
    Named(String),
    /// The next that has work, waiting for one so long.
    Next(Duration),
}

/// Takes a session. Once it is not wanted any more, it waits for none.
///
/// # Errors
/// As busy, which SDKs ask again by themselves, when its lock is lost while it is taken: its partition went to another node.
pub(crate) async fn accept(
    shared: &EndpointState,
    entity: &Entity,
    wanted: SessionChoice,
    unwanted: &CancellationToken,
) -> Result<HeldSession, AmqpRefusal> {
    take(shared, entity, wanted, unwanted).await.map_err(busy_if_lost)
}

/// Nobody has had the session whose lock was lost, so that nobody is told of a lock.
fn busy_if_lost(refusal: AmqpRefusal) -> AmqpRefusal {
    match refusal.condition {
        condition::LOCK_LOST | condition::SESSION_LOCK_LOST => AmqpRefusal::new(
            condition::SERVER_BUSY,
            "the lock on the session was lost while it was accepted; try again",
        ),
        _ => refusal,
    }
}

async fn take(
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
        SessionChoice::Next(wait) => next(shared, entity, wait, unwanted).await?,
    };
    accepted.settle_apart().await?;
    Ok(HeldSession::new(accepted))
}

/// Takes the next session that has work. A message that has come without one, by a topic or over HTTP, becomes a dead letter on
/// the way: there are clients that give a session without an ID back, and would be offered it for ever.
async fn next(
    shared: &EndpointState,
    entity: &Entity,
    wait: Duration,
    unwanted: &CancellationToken,
) -> Result<AcceptedWorkflow, AmqpRefusal> {
    let ends_at = shared.client.elapsed() + wait;
    for _ in 0..limits::SERVICE_BUS_SESSIONLESS_PASSED_MAX {
        let wait = ends_at.saturating_sub(shared.client.elapsed());
        let next = tokio::select! {
            next = entity.queue.accept_next_workflow_until(wait, unwanted.cancelled()) => next?,
            () = shared.stopping.cancelled() => None,
        };
        match next {
            Some(next) if next.workflow_id().is_none() && entity.requires_session() => {
                let wait = ends_at.saturating_sub(shared.client.elapsed());
                // A rate of the queue may make it wait.
                let received = tokio::select! {
                    received = next.receive_until(1, wait, unwanted.cancelled()) => received?,
                    () = shared.stopping.cancelled() => Vec::new(),
                };
                if received.is_empty() {
                    break;
                }
                for mut delivery in received {
                    delivery.dead_letter(NO_SESSION, NO_SESSION_DESCRIPTION).await?;
                }
            }
            Some(next) => return Ok(next),
            None => break,
        }
    }
    Err(AmqpRefusal::new(condition::TIMEOUT, "no session has work"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SettleRefusal;

    #[test]
    fn a_session_whose_lock_is_lost_while_it_is_accepted_is_asked_for_again() {
        for lost in [AmqpRefusal::from(ReceiveRefusal::LockLost), AmqpRefusal::from(SettleRefusal::LockLost)]
        {
            assert_eq!(busy_if_lost(lost).condition, condition::SERVER_BUSY);
        }
        let locked = AmqpRefusal::new(condition::SESSION_CANNOT_BE_LOCKED, "locked");
        assert_eq!(busy_if_lost(locked).condition, condition::SESSION_CANNOT_BE_LOCKED);
    }
}
