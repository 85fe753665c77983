//! Messages for later.

use bytes::Bytes;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::entity::Entity;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::cancelling::cancel_all;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::management::topic_scheduling;
use crate::service_bus::property;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// Schedules messages, all or none.
pub(crate) async fn schedule(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    if entity.is_dead_letters {
        return Err(AmqpRefusal::new(condition::NOT_ALLOWED, "nobody sends to dead letters"));
    }
    entity.check_takes_messages()?;
    let mut messages = Vec::new();
    for entry in request.maps("messages")? {
        messages.push(shared.read(entity, payload(entry)?)?);
    }
    let numbers = match &entity.topic {
        Some(topic) => topic_scheduling::schedule(shared, topic, messages).await?,
        None => {
            let receipts = entity.queue.send_whole(messages, limits::SERVICE_BUS_BATCH_MAX).await?;
            shared.meters.note_received(receipts.len(), 0);
            let number =
                |receipt: crate::engine::Receipt| receipt.sequence_number().unwrap_or(topic_scheduling::NONE);
            receipts.into_iter().map(number).collect()
        }
    };
    let number = |number: SequenceNumber| Value::Long(i64::try_from(number.get()).unwrap_or(0));
    let numbers = numbers.into_iter().map(number).collect();
    Ok(ManagementAnswer::done(vec![(Value::string("sequence-numbers"), Value::Array(numbers))]))
}

/// The message of an entry. What the entry says beside it, the message says too, but it is not passed over unread.
fn payload(entry: &[(Value, Value)]) -> Result<&Bytes, AmqpRefusal> {
    for name in ["message-id", "session-id", "partition-key"] {
        if lookup(entry, name).is_some_and(|value| !value.is_null() && property::id_text(value).is_none()) {
            return Err(AmqpRefusal::argument(format!("{name} of an entry of messages is no text")));
        }
    }
    let payload = lookup(entry, "message").and_then(Value::as_binary);
    payload.ok_or_else(|| AmqpRefusal::argument("message of an entry of messages is missing, or no binary"))
}

/// Cancels scheduled messages, many in one commit. Is one of them not scheduled any more, the others are cancelled all the
/// same, and the answer says that.
pub(crate) async fn cancel(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let numbers = request.numbers()?;
    match &entity.topic {
        Some(topic) => topic_scheduling::cancel(shared, topic, &numbers).await?,
        None => {
            let numbers: Vec<_> = numbers.into_iter().map(|number| (&entity.queue, number)).collect();
            cancel_all(&numbers).await?;
        }
    }
    Ok(ManagementAnswer::done(Vec::new()))
}
