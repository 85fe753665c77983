//! Messages for later that are sent to a topic: each subscription gets its copies now, and a client knows them by the number
//! of the first.

use std::collections::HashMap;

use futures_util::future::join_all;

use crate::engine::MessageView;
use crate::engine::Queue;
use crate::engine::Topic;
use crate::header::PropertyValue;
use crate::header::SCHEDULED_AS;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::service_bus::management::cancelling::cancel_all;
use crate::service_bus::management::looking::PageLength;
use crate::service_bus::published::published;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// Schedules messages, all or none. Returns their numbers; that of a message that no subscription wants is zero.
pub(crate) async fn schedule(
    shared: &EndpointState,
    topic: &Topic,
    messages: Vec<Message>,
) -> Result<Vec<SequenceNumber>, AmqpRefusal> {
    let (mut marks, mut marked) = (Vec::new(), Vec::new());
    for mut message in messages {
        let mark = shared.client.token()?.to_string();
        message.headers.properties.insert(SCHEDULED_AS.to_owned(), PropertyValue::Text(mark.clone()));
        marks.push(mark);
        marked.push(published(message)?);
    }
    let receipts = topic.publish(marked).await?;
    shared.meters.note_received(marks.len(), 0);
    let copies = receipts.iter().filter_map(|(queue, receipt)| Some((queue, receipt.sequence_number()?)));
    if let [_] = marks[..] {
        return Ok(vec![copies.map(|(_, number)| number).min().unwrap_or(NONE)]);
    }
    let seen = copies.map(|(queue, number)| async move {
        let found = shared.client.queue(queue.as_str())?.peek(number, 1).await?.into_iter().next();
        Ok::<_, AmqpRefusal>(found.and_then(|found| Some((mark_of(&found)?, found.sequence_number))))
    });
    let mut first: HashMap<String, SequenceNumber> = HashMap::new();
    for copy in join_all(seen).await {
        if let Some((mark, number)) = copy? {
            let known = first.entry(mark).or_insert(number);
            *known = number.min(*known);
        }
    }
    Ok(marks.iter().map(|mark| first.get(mark).copied().unwrap_or(NONE)).collect())
}

/// The number of a message of which there is no copy.
pub(super) const NONE: SequenceNumber = SequenceNumber::new(0);

/// Cancels every copy of messages that were scheduled so.
pub(crate) async fn cancel(
    shared: &EndpointState,
    topic: &Topic,
    numbers: &[SequenceNumber],
) -> Result<(), AmqpRefusal> {
    let view = topic.view().await?.ok_or_else(|| AmqpRefusal::not_found(topic.name().as_str()))?;
    let queues = view.subscriptions.iter().map(|subscription| shared.client.queue(&subscription.queue));
    let queues: Vec<Queue> = queues.collect::<Result<_, _>>()?;
    let mut refused = None;
    for number in numbers {
        if let Err(refusal) = cancel_one(&queues, *number).await {
            refused.get_or_insert(refusal);
        }
    }
    refused.map_or(Ok(()), Err)
}

async fn cancel_one(queues: &[Queue], number: SequenceNumber) -> Result<(), AmqpRefusal> {
    let mut mark = None;
    for queue in queues {
        let first = queue.peek(number, 1).await?.into_iter().next();
        mark =
            mark.or(first.filter(|first| first.sequence_number == number).and_then(|first| mark_of(&first)));
    }
    let Some(mark) = mark else {
        let description = format!("no message with the number {number} is scheduled for a subscription");
        return Err(AmqpRefusal::new(condition::MESSAGE_NOT_FOUND, description));
    };
    let mut copies: Vec<(&Queue, SequenceNumber)> = Vec::new();
    for queue in queues {
        copies.extend(sent_with(queue, number, &mark).await?.into_iter().map(|number| (queue, number)));
    }
    cancel_all(&copies).await
}

/// The numbers of the copies that a queue has of a message, from that of the first on: they were made in one commit, and each has a
/// number of its own.
async fn sent_with(
    queue: &Queue,
    first: SequenceNumber,
    mark: &str,
) -> Result<Vec<SequenceNumber>, AmqpRefusal> {
    let last = first.get().saturating_add(limits::TOPIC_COPIES_MAX as u64);
    let is_copy = |view: &&MessageView| mark_of(view).is_some_and(|of| of == mark);
    let (mut found, mut next, mut length) = (Vec::new(), first, PageLength::default());
    loop {
        let page = queue.peek(next, length.messages()).await?;
        let Some(until) = page.last().map(|view| view.sequence_number) else { return Ok(found) };
        length.note(&page);
        let copies = page.iter().filter(is_copy).map(|view| view.sequence_number);
        found.extend(copies.filter(|number| number.get() <= last));
        if until.get() >= last {
            return Ok(found);
        }
        next = until.next();
    }
}

/// What the copies of one message have in common.
fn mark_of(view: &MessageView) -> Option<String> {
    match view.headers.properties.get(SCHEDULED_AS) {
        Some(PropertyValue::Text(mark)) => Some(mark.clone()),
        _ => None,
    }
}
