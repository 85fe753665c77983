//! Sessions: their lock, and their state.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_value;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::refusal::AmqpRefusal;

/// Prolongs the lock of a session.
pub(crate) async fn renew(session: Option<&HeldSession>) -> Result<ManagementAnswer, AmqpRefusal> {
    let session = session.ok_or_else(missing)?;
    let until = session.renew().await.map_err(lost)?;
    let expiration = Value::Timestamp(i64::try_from(until.as_millis()).unwrap_or(i64::MAX));
    Ok(ManagementAnswer::done(vec![(Value::string("expiration"), expiration)]))
}

/// Shows the state of a session.
pub(crate) async fn state(
    entity: &Entity,
    session: Option<&HeldSession>,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let session = session.ok_or_else(missing)?;
    let state = match session.id.is_empty() {
        true => None,
        false => entity.queue.workflow(&session.id)?.state().await?,
    };
    let state = state.map_or(Value::Null, |state| describe(&state));
    Ok(ManagementAnswer::done(vec![(Value::string("session-state"), state)]))
}

/// Sets the state of a session, or clears it.
pub(crate) async fn set_state(
    entity: &Entity,
    session: Option<&HeldSession>,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let session = session.ok_or_else(missing)?;
    let state = stored(lookup(&request.body, "session-state"))?;
    entity.queue.settler().set_state(session.accepted.lock_token(), state).await.map_err(lost)?;
    Ok(ManagementAnswer::done(Vec::new()))
}

/// A state as it is stored: bytes as they are, so that handlers read them. A text is a section of a message with one
/// value, which says its type; so are bytes that look like one.
fn stored(state: Option<&Value>) -> Result<Option<Bytes>, AmqpRefusal> {
    match state {
        Some(Value::Null) => Ok(None),
        Some(Value::Binary(bytes)) if typed(bytes).is_none() => Ok(Some(bytes.clone())),
        Some(value @ (Value::Binary(_) | Value::String(_))) => {
            let mut section = BytesMut::new();
            encode_value(&mut section, value);
            Ok(Some(section.freeze()))
        }
        Some(_) => Err(AmqpRefusal::argument("session-state is neither binary nor text")),
        None => Err(AmqpRefusal::argument("session-state is missing; null clears it")),
    }
}

/// A stored state as the client reads it.
fn describe(state: &Bytes) -> Value {
    typed(state).unwrap_or_else(|| Value::Binary(state.clone()))
}

/// The value of a state that says its type.
fn typed(state: &Bytes) -> Option<Value> {
    let sections = Sections::parse(state).ok().filter(|sections| sections.bare == *state)?;
    match sections.body().ok()? {
        MessageBody::Value(value @ (Value::String(_) | Value::Binary(_))) => Some(value),
        _ => None,
    }
}

fn missing() -> AmqpRefusal {
    AmqpRefusal::argument("session-id is missing")
}

fn lost(error: crate::error::SettleError) -> AmqpRefusal {
    match error.refusal() {
        Some(crate::error::SettleRefusal::LockLost) => AmqpRefusal::session_lock_lost(),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_keeps_its_type_and_bytes_are_stored_as_they_are() {
        let plain = Bytes::from_static(b"{\"step\": 3}");
        assert_eq!(stored(Some(&Value::Binary(plain.clone()))).unwrap(), Some(plain.clone()));
        assert_eq!(describe(&plain), Value::Binary(plain));
        let text = Value::from("step 3");
        let stored_bytes = stored(Some(&text)).unwrap().unwrap();
        assert_eq!(describe(&stored_bytes), text);
        let bytes_that_look_like_it = Value::Binary(stored_bytes);
        assert_eq!(
            describe(&stored(Some(&bytes_that_look_like_it)).unwrap().unwrap()),
            bytes_that_look_like_it
        );
        assert_eq!(stored(Some(&Value::Null)).unwrap(), None);
    }

    #[test]
    fn a_state_of_another_type_is_refused_by_name_and_erases_nothing() {
        for wrong in [Some(Value::Int(7)), Some(Value::Map(Vec::new())), None] {
            let refusal = stored(wrong.as_ref()).unwrap_err();
            assert!(refusal.description.contains("session-state"), "{refusal}");
            assert_eq!(refusal.status(), 400);
        }
    }
}
