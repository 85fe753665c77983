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
    let scheduled = schedule_for(shared, entity, request).await;
    let numbers = match scheduled {
        // Nobody attaches anew for it: what is read wrongly because the order was changed is read again.
        Err(refusal) if may_be_of_order(&refusal) => match entity.with_changed_order().await {
            Some(entity) => schedule_for(shared, &entity, request).await?,
            None => return Err(refusal),
        },
        scheduled => scheduled?,
    };
    let number = |number: SequenceNumber| Value::Long(i64::try_from(number.get()).unwrap_or(0));
    let numbers = numbers.into_iter().map(number).collect();
    Ok(ManagementAnswer::done(vec![(Value::string("sequence-numbers"), Value::Array(numbers))]))
}

/// Whether a message may have been refused because it was read for another order than its queue has.
fn may_be_of_order(refusal: &AmqpRefusal) -> bool {
    matches!(refusal.condition, condition::PRECONDITION_FAILED | condition::ARGUMENT_ERROR)
}

/// Schedules messages, read for the order that the entity is known to have.
async fn schedule_for(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<Vec<SequenceNumber>, AmqpRefusal> {
    let mut messages = Vec::new();
    for entry in request.maps("messages")? {
        messages.push(shared.read(entity, payload(entry)?)?);
    }
    if let Some(topic) = &entity.topic {
        return topic_scheduling::schedule(shared, topic, messages).await;
    }
    let receipts = entity.queue.send_whole(messages, limits::SERVICE_BUS_BATCH_MAX).await?;
    shared.meters.note_received(receipts.len(), 0);
    let number =
        |receipt: crate::engine::Receipt| receipt.sequence_number().unwrap_or(topic_scheduling::NONE);
    Ok(receipts.into_iter().map(number).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::tests::peer;
    use crate::amqp::tests::peer::Role;
    use crate::amqp::tests::peer::Target;
    use crate::queue::QueueOptions;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::bare::request;
    use crate::service_bus::tests::bare::sections;
    use crate::service_bus::tests::socketless;

    /// A message with the third place in its session, as a request to schedule it has it.
    fn third() -> Value {
        let properties = crate::amqp::MessageProperties {
            group_id: Some("w".into()),
            group_sequence: Some(3),
            ..Default::default()
        };
        let mut payload = bytes::BytesMut::new();
        crate::amqp::message::encode_properties(&mut payload, &properties);
        crate::amqp::message::encode_data(&mut payload, b"x");
        let entry = vec![(Value::string("message"), Value::Binary(payload.freeze()))];
        Value::List(vec![Value::Map(entry)])
    }

    #[tokio::test]
    async fn messages_are_scheduled_by_the_order_that_the_queue_has_by_then() {
        let (engine, queue, mut connection_task) = socketless::connected().await;
        let requests = Target { address: Some("q/$management".into()), ..Target::default() };
        let requests = peer::Attach { target: Some(requests), ..peer::attach("requests", 1, Role::Sender) };
        let (replies, requests) = (attach(receiver(0, "q/$management")), attach(requests));
        connection_task.hear(&[replies, requests, credit(0, 0, 100)]).await;
        connection_task.written();
        engine.client().change_queue("q", QueueOptions::by_position()).await.unwrap();
        let asked = vec![(Value::string("messages"), third())];
        let asked = request("com.microsoft:schedule-message", asked);
        connection_task.hear(&[peer::transfer(1, 0, &asked)]).await;
        let answer = connection_task.written().iter().find_map(sections).expect("it is answered");
        let status = lookup(&answer.application_properties().unwrap(), "statusCode").cloned();
        assert_eq!(status, Some(Value::Int(200)));
        assert_eq!(queue.view().await.unwrap().counts.stored(), 1);
    }
}
