//! Looks at messages: those of a queue, of one workflow in its order, and what would be handed out next.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::page;
use crate::engine::page::LiveMessages;
use crate::engine::query::QueueLook;
use crate::engine::rules::dead_letters::delivery_count_of;
use crate::engine::rules::dead_letters::lock_key;
use crate::engine::rules::due::shown;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::view::Deferral;
use crate::engine::view::MessageStatus;
use crate::engine::view::MessageView;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::Order;

impl QueueLook<'_> {
    pub(crate) fn messages(&self, from: SequenceNumber, limit: usize) -> Read<Vec<MessageView>> {
        let mut page = page::Page::new(limit);
        let mut next = from;
        while page.has_room() {
            let Some((sequence, record)) = self.records.message_from(self.queue.id, next)? else {
                break;
            };
            page.add(self.message_view(sequence, record)?);
            next = sequence.next();
        }
        Ok(page.views)
    }

    /// Messages that are no dead letters; of these only the records are read.
    pub(crate) fn live(&self, from: SequenceNumber, limit: usize) -> Read<LiveMessages> {
        let mut page = page::Page::new(limit);
        let (mut next, mut looked_at, mut passed) = (Some(from), 0, 0);
        while page.has_room()
            && passed < limits::DEAD_LETTERS_PASSED_MAX
            && let Some(from) = next
        {
            let found = self.records.message_from(self.queue.id, from)?;
            next = found.as_ref().map(|(sequence, _)| sequence.next());
            let Some((sequence, record)) = found else { break };
            looked_at += 1;
            match record.status {
                Status::DeadLettered(_) => passed += 1,
                _ => page.add(self.message_view(sequence, record)?),
            }
        }
        Ok(LiveMessages { views: page.views, looked_at, next })
    }

    /// One message of each workflow that offers one.
    pub(crate) fn offered(&self, limit: usize) -> Read<Vec<MessageView>> {
        let mut page = page::Page::new(limit);
        let mut ticket = 0;
        while page.has_room() {
            let Some((found, stream)) = self.records.ready_from(self.queue.id, ticket)? else {
                break;
            };
            ticket = found + 1;
            let key = self.key(stream);
            let Some((_, sequence)) = self.records.line_from(&key, 0)? else { continue };
            if let Some(record) = self.records.message(MessageKey { queue: key.queue, sequence })? {
                page.add(self.message_view(sequence, record)?);
            }
        }
        Ok(page.views)
    }

    pub(crate) fn line(&self, id: WorkflowId, from: u64, limit: usize) -> Read<Vec<MessageView>> {
        let key = self.key(WorkflowRef::Named(id));
        let mut page = page::Page::new(limit);
        let mut next = from;
        while page.has_room() {
            let Some((rank, sequence)) = self.records.line_from(&key, next)? else {
                break;
            };
            if let Some(record) = self.records.message(MessageKey { queue: key.queue, sequence })? {
                page.add(self.message_view(sequence, record)?);
            }
            next = rank + 1;
        }
        if matches!(self.queue.options.order, Order::After) {
            self.add_unreached(&key, &mut page)?;
        }
        Ok(page.views)
    }

    /// Adds what waits for the chain in after-order and has no rank: chain by chain, each from the message whose
    /// predecessor is missing.
    fn add_unreached(&self, key: &WorkflowKey, page: &mut page::Page) -> Read<()> {
        let mut from = SequenceNumber::new(0);
        let mut found = self.records.root_from(key, from)?;
        if found.is_none() {
            // Messages that name each other in a circle have no first one.
            found = self.records.waiting_first(key)?;
        }
        while let Some(root) = found {
            self.add_chain(key, root, page)?;
            if !page.has_room() {
                break;
            }
            from = from.max(root.next());
            found = self.records.root_from(key, from)?;
        }
        Ok(())
    }

    fn add_chain(&self, key: &WorkflowKey, root: SequenceNumber, page: &mut page::Page) -> Read<()> {
        let mut next = Some(root);
        while let Some(sequence) = next.filter(|_| page.has_room()) {
            let message = self.records.message(MessageKey { queue: key.queue, sequence })?;
            let Some(message) = message else { break };
            let follower = self.records.link(key, message.message_id.as_ref())?;
            page.add(self.message_view(sequence, message)?);
            let waits = |link: &ChainLink| link.rank.is_none() && link.settled.is_none();
            next = follower.filter(waits).and_then(|link| link.sequence).filter(|next| *next != root);
        }
        Ok(())
    }

    fn message_view(&self, sequence: SequenceNumber, record: Arc<MessageRecord>) -> Read<MessageView> {
        let content = self.records.content_listed(MessageKey { queue: self.queue.id, sequence })?;
        let delivery_count = delivery_count_of(&record);
        let (status, locked_until) = (self.message_status(&record)?, self.locked_until(sequence, &record));
        let chain_place = self.chain_place(sequence, &record)?;
        let record = Arc::unwrap_or_clone(record);
        let rare = record.rare.into_inner();
        let by_position = matches!(self.queue.options.order, Order::Position { .. });
        Ok(MessageView {
            sequence_number: sequence,
            position: record.rank.filter(|_| by_position && content.workflow_id.is_some()),
            after: rare.after,
            chain_place,
            status,
            locked_until,
            workflow_id: content.workflow_id,
            message_id: record.message_id,
            accepted_at: record.accepted_at,
            expires_at: self.shown(rare.expires_at),
            delivery_count,
            attempts: rare.attempts,
            headers: content.headers.into_inner(),
            body: content.body,
        })
    }

    fn message_status(&self, record: &MessageRecord) -> Read<MessageStatus> {
        let key = self.key(record.stream.clone());
        Ok(match &record.status {
            Status::Ready => match self.is_early(&key, record)? {
                true => MessageStatus::Deferred { why: Deferral::Early, until: None },
                false => MessageStatus::Ready,
            },
            Status::Scheduled { due } => MessageStatus::Scheduled { until: due.shown(self.now) },
            Status::Failed { due } => {
                MessageStatus::Deferred { why: Deferral::Retry, until: self.shown(*due) }
            }
            Status::ByConsumer { due, .. } => {
                MessageStatus::Deferred { why: Deferral::ByConsumer, until: self.shown(*due) }
            }
            Status::Locked { .. } => MessageStatus::Locked { until: self.until_of(&key).unwrap_or_default() },
            Status::DeadLettered(dead_letter) => MessageStatus::DeadLettered((**dead_letter).clone()),
        })
    }

    /// Until when somebody has a message.
    pub(crate) fn locked_until(&self, sequence: SequenceNumber, record: &MessageRecord) -> Option<Timestamp> {
        match record.status {
            Status::Locked { .. } => self.until_of(&self.key(record.stream.clone())),
            Status::DeadLettered(_) => self.until_of(&lock_key(self.queue.id, sequence)),
            _ => None,
        }
    }

    fn until_of(&self, key: &WorkflowKey) -> Option<Timestamp> {
        self.locks.of(key).map(|(_, lock)| shown(lock.until, self.now))
    }

    fn is_early(&self, key: &WorkflowKey, record: &MessageRecord) -> Read<bool> {
        let Some(rank) = record.rank else { return Ok(true) };
        let Some(workflow) = self.records.workflow(key)? else {
            return Ok(false);
        };
        let named = matches!(key.stream, WorkflowRef::Named(_));
        Ok(named && (self.is_beyond(&workflow, rank) || self.is_behind_scheduled(key, rank)?))
    }

    /// Whether a message by position waits for the head of its line, which is scheduled and holds its place.
    fn is_behind_scheduled(&self, key: &WorkflowKey, rank: u64) -> Read<bool> {
        if !self.queue.options.order.has_places() {
            return Ok(false);
        }
        let Some((_, sequence)) = self.records.line_from(key, 0)?.filter(|(first, _)| *first < rank) else {
            return Ok(false);
        };
        let head = self.records.message(MessageKey { queue: key.queue, sequence })?;
        Ok(head.is_some_and(|head| matches!(head.status, Status::Scheduled { .. })))
    }
}

#[cfg(test)]
#[cfg(feature = "daemon")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::Engine;
    use crate::engine::Queue;
    use crate::message::Message;
    use crate::queue::QueueOptions;

    /// A queue with so many dead letters, and one message behind them.
    async fn with_dead_letters(count: usize) -> (Engine, Queue) {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let options = QueueOptions { order: Order::None, ..QueueOptions::default() };
        let queue = engine.client().create_queue("q", options).await.unwrap();
        for number in 0..count {
            queue.send(Message::new(number.to_string())).await.unwrap();
            let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
            delivery.dead_letter("bad", "").await.unwrap();
        }
        queue.send(Message::new("live")).await.unwrap();
        (engine, queue)
    }

    #[tokio::test]
    async fn a_page_of_messages_that_are_no_dead_letters_passes_over_these() {
        let (_engine, queue) = with_dead_letters(5).await;
        let page = queue.peek_live(SequenceNumber::new(0), 1).await.unwrap();
        let bodies: Vec<&[u8]> = page.views.iter().map(|view| &view.body[..]).collect();
        assert_eq!((bodies, page.looked_at), (vec![&b"live"[..]], 6));
        let page = queue.peek_live(page.next.unwrap(), 1).await.unwrap();
        assert_eq!((page.views.len(), page.looked_at, page.next), (0, 0, None));
    }

    #[tokio::test]
    async fn a_look_passes_over_no_more_dead_letters_than_keep_others_waiting_shortly() {
        let (_engine, queue) = with_dead_letters(limits::DEAD_LETTERS_PASSED_MAX + 1).await;
        let page = queue.peek_live(SequenceNumber::new(0), 10).await.unwrap();
        assert_eq!((page.views.len(), page.looked_at), (0, limits::DEAD_LETTERS_PASSED_MAX));
        let page = queue.peek_live(page.next.unwrap(), 10).await.unwrap();
        assert_eq!((page.views.len(), page.looked_at, page.next), (1, 2, None));
    }
}
