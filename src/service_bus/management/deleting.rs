//! Messages that are deleted many at a time, without being looked at.

use std::time::Duration;

use crate::amqp::Value;
use crate::clock::Timestamp;
use crate::engine::Delivery;
use crate::engine::DeliveryId;
use crate::engine::Queue;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
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
    let mut passed = PassedMessages { queue, deliveries: Vec::new() };
    while deleted < max && passed.deliveries.len() < limits::SERVICE_BUS_DELETES_PASSED_MAX {
        let wanted = (max - deleted).min(limits::COMPLETE_ALL_MAX);
        let received = match session {
            _ if entity.is_dead_letters => queue.receive_dead_letters(wanted, Duration::ZERO).await,
            Some(session) => session.accepted.receive(wanted, Duration::ZERO).await,
            None => queue.receive_many(wanted, Duration::ZERO).await,
        };
        let received = match received {
            // The holder of a session has no more of it out.
            Err(ReceiveError::Refused(ReceiveRefusal::TooManyLocks(_))) if !passed.deliveries.is_empty() => {
                break;
            }
            received => received?,
        };
        if received.is_empty() {
            break;
        }
        // Old ones may come behind young ones: dead letters come by reason, and messages of workflows as these became ready.
        let (young, mut old): (Vec<Delivery>, Vec<Delivery>) =
            received.into_iter().partition(|delivery| delivery.message().accepted_at >= before);
        passed.deliveries.extend(young.into_iter().map(Delivery::keep));
        deleted += queue.complete_all(&mut old).await?.iter().filter(|answer| answer.is_ok()).count();
    }
    Ok(deleted)
}

/// Messages that are passed over; they go back when this goes.
struct PassedMessages<'a> {
    queue: &'a Queue,
    /// In the order in which they were handed out.
    deliveries: Vec<DeliveryId>,
}

impl Drop for PassedMessages<'_> {
    fn drop(&mut self) {
        give_back_deliveries(self.queue, self.deliveries.drain(..));
    }
}
