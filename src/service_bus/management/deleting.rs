//! Messages that are deleted many at a time, without being looked at.

use std::time::Duration;

use crate::amqp::Value;
use crate::clock::Timestamp;
use crate::engine::Delivery;
use crate::limits;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::receive::give_back_deliveries;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::shared::EndpointState;

/// Deletes the first messages that were accepted before an instant, as many as asked for: what somebody holds, what was set
/// aside and what is for later stays.
pub(crate) async fn delete(
    shared: &EndpointState,
    entity: &Entity,
    session: Option<&HeldSession>,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let before = request.timestamp("enqueued-time-utc")?.map(|ms| u64::try_from(ms).unwrap_or_default());
    let before = before.map_or(Timestamp::MAX, Timestamp::from_millis);
    let most = limits::SERVICE_BUS_DELETES_MAX;
    let max = match usize::try_from(request.number("message-count", 0)?) {
        Ok(max) if (1..=most).contains(&max) => max,
        _ => return Err(AmqpRefusal::argument(format!("message-count is not from 1 to {most}"))),
    };
    let deleted = match entity.is_transfer {
        true => 0,
        false => delete_messages(entity, session, before, max).await?,
    };
    if deleted == 0 {
        return Ok(ManagementAnswer::nothing());
    }
    shared.meters.note_settled(deleted);
    let deleted = Value::Int(i32::try_from(deleted).unwrap_or(i32::MAX));
    Ok(ManagementAnswer::done(vec![(Value::string("message-count"), deleted)]))
}

async fn delete_messages(
    entity: &Entity,
    session: Option<&HeldSession>,
    before: Timestamp,
    max: usize,
) -> Result<usize, AmqpRefusal> {
    let (queue, mut deleted) = (&entity.queue, 0);
    while deleted < max {
        let wanted = (max - deleted).min(limits::COMPLETE_ALL_MAX);
        let mut old = match session {
            _ if entity.is_dead_letters => queue.receive_dead_letters(wanted, Duration::ZERO).await?,
            Some(session) => session.accepted.receive(wanted, Duration::ZERO).await?,
            None => queue.receive_many(wanted, Duration::ZERO).await?,
        };
        let at = old.iter().position(|delivery| delivery.message().accepted_at >= before);
        let young: Vec<Delivery> = at.map_or_else(Vec::new, |at| old.split_off(at));
        let completed = queue.complete_all(&mut old).await;
        let is_last = old.is_empty() || !young.is_empty();
        give_back_deliveries(queue, young);
        deleted += completed?.iter().filter(|answer| answer.is_ok()).count();
        if is_last {
            break;
        }
    }
    Ok(deleted)
}
