//! Messages for later that are sent to a topic: each subscription gets its copies now, and a client knows them by the number
//! of the first.

use std::collections::BTreeMap;
use std::collections::HashMap;

use futures_util::future::join_all;

use crate::clock::Timestamp;
use crate::engine::MessageView;
use crate::engine::Queue;
use crate::engine::Topic;
use crate::error::QueueError;
use crate::header::PropertyValue;
use crate::header::SCHEDULED_AS;
use crate::id::SequenceNumber;
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

/// Cancels every copy of messages that were scheduled so. Is one of them not scheduled any more, the others are cancelled all the same.
pub(crate) async fn cancel(
    shared: &EndpointState,
    topic: &Topic,
    numbers: &[SequenceNumber],
) -> Result<(), AmqpRefusal> {
    let view = topic.view().await?.ok_or_else(|| AmqpRefusal::not_found(topic.name().as_str()))?;
    let queues = view.subscriptions.iter().map(|subscription| shared.client.queue(&subscription.queue));
    let queues: Vec<Queue> = queues.collect::<Result<_, _>>()?;
    let (mut wanted, mut refused) = (WantedCopies::default(), None);
    for number in numbers {
        let first = first_copy(&queues, *number).await?;
        if !first.is_some_and(|first| wanted.add(&first)) {
            let description = format!("no message with the number {number} is scheduled for a subscription");
            refused.get_or_insert(AmqpRefusal::new(condition::MESSAGE_NOT_FOUND, description));
        }
    }
    let mut copies: Vec<(&Queue, SequenceNumber)> = Vec::new();
    for queue in &queues {
        let found = wanted.copies(|from, limit| queue.peek(from, limit)).await?;
        copies.extend(found.into_iter().map(|number| (queue, number)));
    }
    let cancelled = cancel_all(&copies).await;
    refused.map_or(cancelled, Err)
}

/// The first copy of the message that a client knows by a number.
async fn first_copy(queues: &[Queue], number: SequenceNumber) -> Result<Option<MessageView>, AmqpRefusal> {
    for queue in queues {
        let found = queue.peek(number, 1).await?.into_iter().next();
        let is_first = |view: &MessageView| view.sequence_number == number && mark_of(view).is_some();
        if let Some(first) = found.filter(is_first) {
            return Ok(Some(first));
        }
    }
    Ok(None)
}

/// Messages of which every copy is looked for.
#[derive(Default)]
struct WantedCopies {
    /// The number of the first copy, by what they have in common.
    by_mark: HashMap<String, SequenceNumber>,
    /// When the copies were accepted, by the number of the first: all were made in one commit, which has one instant.
    accepted_at: BTreeMap<SequenceNumber, Timestamp>,
}

impl WantedCopies {
    /// Looks for the copies of another message, whose first this is; false when they are looked for already.
    fn add(&mut self, first: &MessageView) -> bool {
        let number = first.sequence_number;
        let is_new = mark_of(first).is_some_and(|mark| self.by_mark.insert(mark, number).is_none());
        self.accepted_at.insert(number, first.accepted_at);
        is_new
    }

    fn is_copy(&self, view: &MessageView) -> bool {
        let first = mark_of(view).and_then(|mark| self.by_mark.get(&mark));
        first.is_some_and(|first| view.sequence_number >= *first)
    }

    /// The numbers of the copies that a queue has. Of each instant it is looked at once, however many messages were accepted then.
    async fn copies<F>(
        &self,
        peek: impl Fn(SequenceNumber, usize) -> F,
    ) -> Result<Vec<SequenceNumber>, AmqpRefusal>
    where
        F: Future<Output = Result<Vec<MessageView>, QueueError>>,
    {
        let (mut found, mut next) = (Vec::new(), SequenceNumber::new(0));
        for (first, accepted_at) in &self.accepted_at {
            if *first < next {
                continue;
            }
            next = *first;
            let mut length = PageLength::default();
            'instant: loop {
                let page = peek(next, length.messages()).await?;
                length.note(&page);
                let Some(last) = page.last() else { return Ok(found) };
                next = last.sequence_number.next();
                for view in &page {
                    if view.accepted_at != *accepted_at {
                        next = view.sequence_number;
                        break 'instant;
                    }
                    found.extend(self.is_copy(view).then_some(view.sequence_number));
                }
            }
        }
        Ok(found)
    }
}

/// What the copies of one message have in common.
fn mark_of(view: &MessageView) -> Option<String> {
    match view.headers.properties.get(SCHEDULED_AS) {
        Some(PropertyValue::Text(mark)) => Some(mark.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::engine::Engine;
    use crate::queue::QueueOptions;

    /// A queue with this many messages of each of so many instants, each with a mark of its own and a second copy.
    async fn scheduled(instants: usize, each: usize) -> (Engine, Queue, Vec<MessageView>) {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        for instant in 0..instants {
            let marks = (0..each).map(|number| format!("{instant}-{number}"));
            let copies =
                |mark: String| [(); 2].map(|()| Message::new("x").property(SCHEDULED_AS, mark.clone()));
            queue.send_batch(marks.flat_map(copies)).await.unwrap();
            clock.advance(Duration::from_millis(1));
        }
        let views = queue.peek(NONE, 2 * instants * each).await.unwrap();
        assert_eq!(views.len(), 2 * instants * each);
        (engine, queue, views)
    }

    /// The copies of messages in a queue, and how many messages were looked at to find them.
    async fn found(queue: &Queue, wanted: &WantedCopies) -> (Vec<SequenceNumber>, usize) {
        let read = &Cell::new(0);
        let peek = |from, limit| async move {
            let page = queue.peek(from, limit).await?;
            read.set(read.get() + page.len());
            Ok::<_, QueueError>(page)
        };
        (wanted.copies(peek).await.unwrap(), read.get())
    }

    #[tokio::test]
    async fn what_was_accepted_after_a_message_is_not_looked_at_for_its_copies() {
        let (_engine, queue, views) = scheduled(200, 1).await;
        let mut wanted = WantedCopies::default();
        for first in [&views[0], &views[100]] {
            assert!(wanted.add(first));
        }
        assert!(!wanted.add(&views[100]), "it is looked for already");
        let (copies, read) = found(&queue, &wanted).await;
        let expected = [0, 1, 100, 101].map(|at: usize| views[at].sequence_number);
        assert_eq!(copies, expected);
        assert!(read <= 20, "{read} messages were looked at");
    }

    #[tokio::test]
    async fn all_that_was_accepted_together_is_looked_at_once() {
        let (_engine, queue, views) = scheduled(2, 100).await;
        let mut wanted = WantedCopies::default();
        views[..200].iter().step_by(2).for_each(|first| assert!(wanted.add(first)));
        let (copies, read) = found(&queue, &wanted).await;
        assert_eq!(copies, views[..200].iter().map(|view| view.sequence_number).collect::<Vec<_>>());
        assert!(read <= views.len(), "{read} messages were looked at");
    }
}
