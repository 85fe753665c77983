//! Sending answers to requests. What a client asked for to have it deleted is deleted once the answer with it is on its way,
//! never before.

use bytes::Bytes;

use crate::amqp::LinkId;
use crate::amqp::OutgoingMessage;
use crate::amqp::Unsent;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::management::replies::ManagementReply;

impl ConnectionTask {
    /// Sends an answer to a request, as soon as the client takes it.
    pub(crate) fn reply_with(&mut self, link: LinkId, reply: ManagementReply) {
        let has_room = self.has_room_for_reply(reply.payload.len());
        match self.links.get_mut(&link) {
            Some(EndpointLink::Replies(replies))
                if has_room && replies.backlog.len() < limits::SERVICE_BUS_REQUESTS_MAX =>
            {
                self.replying_bytes += reply.payload.len();
                replies.backlog.push_back(reply);
            }
            _ => self.give_up_reply(reply),
        }
        self.send_replies(link);
    }

    /// Whether an answer of so many bytes may wait for the client: a small one always, and a larger one than is allowed together where
    /// none waits.
    pub(crate) fn has_room_for_reply(&self, bytes: usize) -> bool {
        let together = self.replying_bytes + bytes;
        bytes <= limits::SERVICE_BUS_REPLY_SMALL
            || self.replying_bytes == 0
            || together <= limits::SERVICE_BUS_REPLYING_BYTES
    }

    /// Answers that a lock was lost where the messages of the next answer, which were to be deleted, may be somebody else's by now.
    fn refuse_expired(&mut self, link: LinkId) {
        let now = self.shared.client.elapsed();
        let Some(EndpointLink::Replies(replies)) = self.links.get_mut(&link) else { return };
        let next = replies.backlog.front_mut().filter(|reply| reply.is_expired(now));
        let Some(ManagementReply { payload, deletes, lock_lost, .. }) = next else { return };
        self.replying_bytes = self.replying_bytes + lock_lost.len() - payload.len();
        *payload = std::mem::take(lock_lost);
        self.shared.give_back_all(&std::mem::take(deletes));
    }

    pub(crate) fn send_replies(&mut self, link: LinkId) {
        if self.is_write_closed {
            // Who asked for messages to have them deleted will not get them.
            return self.give_up_replies(link);
        }
        self.refuse_expired(link);
        while let Some(EndpointLink::Replies(replies)) = self.links.get_mut(&link) {
            let Some(reply) = replies.backlog.front() else { return };
            let tag = Bytes::copy_from_slice(&replies.sent.to_be_bytes());
            let outgoing = OutgoingMessage { tag, payload: reply.payload.clone(), format: 0, settled: true };
            let sent = self.amqp.send(link, outgoing);
            match sent {
                // More credit is heard of.
                Err(Unsent::NoCredit) => return,
                Err(Unsent::NoRoom | Unsent::TooManyUnsettled) => {
                    self.hungry.insert(link);
                    return;
                }
                _ => {}
            }
            replies.sent += 1;
            let Some(reply) = replies.backlog.pop_front() else { return };
            self.replying_bytes -= reply.payload.len();
            match sent {
                Ok(_) => {
                    if !reply.deletes.is_empty() || !replies.on_their_way.is_empty() {
                        replies.on_their_way.push(reply.deletes);
                        self.answering.insert(link);
                    }
                    self.note_answered(reply.asked_over);
                }
                Err(_) => self.give_up_reply(reply),
            }
            self.refuse_expired(link);
        }
    }

    /// Gives up all answers that have not left over a link.
    pub(crate) fn give_up_replies(&mut self, link: LinkId) {
        let Some(EndpointLink::Replies(replies)) = self.links.get_mut(&link) else { return };
        let (undeleted, backlog) = (replies.take_undeleted(), std::mem::take(&mut replies.backlog));
        for reply in backlog.into_iter().rev() {
            self.replying_bytes -= reply.payload.len();
            self.give_up_reply(reply);
        }
        self.shared.give_back_all(&undeleted);
    }

    fn give_up_reply(&mut self, reply: ManagementReply) {
        self.shared.give_back_all(&reply.deletes);
        self.note_answered(reply.asked_over);
    }

    /// Lets a client make another request for one that is answered, or that nobody answers any more.
    pub(crate) fn note_answered(&mut self, asked_over: LinkId) {
        if let Some(EndpointLink::Requests(requests)) = self.links.get_mut(&asked_over) {
            requests.unanswered = requests.unanswered.saturating_sub(1);
            self.grant_requests(asked_over);
        }
    }

    /// Lets a client make requests, fewer by those that are not answered.
    pub(crate) fn grant_requests(&mut self, link: LinkId) {
        let unanswered = match self.links.get(&link) {
            Some(EndpointLink::Requests(requests)) => requests.unanswered,
            _ => 0,
        };
        self.amqp.grant(link, limits::SERVICE_BUS_REQUEST_CREDIT.saturating_sub(unanswered));
    }

    /// Deletes what was answered, as far as it is on its way.
    pub(crate) fn delete_answered(&mut self) {
        let (bytes_written, written_to) =
            (self.bytes_written, self.bytes_given + self.amqp.output().len() as u64);
        let links: Vec<LinkId> = self.answering.iter().copied().collect();
        for link in links {
            let unsent = self.amqp.unsent(link).len();
            let Some(EndpointLink::Replies(replies)) = self.links.get_mut(&link) else { continue };
            let out = replies.on_their_way.take_out(unsent, written_to, bytes_written);
            if replies.on_their_way.is_empty() {
                self.answering.remove(&link);
            }
            self.delete(link, out.into_iter().flatten().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::amqp::Value;
    use crate::amqp::lookup;
    use crate::amqp::tests::peer;
    use crate::amqp::tests::peer::Performative;
    use crate::amqp::tests::peer::Role;
    use crate::amqp::tests::peer::Target;
    use crate::clock::Clock;
    use crate::clock::SystemClock;
    use crate::clock::Timestamp;
    use crate::engine::Client;
    use crate::engine::Engine;
    use crate::engine::Queue;
    use crate::message::Message;
    use crate::queue::QueueOptions;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::bare::request;
    use crate::service_bus::tests::bare::sections;
    use crate::service_bus::tests::socketless;
    use crate::testing::ManualClock;

    /// A queue, and a connection whose client makes requests to its management and takes as many answers as it likes.
    async fn stage(client: &Client) -> (Queue, ConnectionTask) {
        let (queue, mut connection_task) = waiting_stage(client, Arc::new(SystemClock::default())).await;
        connection_task.hear(&[credit(0, 0, 100)]).await;
        (queue, connection_task)
    }

    /// The same, with a client that takes no answers.
    async fn waiting_stage(client: &Client, clock: Arc<dyn Clock>) -> (Queue, ConnectionTask) {
        let queue = socketless::unordered(client).await;
        let shared = socketless::endpoint(client, clock).await;
        let mut connection_task = socketless::opened(shared);
        let requests = Target { address: Some("q/$management".into()), ..Target::default() };
        let requests = peer::Attach { target: Some(requests), ..peer::attach("requests", 1, Role::Sender) };
        let (replies, requests) = (attach(receiver(0, "q/$management")), attach(requests));
        connection_task.hear(&[replies, requests]).await;
        (queue, connection_task)
    }

    #[tokio::test]
    async fn an_answer_that_had_no_room_is_sent_when_there_is_room() {
        let engine = Engine::in_memory().open().await.unwrap();
        let (queue, mut connection_task) = stage(engine.client()).await;
        for _ in 0..20 {
            queue.send(Message::new(vec![0; 700 * 1024])).await.unwrap();
        }
        let asked = vec![(Value::string("message-count"), Value::Int(1))];
        let asked = request("com.microsoft:peek-message", asked);
        let asked: Vec<Performative> = (0..5).map(|number| peer::transfer(1, number, &asked)).collect();
        connection_task.hear(&asked).await;
        let is_end =
            |frame: &&Performative| matches!(frame, Performative::Transfer(transfer, _) if !transfer.more);
        assert_eq!(connection_task.written().iter().filter(is_end).count(), 5);
    }

    /// Defers a message, and asks for it to have it deleted.
    async fn deferred(queue: &Queue) -> Performative {
        let number = queue.send(Message::new("x")).await.unwrap().sequence_number().unwrap();
        queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
        let number = Value::Long(i64::try_from(number.get()).unwrap());
        let asked = vec![
            (Value::string("sequence-numbers"), Value::Array(vec![number])),
            (Value::string("receiver-settle-mode"), Value::Uint(0)),
        ];
        peer::transfer(1, 0, &request("com.microsoft:receive-by-sequence-number", asked))
    }

    #[tokio::test]
    async fn what_was_asked_for_to_be_deleted_is_not_sent_when_its_lock_has_ended_before() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000_000));
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let (queue, mut connection_task) = waiting_stage(engine.client(), Arc::new(clock.clone())).await;
        let asked = deferred(&queue).await;
        connection_task.hear(&[asked]).await;
        clock.advance(QueueOptions::default().lock);
        connection_task.hear(&[credit(0, 0, 1)]).await;
        let heard = connection_task.written();
        let answer = heard.iter().find_map(sections).expect("it is answered");
        let status = lookup(&answer.application_properties().unwrap(), "statusCode").cloned();
        assert_eq!(status, Some(Value::Int(410)));
        connection_task.settle_down().await;
        let counts = queue.view().await.unwrap().counts;
        assert_eq!((counts.completed, counts.by_consumer, counts.locked), (0, 1, 0), "{counts:?}");
    }

    #[tokio::test]
    async fn what_was_asked_for_to_be_deleted_stays_when_nothing_can_be_written_any_more() {
        let engine = Engine::in_memory().open().await.unwrap();
        let (queue, mut connection_task) = stage(engine.client()).await;
        let asked = deferred(&queue).await;
        connection_task.is_write_closed = true;
        connection_task.hear(&[asked]).await;
        // As the socket does with what cannot be written.
        connection_task.amqp.output().clear();
        connection_task.delete_answered();
        connection_task.settle_down().await;
        let counts = queue.view().await.unwrap().counts;
        assert_eq!((counts.completed, counts.by_consumer, counts.locked), (0, 1, 0), "{counts:?}");
    }
}
