//! What clients have been sent and have not settled: a connection has only so much of it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::amqp::DeliveryNumber;
use crate::amqp::DeliveryOutcome;
use crate::amqp::LinkId;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::holds::ClientHolds;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Receiver;
use crate::service_bus::refusal::AmqpRefusal;

impl ConnectionTask {
    /// How many more messages may be sent to the client before it settles some. Nothing beyond is fetched: its lock would run out here.
    pub(crate) fn unsettled_room(&mut self) -> usize {
        if self.amqp.unsettled_left() == 0 {
            self.settle_forgotten();
        }
        self.amqp.unsettled_left()
    }

    /// Settles, in place of the client, what it has had for much longer than its lock: it may never do that itself, and until its link
    /// ends there would be no room for anything else.
    fn settle_forgotten(&mut self) {
        let (shared, now) = (self.shared.clone(), self.shared.client.elapsed());
        if now < self.forgotten_looked_for_at.saturating_add(limits::SERVICE_BUS_PAUSE) {
            return;
        }
        self.forgotten_looked_for_at = now;
        let receivers = self.links.iter().filter_map(|(link, of)| match of {
            EndpointLink::Receiver(receiver) => Some((*link, receiver)),
            _ => None,
        });
        let forgotten: Vec<(LinkId, DeliveryNumber)> = receivers
            .flat_map(|(link, receiver)| receiver.forgotten(&shared.holds, now).map(move |of| (link, of)))
            .take(limits::SERVICE_BUS_FORGOTTEN_AT_ONCE)
            .collect();
        forgotten.into_iter().for_each(|(link, delivery)| self.settle_gone(link, delivery));
    }

    /// How many more messages of its session may be sent over a link. Where there is no room, it is made of what its client has settled by
    /// token, and so never over the link.
    pub(crate) fn session_room(&mut self, link: LinkId) -> usize {
        let shared = self.shared.clone();
        let Some(receiver) = self.receiver(link).filter(|receiver| receiver.session.is_some()) else {
            return usize::MAX;
        };
        let room = |receiver: &Receiver| {
            limits::ACCEPTED_AHEAD_MAX.saturating_sub(receiver.unsettled.len() + receiver.sent.len())
        };
        if room(receiver) > 0 {
            return room(receiver);
        }
        let is_gone = |hold: &ClientHold| shared.holds.get(&hold.queue, hold.token).is_none();
        let gone = receiver.unsettled.iter().filter(|(_, hold)| is_gone(hold)).map(|(delivery, _)| *delivery);
        let gone: BTreeSet<DeliveryNumber> = gone.collect();
        gone.into_iter().for_each(|delivery| self.settle_gone(link, delivery));
        self.receiver(link).map_or(0, |receiver| room(receiver))
    }

    /// Settles what its client can settle no more: it is settled by its token, or its lock is lost.
    fn settle_gone(&mut self, link: LinkId, delivery: DeliveryNumber) {
        if let Some(receiver) = self.receiver(link) {
            receiver.unsettled.remove(&delivery);
        }
        let lost = DeliveryOutcome::Rejected(Some(AmqpRefusal::lock_lost().into()));
        self.amqp.settle(link, delivery, lost);
    }

    /// Feeds the receivers of sessions again: what was settled by token may be what they wait for.
    pub(crate) fn feed_sessions(&mut self) {
        let sessions = self.links.iter().filter(|(_, of)| match of {
            EndpointLink::Receiver(receiver) => receiver.session.is_some(),
            _ => false,
        });
        self.hungry.extend(sessions.map(|(link, _)| *link));
    }
}

impl Receiver {
    /// Notes that a message was sent that the client is to settle.
    pub(crate) fn note_unsettled(&mut self, delivery: DeliveryNumber, hold: ClientHold, holds: &ClientHolds) {
        // Of what comes again after a transaction was rolled back, its client has the last delivery only.
        self.in_transactions.retain(|_, before| before.number() != hold.number());
        // The same holds for what was taken back from a session because one before it has failed. Of a session few are unsettled, and
        // without one many may be.
        if hold.is_of_session() {
            let taken_back = self.unsettled.extract_if(|_, before| before.number() == hold.number());
            taken_back
                .filter(|(_, before)| before.token != hold.token)
                .for_each(|(_, before)| holds.forget(before.token));
        }
        self.unsettled.insert(delivery, hold);
    }

    /// Deliveries whose locks ended, however often they were renewed, before the last that a lock lasts. Those of a session are few.
    fn forgotten<'a>(
        &'a self,
        holds: &'a ClientHolds,
        now: Duration,
    ) -> impl Iterator<Item = DeliveryNumber> + 'a {
        let unsettled = self.unsettled.iter().filter(|_| self.session.is_none());
        let is_long_over =
            move |hold: &ClientHold, ends_at: Duration| ends_at.saturating_add(hold.lasts) <= now;
        unsettled
            .filter(move |(_, hold)| is_long_over(hold, hold.ends_at))
            .filter(move |(_, hold)| {
                // What is not known any more was settled by its token, or has lost its lock.
                holds.get(&hold.queue, hold.token).is_none_or(|known| is_long_over(hold, known.ends_at))
            })
            .map(|(delivery, _)| *delivery)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::amqp::ConnectionOptions;
    use crate::amqp::tests::peer;
    use crate::amqp::tests::peer::Attach;
    use crate::amqp::tests::peer::Performative;
    use crate::amqp::tests::peer::Role;
    use crate::amqp::tests::peer::Target;
    use crate::clock::Timestamp;
    use crate::engine::Engine;
    use crate::engine::Queue;
    use crate::id::SequenceNumber;
    use crate::message::Message;
    use crate::queue::QueueOptions;
    use crate::service_bus::client_settlement::ClientSettlement;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::body;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::payload;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::bare::transfer;
    use crate::service_bus::tests::socketless;
    use crate::testing::ManualClock;

    /// A queue with two messages, and a connection whose client may have one delivery unsettled, and has one over these links.
    async fn stage(links: u32) -> (Engine, ManualClock, Queue, ConnectionTask) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000_000));
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let queue = socketless::unordered(engine.client()).await;
        for body in ["a", "b"] {
            queue.send(Message::new(body)).await.unwrap();
        }
        let shared = socketless::endpoint(engine.client(), Arc::new(clock.clone())).await;
        let options = ConnectionOptions { unsettled_max: 1, ..ConnectionOptions::default() };
        let mut connection_task = socketless::opened_with(shared, options);
        for link in 0..links {
            connection_task.hear(&[attach(receiver(link, "q"))]).await;
        }
        connection_task.says(&(0..links).map(|link| credit(link, 0, 10)).collect::<Vec<_>>());
        connection_task.until(|connection_task| receivers(connection_task).all(Receiver::has_fetched)).await;
        (engine, clock, queue, connection_task)
    }

    impl Receiver {
        fn has_fetched(&self) -> bool {
            self.is_paused && self.fetching.is_none()
        }
    }

    fn receivers(connection_task: &ConnectionTask) -> impl Iterator<Item = &Receiver> {
        connection_task.links.values().filter_map(|link| match link {
            EndpointLink::Receiver(receiver) => Some(&**receiver),
            _ => None,
        })
    }

    /// How often each message was handed out.
    async fn delivery_counts(queue: &Queue) -> Vec<u32> {
        let views = queue.peek(SequenceNumber::new(0), 10).await.unwrap();
        views.iter().map(|view| view.delivery_count).collect()
    }

    async fn assert_only_the_first_is_handed_out(
        (_engine, _clock, queue, mut connection_task): (Engine, ManualClock, Queue, ConnectionTask),
    ) {
        let heard: Vec<String> = connection_task.written().iter().filter_map(body).collect();
        assert_eq!(heard, ["a"]);
        assert_eq!(delivery_counts(&queue).await, [1, 0]);
    }

    #[tokio::test]
    async fn what_a_client_may_not_be_sent_before_it_settles_is_not_fetched() {
        assert_only_the_first_is_handed_out(stage(1).await).await;
    }

    #[tokio::test]
    async fn what_two_links_have_fetched_at_the_same_time_goes_back_uncounted_where_there_is_no_room() {
        assert_only_the_first_is_handed_out(stage(2).await).await;
    }

    #[tokio::test]
    async fn a_client_that_has_not_settled_as_much_as_it_may_can_still_send() {
        let (_engine, _clock, queue, mut connection_task) = stage(1).await;
        let target = Target { address: Some("q".into()), ..Target::default() };
        let sender = Attach { target: Some(target), ..peer::attach("sender", 1, Role::Sender) };
        connection_task.says(&[attach(sender)]);
        let is_sender = |link: &EndpointLink| matches!(link, EndpointLink::Sender(_));
        connection_task.until(|connection_task| connection_task.links.values().any(is_sender)).await;
        connection_task.written();
        connection_task.says(&[transfer(1, 0, false, &payload("c", None))]);
        connection_task.until(|connection_task| !connection_task.amqp.output().is_empty()).await;
        assert!(matches!(connection_task.written()[..], [Performative::Disposition(_)]));
        assert_eq!(queue.view().await.unwrap().counts.stored(), 3);
    }

    #[tokio::test]
    async fn a_session_goes_on_whose_client_settles_by_token_and_never_over_its_link() {
        let most = limits::ACCEPTED_AHEAD_MAX;
        let (_engine, mut connection_task) = socketless::in_session(most + 1).await;
        let bodies = |connection_task: &mut ConnectionTask| {
            connection_task.written().iter().filter_map(body).collect::<Vec<String>>()
        };
        assert_eq!(bodies(&mut connection_task).len(), most);
        let mut holds: Vec<ClientHold> =
            receivers(&connection_task).flat_map(|receiver| receiver.unsettled.values().cloned()).collect();
        let shared = connection_task.shared.clone();
        holds.sort_by_key(ClientHold::number);
        for hold in &holds {
            shared.settle(hold, ClientSettlement::Complete).await.unwrap();
        }
        connection_task.feed_sessions();
        connection_task.turn();
        connection_task.until(|connection_task| socketless::unsettled(connection_task) == 1).await;
        assert_eq!(bodies(&mut connection_task), [most.to_string()]);
    }

    #[tokio::test]
    async fn a_client_that_never_settles_is_sent_more_when_what_it_has_is_long_lost() {
        let (_engine, clock, queue, mut connection_task) = stage(1).await;
        connection_task.written();
        clock.advance(3 * QueueOptions::default().lock);
        let mut heard = Vec::new();
        while !heard.iter().any(|frames| matches!(frames, Performative::Transfer(..))) {
            connection_task.until(|connection_task| !connection_task.amqp.output().is_empty()).await;
            heard.extend(connection_task.written());
        }
        let Performative::Disposition(end) = &heard[0] else { panic!("{heard:?}") };
        assert!(end.settled && matches!(end.state, Some(DeliveryOutcome::Rejected(Some(_)))), "{end:?}");
        assert_eq!(heard.iter().filter_map(body).collect::<Vec<_>>(), ["a"]);
        assert_eq!(delivery_counts(&queue).await, [2, 0], "nothing was lost unseen");
        assert_eq!(socketless::unsettled(&connection_task), 1);
    }
}
