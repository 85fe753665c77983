//! Messages for later.

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::limits;
use crate::service_bus::entity::Entity;
use crate::service_bus::management::answer::Answer;
use crate::service_bus::management::request::Request;
use crate::service_bus::refusal::Refusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::Shared;

/// Schedules messages, all or none.
pub(crate) async fn schedule(shared: &Shared, entity: &Entity, request: &Request) -> Result<Answer, Refusal> {
    if entity.is_dead_letters {
        return Err(Refusal::new(condition::NOT_ALLOWED, "nobody sends to dead letters"));
    }
    let mut messages = Vec::new();
    for entry in request.maps("messages")? {
        let payload = lookup(entry, "message").and_then(Value::as_binary);
        let payload = payload.ok_or_else(|| Refusal::argument("an entry has no message"))?;
        messages.push(shared.read(entity, payload)?);
    }
    if messages.len() > limits::SEND_BATCH_MAX {
        return Err(Refusal::argument(format!("more than {} messages", limits::SEND_BATCH_MAX)));
    }
    let receipts = entity.queue.send_batch(messages).await?;
    shared.meters.note_received(receipts.len(), 0);
    let number = |receipt: crate::engine::Receipt| receipt.sequence_number().map_or(0, |number| number.get());
    let numbers =
        receipts.into_iter().map(|receipt| Value::Long(i64::try_from(number(receipt)).unwrap_or(0)));
    Ok(Answer::done(vec![(Value::string("sequence-numbers"), Value::Array(numbers.collect()))]))
}

/// Cancels scheduled messages, up to the first that is not scheduled any more.
pub(crate) async fn cancel(entity: &Entity, request: &Request) -> Result<Answer, Refusal> {
    for number in request.numbers()? {
        entity.queue.cancel(number).await?;
    }
    Ok(Answer::done(Vec::new()))
}
