//! Messages that a client holds by token: renewed, settled, and fetched by number.

use bytes::Bytes;

use crate::amqp::Value;
use crate::limits;
use crate::service_bus::elapsed::millis;
use crate::service_bus::entity::Entity;
use crate::service_bus::holds::Hold;
use crate::service_bus::holds::Kind;
use crate::service_bus::holds::Token;
use crate::service_bus::links::PackedMessage;
use crate::service_bus::management::answer::Answer;
use crate::service_bus::management::request::Request;
use crate::service_bus::outgoing::State;
use crate::service_bus::property::Changes;
use crate::service_bus::receive::Handing;
use crate::service_bus::refusal::Refusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::session::Session;
use crate::service_bus::settle::Settlement;
use crate::service_bus::shared::Shared;

/// Prolongs locks, all of them or those before the first that is lost.
pub(crate) async fn renew(shared: &Shared, entity: &Entity, request: &Request) -> Result<Answer, Refusal> {
    let mut expirations = Vec::new();
    for token in request.tokens()? {
        let hold = shared.holds.get(entity.name(), token).ok_or_else(Refusal::lock_lost)?;
        let asked_at_ms = millis(shared.client.elapsed());
        let until = shared.settler(entity.name())?.renew(hold.id.lock_token()).await?;
        if let Some(place) = &hold.in_window {
            place.note_renewed(asked_at_ms);
        }
        shared.holds.prolong(token, until);
        expirations.push(Value::Timestamp(i64::try_from(until.as_millis()).unwrap_or(i64::MAX)));
    }
    Ok(Answer::done(vec![(Value::string("expirations"), Value::Array(expirations))]))
}

/// Settles messages by token. A client that asks again, because it has not heard the answer, is answered as before.
pub(crate) async fn update_disposition(
    shared: &Shared,
    entity: &Entity,
    request: &Request,
) -> Result<Answer, Refusal> {
    let (settlement, kind) = settlement(request)?;
    for token in request.tokens()? {
        match shared.holds.get(entity.name(), token) {
            Some(hold) => {
                let answer = shared.settle(&hold, settlement.clone()).await;
                answer.map_err(|refusal| of_session(refusal, &hold))?;
                shared.meters.note_settled(1);
            }
            None if shared.holds.settled(token) == Some(kind) => {}
            None if request.session_id.is_some() => return Err(Refusal::session_lock_lost()),
            None => return Err(Refusal::lock_lost()),
        }
    }
    Ok(Answer::done(Vec::new()))
}

/// What settles by token has no link that knows its session: a lock that was lost is the session's.
fn of_session(refusal: Refusal, hold: &Hold) -> Refusal {
    match refusal.condition == condition::LOCK_LOST && hold.is_of_session {
        true => Refusal::session_lock_lost(),
        false => refusal,
    }
}

fn settlement(request: &Request) -> Result<(Settlement, Kind), Refusal> {
    let modified = request.map("properties-to-modify")?;
    let changes = modified.map(Changes::read).unwrap_or_default();
    let (reason, description) = (request.text("deadletter-reason")?, request.text("deadletter-description")?);
    Ok(match request.text("disposition-status")? {
        Some("completed") => (Settlement::Complete, Kind::Completed),
        Some("abandoned") => (Settlement::Abandon(changes), Kind::Abandoned),
        Some("defered" | "deferred") => (Settlement::Defer(changes), Kind::Deferred),
        Some("suspended") => {
            let (reason, description) = (reason.unwrap_or_default(), description.unwrap_or_default());
            (Settlement::suspend(reason, description, changes), Kind::DeadLettered)
        }
        Some(other) => {
            return Err(Refusal::argument(format!("the disposition-status {other:?} is not known")));
        }
        None => return Err(Refusal::argument("disposition-status is missing")),
    })
}

/// Hands out messages that were set aside, all or none.
pub(crate) async fn receive_deferred(
    shared: &Shared,
    entity: &Entity,
    session: Option<&Session>,
    request: &Request,
) -> Result<Answer, Refusal> {
    let numbers = request.numbers()?;
    if numbers.len() > limits::RECEIVE_MAX {
        return Err(Refusal::argument(format!("more than {} numbers", limits::RECEIVE_MAX)));
    }
    let deletes = match request.number("receiver-settle-mode", 1)? {
        0 => true,
        1 => false,
        other => return Err(Refusal::argument(format!("receiver-settle-mode is {other}, neither 0 nor 1"))),
    };
    if entity.is_transfer {
        return Err(Refusal::new(
            condition::MESSAGE_NOT_FOUND,
            "nothing that could not be passed on is deferred",
        ));
    }
    let queue = &entity.queue;
    let deliveries = match session {
        _ if entity.is_dead_letters => queue.receive_deferred_dead_letters(&numbers).await?,
        Some(session) => session.taken.receive_deferred(&numbers).await?,
        None => queue.receive_deferred(&numbers).await?,
    };
    let is_of_session = session.is_some() && !entity.is_dead_letters;
    let handing = Handing { is_of_session, deletes, state: State::Deferred, window: None };
    let packed = shared.pack(queue, deliveries, handing);
    let packed_messages = packed.packed_messages;
    let holds = packed_messages
        .iter()
        .filter(|_| deletes)
        .map(|packed_message| packed_message.hold.clone())
        .collect();
    let messages = packed_messages.into_iter().map(|packed_message| entry(packed_message, deletes)).collect();
    let answer = Answer::done(vec![(Value::string("messages"), Value::List(messages))]);
    Ok(answer.deleting(holds))
}

fn entry(packed_message: PackedMessage, deletes: bool) -> Value {
    let token = if deletes { Token([0; 16]) } else { packed_message.hold.token };
    let message: Bytes = packed_message.payload;
    Value::Map(vec![
        (Value::string("lock-token"), Value::Uuid(token.0)),
        (Value::string("message"), Value::Binary(message)),
    ])
}
