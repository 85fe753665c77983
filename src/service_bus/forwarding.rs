//! Entities that forward: what waits in one is sent to another and completed there, both in one commit.
//!
//! As in Service Bus, a message is a new one where it goes, with a number of its own, and goes on four times at most.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use crate::clock::Timestamp;
use crate::engine::Delivery;
use crate::engine::DeliveryId;
use crate::engine::Outcome;
use crate::engine::Queue;
use crate::engine::ReceivedMessage;
use crate::engine::Transaction;
use crate::header::DEAD_LETTER_SOURCE;
use crate::header::FIRST_NUMBER;
use crate::header::FORWARDED;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::service_bus::address::EntityPath;
use crate::service_bus::description::Description;
use crate::service_bus::description::EntityStatus;
use crate::service_bus::entity::Entity;
use crate::service_bus::forward_each::REFUSED;
use crate::service_bus::forward_each::Stay;
use crate::service_bus::forward_each::ToldOnce;
use crate::service_bus::forward_each::forward_each;
use crate::service_bus::incoming::placed_anew;
use crate::service_bus::published::published;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::slashed::entity_name;
use crate::service_bus::slashed::subscription_path;
use crate::task::boxed;

/// Why a message that went on too often is a dead letter, in the words of Service Bus.
const TOO_OFTEN: &str = "MaxTransferHopCountExceeded";

/// What of an entity goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ForwardingSource {
    Messages,
    DeadLetters,
}

/// Who goes where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ForwardingRoute {
    queue: QueueName,
    source: ForwardingSource,
    target: String,
}

/// Forwards for every entity that asks for it, until it is stopped.
pub(crate) async fn forward(shared: Arc<EndpointState>, stopping: CancellationToken) {
    let (mut changes, tracker) = (shared.descriptions.changes(), TaskTracker::new());
    let mut running: HashMap<ForwardingRoute, DropGuard> = HashMap::new();
    loop {
        changes.mark_unchanged();
        let wanted: Vec<ForwardingRoute> = routes(&shared);
        running.retain(|route, _| wanted.contains(route));
        for route in wanted {
            let (shared, stop) = (shared.clone(), stopping.child_token());
            let forwarder =
                Forwarder { shared, route: route.clone(), stop: stop.clone(), told: Default::default() };
            running.entry(route).or_insert_with(|| {
                tracker.spawn(boxed(forwarder.run()));
                stop.drop_guard()
            });
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { break },
            () = stopping.cancelled() => break,
        }
    }
    running.clear();
    tracker.close();
    tracker.wait().await;
}

fn routes(shared: &EndpointState) -> Vec<ForwardingRoute> {
    let of = |(queue, description): (QueueName, Arc<Description>)| {
        let route = |source, target: &Option<String>| {
            Some(ForwardingRoute { queue: queue.clone(), source, target: target.clone()? })
        };
        let messages = route(ForwardingSource::Messages, &description.forward_to);
        [messages, route(ForwardingSource::DeadLetters, &description.forward_dead_letters_to)]
    };
    shared.descriptions.forwarding().into_iter().flat_map(of).flatten().collect()
}

/// Lets what is in one entity go on.
struct Forwarder {
    shared: Arc<EndpointState>,
    route: ForwardingRoute,
    stop: CancellationToken,
    told: ToldOnce,
}

impl Forwarder {
    async fn run(self) {
        let mut is_logged = false;
        while !self.stop.is_cancelled() {
            let forwarded = match self.route.source {
                ForwardingSource::Messages => self.forward_messages().await,
                ForwardingSource::DeadLetters => self.forward_dead_letters().await,
            };
            let Err(refusal) = forwarded else {
                is_logged = false;
                continue;
            };
            if !is_logged {
                let ForwardingRoute { queue, target, .. } = &self.route;
                tracing::warn!(%refusal, "{queue} cannot forward to {target} now; it is tried again");
            }
            is_logged = true;
            tokio::select! {
                slept = self.shared.client.sleep(limits::SERVICE_BUS_FORWARD_RETRY) => {
                    if slept.is_err() {
                        return;
                    }
                }
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// The queue, if it is the one whose description says that it forwards.
    async fn source(&self) -> Result<Queue, AmqpRefusal> {
        let queue = self.shared.client.queue(&self.route.queue)?;
        let description = self.shared.descriptions.of(queue.name(), (&queue.view().await?).into());
        let target = match self.route.source {
            ForwardingSource::Messages => &description.forward_to,
            ForwardingSource::DeadLetters => &description.forward_dead_letters_to,
        };
        match target.as_deref() == Some(&self.route.target) {
            true => Ok(queue),
            false => Err(AmqpRefusal::not_found(self.route.queue.as_str())),
        }
    }

    async fn target(&self) -> Result<Entity, AmqpRefusal> {
        let queue = self.route.target.clone();
        let target =
            self.shared.entity(&EntityPath { queue, is_dead_letters: false, is_transfer: false }).await?;
        self.shared.descriptions.check_status((target.name(), target.created_at), EntityStatus::may_send)?;
        Ok(target)
    }

    /// A message as it goes on.
    fn message(
        &self,
        target: &Entity,
        (number, mut message): (SequenceNumber, Message),
    ) -> Result<Message, Stay> {
        let properties = &mut message.headers.properties;
        let times = match properties.get(FORWARDED) {
            Some(PropertyValue::Integer(times)) => *times,
            _ => 0,
        };
        if times >= limits::SERVICE_BUS_FORWARDS_MAX {
            let refusal = format!("it was forwarded {times} times already");
            return Err(Stay::Never(TOO_OFTEN, AmqpRefusal::new(condition::NOT_ALLOWED, refusal)));
        }
        properties.insert(FORWARDED.to_owned(), PropertyValue::Integer(times + 1));
        let number = i64::try_from(number.get()).unwrap_or(i64::MAX);
        properties.entry(FIRST_NUMBER.to_owned()).or_insert(PropertyValue::Integer(number));
        let message = placed_anew(message, target.options.order);
        let message = message.map_err(|refusal| Stay::Never(REFUSED, refusal))?;
        let placed = self.shared.intake.place(target.name(), message);
        let message = placed.map_err(|misuse| Stay::Never(REFUSED, misuse.into()))?;
        if target.requires_session() && message.workflow_id.is_none() {
            let refusal = format!("{} requires sessions, and it has none", target.name());
            return Err(Stay::Never(REFUSED, AmqpRefusal::new(condition::NOT_ALLOWED, refusal)));
        }
        Ok(message)
    }

    fn add(
        &self,
        transaction: &mut Transaction,
        target: &Entity,
        message: (SequenceNumber, Message),
    ) -> Result<(), Stay> {
        let message = self.message(target, message)?;
        let added = match &target.topic {
            Some(topic) => published(message).map(|message| transaction.publish(topic, message)),
            None => transaction.send(target.name(), message),
        };
        added.map_err(|misuse| Stay::Never(REFUSED, misuse.into()))
    }

    async fn forward_messages(&self) -> Result<(), AmqpRefusal> {
        let queue = self.source().await?;
        let received = queue.receive_until(
            limits::SERVICE_BUS_FORWARD_BATCH,
            limits::RECEIVE_WAIT,
            self.stop.cancelled(),
        );
        let received = received.await?;
        // Only now: it may have waited for long, and what is left of a message's time would be too much.
        let now = self.shared.client.wall_now();
        let mut waiting: Vec<(DeliveryId, Message)> = received
            .into_iter()
            .map(|delivery| (delivery.message().sent_on(now), delivery))
            .map(|(message, delivery)| (delivery.keep(), message))
            .collect();
        waiting.sort_by_key(|(id, _)| id.sequence_number());
        let queue = &queue;
        let send = |messages| self.send(queue, messages);
        let give_back = |(id, _)| queue.settler().give_back(id);
        let end = |(id, _), reason: &'static str, refusal: AmqpRefusal| async move {
            let (reason, description) = (reason.to_owned(), refusal.description);
            let ended = queue.settler().end(id, Outcome::DeadLetter { reason, description }).await;
            if let Err(error) = ended {
                tracing::debug!(%error, "end what cannot be forwarded");
            }
        };
        forward_each(waiting, send, give_back, end).await
    }

    /// Sends messages on and completes them, all or none.
    async fn send(&self, queue: &Queue, messages: Vec<(DeliveryId, Message)>) -> Result<(), Stay> {
        let target = self.target().await.map_err(Stay::of)?;
        let mut transaction = Transaction::new(self.shared.client.clone());
        for (id, message) in messages {
            self.add(&mut transaction, &target, (id.sequence_number(), message))?;
            transaction.complete(queue.name(), id).map_err(|misuse| Stay::of(misuse.into()))?;
        }
        transaction.commit().await.map_err(Stay::of_transaction)
    }

    async fn forward_dead_letters(&self) -> Result<(), AmqpRefusal> {
        let queue = self.source().await?;
        let most = limits::SERVICE_BUS_FORWARD_BATCH;
        let deliveries =
            queue.receive_dead_letters_until(most, limits::RECEIVE_WAIT, self.stop.cancelled()).await?;
        let dead = |delivery: Delivery| {
            let message = of_dead_letter(queue.name(), delivery.message());
            (delivery.keep(), message)
        };
        let waiting: Vec<(DeliveryId, Message)> = deliveries.into_iter().map(dead).collect();
        let (queue, told) = (&queue, &self.told);
        let send = |messages| self.send(queue, messages);
        let give_back = |(id, _)| queue.settler().give_back(id);
        // It stays where it is. Its lock is left to run out, so that others are not kept back by it.
        let stay = |(id, _): (DeliveryId, Message), reason: &'static str, refusal: AmqpRefusal| async move {
            let number = id.sequence_number();
            if told.is_first(number) {
                tracing::warn!(%refusal, reason, "dead letter {number} of {} is not forwarded", queue.name());
            }
        };
        forward_each(waiting, send, give_back, stay).await
    }
}

/// A dead letter says why it is one and where it became one, and has all the time that its next entity gives.
fn of_dead_letter(queue: &QueueName, received: &ReceivedMessage) -> Message {
    let mut message = received.sent_on(Timestamp::default());
    let source = PropertyValue::Text(path_of(queue));
    message.headers.properties.insert(DEAD_LETTER_SOURCE.to_owned(), source);
    if let Some(why) = &received.dead_letter {
        let properties = &mut message.headers.properties;
        for (name, text) in
            [("DeadLetterReason", &why.reason), ("DeadLetterErrorDescription", &why.description)]
        {
            properties.insert(name.to_owned(), PropertyValue::Text(text.clone()));
        }
    }
    message
}

/// What clients call the queue, or the subscription whose queue it is.
fn path_of(queue: &QueueName) -> String {
    match queue.subscription() {
        Some((topic, name)) => subscription_path(&topic, &name),
        None => entity_name(queue.as_str()).into_owned(),
    }
}
