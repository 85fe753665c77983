//! Messages that come from clients, on their way to the engine: those that come together are sent together, and none waits
//! for another.

use bytes::Bytes;

use crate::amqp::DeliveryNumber;
use crate::amqp::DeliveryOutcome;
use crate::amqp::LinkId;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::error::Misuse;
use crate::error::SendError;
use crate::error::SendRefusal;
use crate::limits;
use crate::message::Message;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::description::EntityStatus;
use crate::service_bus::entity::Entity;
use crate::service_bus::incoming;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Node;
use crate::service_bus::publish_each::publish_each;
use crate::service_bus::published::published;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::sender::MessageGroup;
use crate::service_bus::sender::Sender;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::transactions::link_is_over;

/// The format of a batch: each of its data sections is a message.
const BATCH: u32 = 0x8001_3700;

/// What the engine answered to each delivery of a group.
type GroupAnswers = Result<Vec<Result<(), SendError>>, SendError>;

/// What the engine answered to deliveries; those that their client has settled hear nothing of it.
type DeliveryAnswers = Vec<(Option<DeliveryNumber>, Result<(), SendError>)>;

impl EndpointState {
    /// Reads a message for an entity, and finds its place.
    pub(crate) fn read(&self, entity: &Entity, payload: &Bytes) -> Result<Message, AmqpRefusal> {
        self.descriptions.check_status((entity.name(), entity.created_at), EntityStatus::may_send)?;
        let new_id = self.client.token()?.to_string().replace('-', "");
        let message = incoming::read(payload, entity.options.order, &new_id)?;
        let message = self.intake.place(entity.name(), message)?;
        if entity.requires_session() && message.workflow_id.is_none() {
            let description = "the queue requires sessions, and the message names none";
            return Err(AmqpRefusal::new(condition::NOT_ALLOWED, description));
        }
        Ok(message)
    }

    /// Reads a message, or those of a batch.
    pub(crate) fn read_all(
        &self,
        entity: &Entity,
        format: u32,
        payload: &Bytes,
    ) -> Result<Vec<Message>, AmqpRefusal> {
        match format {
            BATCH => batched(payload)?.iter().map(|payload| self.read(entity, payload)).collect(),
            _ => Ok(vec![self.read(entity, payload)?]),
        }
    }
}

impl Entity {
    /// Sends what came together.
    async fn send_group(&self, messages: Vec<Message>, is_batch: bool) -> GroupAnswers {
        match is_batch {
            true => Ok(vec![self.send_whole(messages).await]),
            false => self.send_each(messages).await,
        }
    }

    /// Sends messages, each for itself, in the order given.
    async fn send_each(&self, messages: Vec<Message>) -> GroupAnswers {
        let Some(topic) = &self.topic else {
            let answers = self.queue.send_each(messages).await?;
            return Ok(answers.into_iter().map(|answer| answer.map(drop)).collect());
        };
        Ok(publish_each(messages, |messages| topic.publish(messages)).await)
    }

    /// Sends messages, all or none.
    async fn send_whole(&self, messages: Vec<Message>) -> Result<(), SendError> {
        let Some(topic) = &self.topic else {
            return self.queue.send_whole(messages, limits::SERVICE_BUS_BATCH_MAX).await.map(drop);
        };
        if messages.len() > limits::SERVICE_BUS_BATCH_MAX {
            let problem = format!("has more than {} messages", limits::SERVICE_BUS_BATCH_MAX);
            return Err(Misuse::new("batch", problem).into());
        }
        let messages: Vec<_> = messages.into_iter().map(published).collect::<Result<_, _>>()?;
        topic.publish(messages).await.map(drop)
    }
}

impl ConnectionTask {
    pub(crate) fn take_message(
        &mut self,
        link: LinkId,
        (delivery, settled): (DeliveryNumber, bool),
        (format, payload): (u32, Bytes),
        transaction: Option<Bytes>,
    ) {
        match self.links.get(&link) {
            Some(EndpointLink::Coordinator) => self.coordinate(link, delivery, &payload),
            Some(EndpointLink::Sender(_)) if let Some(transaction) = transaction => {
                self.post(link, (delivery, settled), (format, &payload), transaction);
            }
            Some(EndpointLink::Sender(_)) if format == BATCH => {
                self.take_batch(link, delivery, settled, &payload)
            }
            Some(EndpointLink::Sender(sender)) => {
                let read = self.shared.read(&sender.entity, &payload);
                self.group(link, (!settled).then_some(delivery), read, payload.len());
            }
            Some(EndpointLink::Requests(_)) if transaction.is_some() => {
                let refusal = "the management node takes no request in a transaction; send and settle over links, and schedule \
                               with x-opt-scheduled-enqueue-time";
                let refusal = AmqpRefusal::new(condition::NOT_IMPLEMENTED, refusal);
                self.refuse_delivery(link, (delivery, settled), transaction.as_ref(), refusal);
                self.grant_requests(link);
            }
            Some(EndpointLink::Requests(requests)) => {
                let node = requests.node.clone();
                if let Node::Management(entity) = &node
                    && let named = (entity.name(), entity.created_at)
                    && let Err(refusal) = self.shared.descriptions.check_current(named)
                {
                    return self.detach(link, refusal);
                }
                if !settled {
                    self.amqp.settle(link, delivery, DeliveryOutcome::Accepted);
                }
                // What was said before it is asked before it.
                self.send_groups();
                self.send_settlements();
                self.take_request(link, &node, &payload);
            }
            _ => self.note_missing(settled, transaction.as_ref(), &link_is_over()),
        }
    }

    /// Refuses a delivery. Who has settled it waits for no answer, and hears it by the end of the link, which also ends where nothing
    /// more can come over it, and by that of the transaction to which it was to belong.
    pub(crate) fn refuse_delivery(
        &mut self,
        link: LinkId,
        (delivery, settled): (DeliveryNumber, bool),
        transaction: Option<&Bytes>,
        refusal: AmqpRefusal,
    ) {
        self.note_missing(settled, transaction, &refusal);
        match settled || refusal.condition == condition::DETACH_FORCED {
            true => self.detach(link, refusal),
            false => self.amqp.settle(link, delivery, DeliveryOutcome::Rejected(Some(refusal.into()))),
        }
    }

    pub(crate) fn reject_too_large(
        &mut self,
        link: LinkId,
        (delivery, settled): (DeliveryNumber, bool),
        transaction: Option<&Bytes>,
    ) {
        let refusal = AmqpRefusal::new(condition::SIZE_EXCEEDED, "the message is larger than the link takes");
        match self.links.get(&link) {
            Some(EndpointLink::Coordinator | EndpointLink::Requests(_)) => {
                self.refuse_delivery(link, (delivery, settled), transaction, refusal);
                self.grant_requests(link);
            }
            _ => {
                self.note_missing(settled, transaction, &refusal);
                self.group(link, (!settled).then_some(delivery), Err(refusal), 0);
            }
        }
    }

    /// The sender of a link from which more is taken.
    fn open_sender(&mut self, link: LinkId) -> Option<&mut Sender> {
        match self.links.get_mut(&link) {
            Some(EndpointLink::Sender(sender)) if !sender.is_leaving => Some(sender),
            _ => None,
        }
    }

    fn group(
        &mut self,
        link: LinkId,
        delivery: Option<DeliveryNumber>,
        read: Result<Message, AmqpRefusal>,
        bytes: usize,
    ) {
        let Some(sender) = self.open_sender(link) else { return };
        match read {
            Ok(message) => {
                let group = sender.open_group();
                group.messages.push(message);
                group.deliveries.push(delivery);
                group.bytes += bytes;
                let is_full = group.is_full();
                self.sending_bytes += bytes;
                self.grouped.insert(link);
                if is_full {
                    self.send_group(link);
                }
            }
            // What its client knows of the entity is not so any more.
            Err(refusal) if refusal.condition == condition::DETACH_FORCED => self.detach(link, refusal),
            Err(refusal) => {
                self.shared.meters.note_received(0, 1);
                if let Some(delivery) = delivery {
                    self.amqp.settle(link, delivery, DeliveryOutcome::Rejected(Some(refusal.into())));
                }
                self.replenish(link);
            }
        }
    }

    /// Sends what has come together, as far as it may be sent.
    pub(crate) fn send_groups(&mut self) {
        std::mem::take(&mut self.grouped).into_iter().for_each(|link| self.send_group(link));
    }

    fn send_group(&mut self, link: LinkId) {
        self.grouped.remove(&link);
        while let Some(EndpointLink::Sender(sender)) = self.links.get_mut(&link) {
            let Some(MessageGroup { messages, deliveries, bytes, is_batch }) = sender.next_group() else {
                if sender.waiting() > 0 {
                    self.grouped.insert(link);
                }
                return;
            };
            let entity = sender.entity.clone();
            let of_each = if is_batch { messages.len() } else { 1 };
            self.start(async move {
                let answers = entity.send_group(messages, is_batch).await;
                move |connection_task: &mut ConnectionTask| {
                    connection_task.sending_bytes -= bytes;
                    connection_task.group_sent(link, (&deliveries, of_each), answers)
                }
            });
        }
    }

    /// Answers the deliveries of a group, of so many messages each.
    fn group_sent(
        &mut self,
        link: LinkId,
        (deliveries, of_each): (&[Option<DeliveryNumber>], usize),
        answers: GroupAnswers,
    ) {
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => deliveries.iter().map(|_| Err(error.clone())).collect(),
        };
        let is_misplaced = |answer: &Result<(), SendError>| {
            matches!(answer, Err(SendError::Refused(SendRefusal::PlaceMismatch { .. })))
        };
        let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
        self.shared.meters.note_received(accepted * of_each, (answers.len() - accepted) * of_each);
        let (misplaced, others): (Vec<_>, Vec<_>) =
            deliveries.iter().copied().zip(answers).partition(|(_, answer)| is_misplaced(answer));
        self.answer(link, others);
        if !misplaced.is_empty() {
            self.check_order(link, misplaced);
        }
        if let Some(EndpointLink::Sender(sender)) = self.links.get_mut(&link) {
            sender.note_answered();
        }
        self.send_group(link);
        self.replenish(link);
    }

    fn answer(&mut self, link: LinkId, answers: DeliveryAnswers) {
        for (delivery, answer) in answers {
            let Some(delivery) = delivery else { continue };
            self.amqp.settle(link, delivery, outcome(answer));
        }
    }

    /// Ends a link whose messages are read for an order that the queue does not have any more, so that its client attaches it anew and
    /// sends again what is not answered. What does not fit is answered if it is the message that is wrong.
    pub(crate) fn check_order(&mut self, link: LinkId, misplaced: DeliveryAnswers) {
        let entity = match self.links.get(&link) {
            Some(EndpointLink::Sender(sender)) if sender.entity.topic.is_none() => sender.entity.clone(),
            _ => return self.answer(link, misplaced),
        };
        self.start(async move {
            let changed = entity.with_changed_order().await;
            move |connection_task: &mut ConnectionTask| match changed {
                None => connection_task.answer(link, misplaced),
                Some(_) if connection_task.open_sender(link).is_none() => {}
                Some(_) => {
                    let why = "the order of the queue has changed: attach again";
                    connection_task.detach(link, AmqpRefusal::new(condition::DETACH_FORCED, why));
                }
            }
        });
    }

    /// Takes the messages of a batch, all or none.
    fn take_batch(&mut self, link: LinkId, delivery: DeliveryNumber, settled: bool, payload: &Bytes) {
        let shared = self.shared.clone();
        let Some(sender) = self.open_sender(link) else { return };
        let (delivery, bytes) = ((!settled).then_some(delivery), payload.len());
        let messages = match shared.read_all(&sender.entity, BATCH, payload) {
            Ok(messages) => messages,
            Err(refusal) => return self.group(link, delivery, Err(refusal), 0),
        };
        sender.add_batch(MessageGroup { messages, deliveries: vec![delivery], bytes, is_batch: true });
        self.sending_bytes += bytes;
        self.send_group(link);
    }

    /// Lets a sender go on, once it has used half of what it may send. What waits here counts against it.
    pub(crate) fn replenish(&mut self, link: LinkId) {
        let waiting = match self.links.get(&link) {
            Some(EndpointLink::Sender(sender)) if sender.is_leaving => return,
            Some(EndpointLink::Sender(sender)) => u32::try_from(sender.waiting()).unwrap_or(u32::MAX),
            _ => 0,
        };
        let credit = limits::SERVICE_BUS_SEND_CREDIT.saturating_sub(waiting);
        if self.amqp.credit(link) <= credit / 2 {
            self.amqp.grant(link, credit);
        }
    }
}

/// The messages of a batch.
fn batched(payload: &Bytes) -> Result<Vec<Bytes>, AmqpRefusal> {
    match Sections::parse(payload)?.body()? {
        MessageBody::Data(payloads) => Ok(payloads),
        _ => Err(AmqpRefusal::argument("a batch has data sections")),
    }
}

fn outcome(sent: Result<(), SendError>) -> DeliveryOutcome {
    match sent {
        Ok(()) => DeliveryOutcome::Accepted,
        Err(error) => DeliveryOutcome::Rejected(Some(AmqpRefusal::from(error).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::tests::peer;
    use crate::amqp::tests::peer::Performative;
    use crate::amqp::tests::peer::Role;
    use crate::amqp::tests::peer::Target;
    use crate::queue::QueueOptions;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::payload;
    use crate::service_bus::tests::bare::transfer;
    use crate::service_bus::tests::socketless;

    /// With what condition a link has ended, if it has.
    fn ended_for(frames: &[Performative]) -> Option<String> {
        frames.iter().find_map(|frame| match frame {
            Performative::Detach(detach) => Some(detach.error.as_ref()?.condition.to_string()),
            _ => None,
        })
    }

    fn is_disposition(frame: &Performative) -> bool {
        matches!(frame, Performative::Disposition(_))
    }

    #[tokio::test]
    async fn a_link_to_a_queue_whose_order_has_changed_ends_when_a_message_is_refused_by_it() {
        let (engine, _queue, mut connection_task) = socketless::connected().await;
        let sender = |handle| {
            let target = Some(Target { address: Some("q".into()), ..Target::default() });
            attach(peer::Attach { target, ..peer::attach(&format!("link-{handle}"), handle, Role::Sender) })
        };
        connection_task.hear(&[sender(0)]).await;
        let by_position = QueueOptions::by_position();
        engine.client().change_queue("q", by_position).await.unwrap();
        let unplaced = payload("x", Some("w"));
        connection_task.hear(&[transfer(0, 0, false, &unplaced)]).await;
        let heard = connection_task.written();
        assert_eq!(ended_for(&heard).as_deref(), Some(condition::DETACH_FORCED));
        assert!(!heard.iter().any(is_disposition), "its client sends it again: {heard:?}");
        connection_task.hear(&[sender(1)]).await;
        connection_task.hear(&[transfer(1, 1, false, &unplaced)]).await;
        let heard = connection_task.written();
        assert_eq!(ended_for(&heard), None, "the message is wrong, and not the link");
        assert!(heard.iter().any(is_disposition), "it is refused");
    }
}
