//! Sessions: their lock, and their state.

use crate::amqp::Value;
use crate::service_bus::entity::Entity;
use crate::service_bus::management::answer::Answer;
use crate::service_bus::management::request::Request;
use crate::service_bus::refusal::Refusal;
use crate::service_bus::session::Session;

/// Prolongs the lock of a session.
pub(crate) async fn renew(entity: &Entity, session: Option<&Session>) -> Result<Answer, Refusal> {
    let session = session.ok_or_else(missing)?;
    let until = entity.queue.kept().renew(session.taken.lock_token()).await.map_err(lost)?;
    session.note_renewal(until);
    let expiration = Value::Timestamp(i64::try_from(until.as_millis()).unwrap_or(i64::MAX));
    Ok(Answer::done(vec![(Value::string("expiration"), expiration)]))
}

/// Shows the state of a session.
pub(crate) async fn state(entity: &Entity, session: Option<&Session>) -> Result<Answer, Refusal> {
    let session = session.ok_or_else(missing)?;
    let state = match session.id.is_empty() {
        true => None,
        false => entity.queue.workflow(&session.id)?.state().await?,
    };
    Ok(Answer::done(vec![(Value::string("session-state"), state.map_or(Value::Null, Value::Binary))]))
}

/// Sets the state of a session, or clears it.
pub(crate) async fn set_state(
    entity: &Entity,
    session: Option<&Session>,
    request: &Request,
) -> Result<Answer, Refusal> {
    let session = session.ok_or_else(missing)?;
    let state = request.get("session-state").and_then(Value::as_binary).cloned();
    entity.queue.kept().set_state(session.taken.lock_token(), state).await.map_err(lost)?;
    Ok(Answer::done(Vec::new()))
}

fn missing() -> Refusal {
    Refusal::argument("session-id is missing")
}

fn lost(error: crate::error::SettleError) -> Refusal {
    match error.refusal() {
        Some(crate::error::SettleRefusal::LockLost) => Refusal::session_lock_lost(),
        _ => error.into(),
    }
}
