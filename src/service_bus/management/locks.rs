//! Messages that a client holds by token: renewed, settled, and fetched by number.

use std::sync::Arc;
use std::sync::Weak;

use bytes::Bytes;

use crate::amqp::Value;
use crate::clock::whole_millis;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::backlog::PackedMessage;
use crate::service_bus::client_settlement::ClientSettlement;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::holds::ClientSettlementKind;
use crate::service_bus::holds::LockUuid;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::outgoing::MessageStateWord;
use crate::service_bus::property::PropertyChanges;
use crate::service_bus::receive::Handing;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// Prolongs locks, all of them or those before the first that is lost.
pub(crate) async fn renew(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let mut expirations = Vec::new();
    for token in request.tokens()? {
        let hold = shared.holds.get(entity.name(), token).ok_or_else(AmqpRefusal::lock_lost)?;
        let requested_at_ms = whole_millis(shared.client.elapsed());
        let (until, ends_at) = match hold.session.as_ref().map(Weak::upgrade) {
            // The lock is that of the session, and its receiver has to know how long it lasts.
            Some(session) => {
                let session = session.ok_or_else(AmqpRefusal::session_lock_lost)?;
                (session.renew().await?, session.ends_at())
            }
            None => {
                let (until, lasts) = shared.settler(entity.name())?.renew_for(hold.id.lock_token()).await?;
                (until, shared.client.elapsed().saturating_add(lasts))
            }
        };
        if let Some(place) = &hold.in_window {
            place.note_renewed(requested_at_ms);
        }
        shared.holds.prolong(token, ends_at);
        expirations.push(Value::Timestamp(i64::try_from(until.as_millis()).unwrap_or(i64::MAX)));
    }
    Ok(ManagementAnswer::done(vec![(Value::string("expirations"), Value::Array(expirations))]))
}

/// Settles messages by token. A client that asks again, because it has not heard the answer, is answered as before.
pub(crate) async fn update_disposition(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let (settlement, kind) = settlement(request)?;
    for token in request.tokens()? {
        match shared.holds.get(entity.name(), token) {
            Some(hold) => {
                let answer = shared.settle(&hold, settlement.clone()).await;
                answer.map_err(|refusal| of_session(refusal, &hold))?;
                shared.meters.note_settled(1);
            }
            None if shared.holds.settled(token) == Some(kind) => {}
            None if request.session_id.is_some() => return Err(AmqpRefusal::session_lock_lost()),
            None => return Err(AmqpRefusal::lock_lost()),
        }
    }
    Ok(ManagementAnswer::done(Vec::new()))
}

/// What settles by token has no link that knows its session: a lock that was lost is the session's.
fn of_session(refusal: AmqpRefusal, hold: &ClientHold) -> AmqpRefusal {
    match refusal.condition == condition::LOCK_LOST && hold.is_of_session() {
        true => AmqpRefusal::session_lock_lost(),
        false => refusal,
    }
}

fn settlement(request: &ManagementRequest) -> Result<(ClientSettlement, ClientSettlementKind), AmqpRefusal> {
    let modified = request.map("properties-to-modify")?;
    let changes = modified.map(PropertyChanges::read).unwrap_or_default();
    let (reason, description) = (request.text("deadletter-reason")?, request.text("deadletter-description")?);
    Ok(match request.text("disposition-status")? {
        Some("completed") => (ClientSettlement::Complete, ClientSettlementKind::Completed),
        Some("abandoned") => (ClientSettlement::Abandon(changes), ClientSettlementKind::Abandoned),
        Some("defered" | "deferred") => (ClientSettlement::Defer(changes), ClientSettlementKind::Deferred),
        Some("suspended") => {
            let (reason, description) = (reason.unwrap_or_default(), description.unwrap_or_default());
            (ClientSettlement::with_reason(reason, description, changes), ClientSettlementKind::DeadLettered)
        }
        Some(other) => {
            return Err(AmqpRefusal::argument(format!("the disposition-status {other:?} is not known")));
        }
        None => return Err(AmqpRefusal::argument("disposition-status is missing")),
    })
}

/// Hands out messages that were set aside, all or none.
pub(crate) async fn receive_deferred(
    shared: &EndpointState,
    entity: &Entity,
    session: Option<&Arc<HeldSession>>,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let numbers = request.numbers()?;
    if numbers.len() > limits::RECEIVE_MAX {
        return Err(AmqpRefusal::argument(format!("more than {} numbers", limits::RECEIVE_MAX)));
    }
    let deletes = match request.number("receiver-settle-mode", 1)? {
        0 => true,
        1 => false,
        other => {
            return Err(AmqpRefusal::argument(format!("receiver-settle-mode is {other}, neither 0 nor 1")));
        }
    };
    if entity.is_transfer {
        return Err(AmqpRefusal::new(
            condition::MESSAGE_NOT_FOUND,
            "nothing that could not be passed on is deferred",
        ));
    }
    check_bytes(entity, &numbers).await?;
    let queue = &entity.queue;
    let deliveries = match session {
        _ if entity.is_dead_letters => queue.receive_deferred_dead_letters(&numbers).await?,
        Some(session) => session.accepted.receive_deferred(&numbers).await?,
        None => queue.receive_deferred(&numbers).await?,
    };
    let session = session.filter(|_| !entity.is_dead_letters).map(Arc::downgrade);
    let handing = Handing { session, deletes, state: MessageStateWord::Deferred, window: None };
    let packed = shared.pack(queue, deliveries, handing);
    let packed_messages = packed.packed_messages;
    let holds = packed_messages.iter().map(|packed_message| packed_message.hold.clone()).collect();
    let messages = packed_messages.into_iter().map(|packed_message| entry(packed_message, deletes)).collect();
    let answer = ManagementAnswer::done(vec![(Value::string("messages"), Value::List(messages))]);
    Ok(answer.handing_out(holds, deletes))
}

/// Refuses numbers of messages that are too large together for one answer; as many as always fit are not looked at.
async fn check_bytes(entity: &Entity, numbers: &[SequenceNumber]) -> Result<(), AmqpRefusal> {
    let largest = entity.options.body_bytes_max + limits::PROPERTIES_BYTES_MAX + limits::KEPT_BYTES_MAX;
    if largest.saturating_mul(numbers.len()) <= limits::RECEIVE_BYTES_MAX {
        return Ok(());
    }
    let mut bytes = 0;
    for number in numbers {
        let found = entity.queue.peek(*number, 1).await?.into_iter().next();
        bytes += found
            .filter(|found| found.sequence_number == *number)
            .map_or(0, |found| found.body.len() + found.headers.len());
        if bytes > limits::RECEIVE_BYTES_MAX && numbers.len() > 1 {
            let most = limits::RECEIVE_BYTES_MAX;
            let refusal =
                format!("the messages have more than {most} bytes together: ask for fewer at a time");
            return Err(AmqpRefusal::new(condition::SIZE_EXCEEDED, refusal));
        }
    }
    Ok(())
}

fn entry(packed_message: PackedMessage, deletes: bool) -> Value {
    let token = if deletes { LockUuid([0; 16]) } else { packed_message.hold.token };
    let message: Bytes = packed_message.payload;
    Value::Map(vec![
        (Value::string("lock-token"), Value::Uuid(token.0)),
        (Value::string("message"), Value::Binary(message)),
    ])
}
