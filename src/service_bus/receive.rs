//! Messages as they were handed out, made ready for a client.

use std::sync::Arc;
use std::sync::Weak;

use crate::clock::whole_millis;
use crate::engine::Delivery;
use crate::engine::DeliveryId;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::backlog::PackedMessage;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::holds::LockUuid;
use crate::service_bus::link_window::LinkWindow;
use crate::service_bus::link_window::WindowPlace;
use crate::service_bus::links::PendingMessage;
use crate::service_bus::outgoing;
use crate::service_bus::outgoing::MessageStateWord;
use crate::service_bus::property::set_by_settling;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::shared::EndpointState;

/// How deliveries are handed to a client.
pub(crate) struct Handing {
    /// The session whose lock is theirs, if there is one.
    pub(crate) session: Option<Weak<HeldSession>>,
    /// Whether they are gone once they are sent.
    pub(crate) deletes: bool,
    /// Whether they had been set aside.
    pub(crate) state: MessageStateWord,
    /// The window of the link, if it has one.
    pub(crate) window: Option<Arc<LinkWindow>>,
}

/// What can be sent, and the message at which that ends because it does not fit into the link's window.
pub(crate) struct MessageBatch {
    pub(crate) packed_messages: Vec<PackedMessage>,
    pub(crate) held_back: Option<PendingMessage>,
}

impl EndpointState {
    /// Makes batches of deliveries, whose locks are kept.
    pub(crate) fn pack(
        &self,
        queue: &Queue,
        deliveries: Vec<Delivery>,
        Handing { session, deletes, state, window }: Handing,
    ) -> MessageBatch {
        let mut packed_messages = Vec::with_capacity(deliveries.len());
        let mut deliveries = deliveries.into_iter();
        let mut held_back = None;
        while let Some(delivery) = deliveries.next() {
            let (since, lasts) = delivery.lock_time();
            let (message, ends_at) = (delivery.sequence_number(), since.saturating_add(lasts));
            let times_lost = delivery.message().times_lock_lost();
            let place = enter(window.as_ref(), message, times_lost, whole_millis(ends_at));
            let in_window = match place {
                Ok(place) => place,
                Err(held) => {
                    held_back = Some(held);
                    let rest: Vec<Delivery> = [delivery].into_iter().chain(deliveries).collect();
                    give_back_deliveries(queue, rest.into_iter().map(Delivery::keep));
                    break;
                }
            };
            let token = LockUuid::of(delivery.id());
            let mut message = outgoing::EncodedMessage::handed(delivery.message());
            message.state = state;
            message.locked_until = (!deletes).then_some(delivery.locked_until());
            message.lock_token = (!deletes).then_some(token);
            let (payload, expiry) = (message.encode(), message.expiry());
            let set_before = set_by_settling(&delivery.message().headers.properties);
            let is_dead_letter = delivery.message().dead_letter.is_some();
            let (queue, id) = (queue.name().clone(), delivery.keep());
            let hold = ClientHold {
                queue,
                token,
                id,
                is_dead_letter,
                session: session.clone(),
                ends_at,
                lasts,
                expiry,
                in_window,
                set_before,
            };
            packed_messages.push(PackedMessage { hold, payload });
        }
        self.note_holds(&packed_messages, deletes);
        MessageBatch { packed_messages, held_back }
    }

    /// What is deleted is held by nobody outside.
    fn note_holds(&self, packed_messages: &[PackedMessage], deletes: bool) {
        if !deletes {
            self.holds.add(
                packed_messages.iter().map(|packed_message| packed_message.hold.clone()),
                self.client.elapsed(),
            );
        }
    }

    /// Gives a message back as if it had not been handed out. Whatever is asked of the engine later finds it so.
    pub(crate) fn give_back(&self, hold: &ClientHold) {
        self.holds.forget(hold.token);
        if let Some(place) = &hold.in_window {
            place.take_back();
        }
        if let Ok(settler) = self.settler(&hold.queue) {
            settler.give_back(hold.id);
        }
    }

    /// Gives messages back that were handed out in this order: the last first, so that none waits behind one that was given back
    /// before it.
    pub(crate) fn give_back_all<'a, H>(&self, holds: H)
    where
        H: IntoIterator<Item = &'a ClientHold>,
        H::IntoIter: DoubleEndedIterator,
    {
        holds.into_iter().rev().for_each(|hold| self.give_back(hold));
    }

    /// Fails a message whose client has left without a word.
    pub(crate) fn break_off(&self, hold: &ClientHold) {
        self.holds.forget(hold.token);
        if let Ok(settler) = self.settler(&hold.queue) {
            settler.break_off(hold.id, "the connection broke off before it was settled");
        }
    }

    /// Deletes what is on its way to a client that settles nothing: all that can be, although the first refusal is told.
    pub(crate) async fn delete(&self, holds: &[ClientHold]) -> Result<(), AmqpRefusal> {
        let Some(queue) = holds.first().map(|hold| &hold.queue) else { return Ok(()) };
        let (settler, mut done) = (self.settler(queue)?, Ok(()));
        let messages: Vec<DeliveryId> = holds.iter().map(|hold| hold.id).collect();
        for messages in messages.chunks(limits::COMPLETE_ALL_MAX) {
            let refused = match settler.complete_all(messages).await {
                Ok(answers) => answers.into_iter().find_map(Result::err).map(AmqpRefusal::from),
                Err(error) => Some(AmqpRefusal::from(error)),
            };
            done = done.and(refused.map_or(Ok(()), Err));
        }
        done
    }
}

/// Gives deliveries back that were handed out in this order, the last first for the same reason.
pub(crate) fn give_back_deliveries(queue: &Queue, deliveries: impl DoubleEndedIterator<Item = DeliveryId>) {
    let settler = queue.settler();
    deliveries.rev().for_each(|delivery| settler.give_back(delivery));
}

/// A place in the window of a link, if the link has one and the message fits into it.
fn enter(
    window: Option<&Arc<LinkWindow>>,
    message: SequenceNumber,
    times_lost: usize,
    until_ms: u64,
) -> Result<Option<WindowPlace>, PendingMessage> {
    let Some(window) = window else { return Ok(None) };
    let place = window.enter(message, times_lost, until_ms);
    place.map(Some).ok_or(PendingMessage { message, times_lost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::tests::peer::ClosingFrame;
    use crate::amqp::tests::peer::Performative;
    use crate::clock::Timestamp;
    use crate::engine::Engine;
    use crate::message::Message;
    use crate::service_bus::connection_task::ConnectionTask;
    use crate::service_bus::links::EndpointLink;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::deleting;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::socketless;
    use crate::testing::ManualClock;

    /// More than are deleted with one request.
    const MANY: usize = limits::COMPLETE_ALL_MAX + 100;

    async fn stage() -> (Engine, ManualClock, Queue, Arc<EndpointState>) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000_000));
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let queue = socketless::unordered(engine.client()).await;
        queue.send_batch((0..MANY - 100).map(|_| Message::new("x"))).await.unwrap();
        queue.send_batch((0..100).map(|_| Message::new("x"))).await.unwrap();
        let shared = socketless::endpoint(engine.client(), Arc::new(clock.clone())).await;
        (engine, clock, queue, shared)
    }

    /// Hands out messages to a client.
    async fn hand_out(shared: &EndpointState, queue: &Queue, count: usize, deletes: bool) -> Vec<ClientHold> {
        let mut holds = Vec::new();
        while holds.len() < count {
            let most = (count - holds.len()).min(limits::SERVICE_BUS_FETCH_MAX);
            let deliveries =
                queue.receive_until(most, std::time::Duration::ZERO, std::future::pending()).await.unwrap();
            let handing = Handing { session: None, deletes, state: MessageStateWord::Active, window: None };
            let packed = shared.pack(queue, deliveries, handing).packed_messages;
            holds.extend(packed.into_iter().map(|packed_message| packed_message.hold));
        }
        holds
    }

    #[tokio::test]
    async fn all_that_was_sent_is_deleted_although_the_first_is_refused() {
        let (_engine, _clock, queue, shared) = stage().await;
        let holds = hand_out(&shared, &queue, MANY, true).await;
        shared.give_back(&holds[0]);
        let refusal = shared.delete(&holds).await.unwrap_err();
        assert_eq!(refusal.condition, crate::service_bus::refusal::condition::LOCK_LOST);
        assert_eq!(queue.view().await.unwrap().counts.stored(), 1);
    }

    #[tokio::test]
    async fn a_connection_is_closed_when_all_that_it_was_sent_is_deleted() {
        let (_engine, _clock, queue, shared) = stage().await;
        let mut connection_task = socketless::opened(shared);
        connection_task.says(&[attach(deleting(receiver(0, "q"))), credit(0, 0, MANY as u32)]);
        let has_all = |connection_task: &mut ConnectionTask| {
            connection_task.links.values().any(|link| match link {
                EndpointLink::Receiver(receiver) => receiver.sent.len() == MANY,
                _ => false,
            })
        };
        connection_task.until(has_all).await;
        connection_task.says(&[Performative::Close(ClosingFrame::default())]);
        connection_task.written();
        connection_task.until(|connection_task| connection_task.amqp.is_finished()).await;
        drop(connection_task);
        assert_eq!(queue.view().await.unwrap().counts.stored(), 0);
    }

    #[tokio::test]
    async fn a_lock_is_known_by_its_token_although_the_wall_clock_is_set() {
        let (_engine, clock, queue, shared) = stage().await;
        let holds = hand_out(&shared, &queue, limits::SERVICE_BUS_HOLDS_SWEPT_FROM, false).await;
        clock.step(Timestamp::from_millis(9_000_000_000));
        hand_out(&shared, &queue, 1, false).await;
        assert!(shared.holds.get(queue.name(), holds[0].token).is_some());
    }
}
