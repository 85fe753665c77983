//! Locks of messages that are gone once they are sent: they are kept as long as those wait for their client, or somebody else would
//! be sent them too.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;

use crate::amqp::LinkId;
use crate::id::QueueName;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::links::Receiver;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::shared::EndpointState;
use crate::token::LockToken;

/// How far locks were prolonged; nothing for those that could not be.
type RenewedLocks = BTreeMap<LockToken, Option<RenewedLock>>;

/// How far a lock was prolonged.
#[derive(Clone, Copy)]
struct RenewedLock {
    ends_at: Duration,
    lasts: Duration,
}

impl ClientHold {
    /// When half of its lock's time is over.
    fn half_over_at(&self) -> Duration {
        self.ends_at.saturating_sub(self.lasts / 2)
    }
}

impl Receiver {
    /// What waits for its client, and is gone once it is sent. The lock of a session is its client's to renew.
    fn waiting(&mut self) -> impl Iterator<Item = &mut ClientHold> {
        let keeps = self.deletes && self.session.is_none();
        self.backlog.holds_mut().chain(self.sent.iter_mut()).filter(move |_| keeps)
    }
}

impl ConnectionTask {
    /// Renews the locks of what waits for the client of a link when half of their time is over, but not before an instant, as
    /// long as something waits.
    pub(crate) fn keep_locks(&mut self, link: LinkId, not_before: Duration) {
        let (client, now) = (self.shared.client.clone(), self.shared.client.elapsed());
        let Some(receiver) = self.receiver(link).filter(|receiver| !receiver.keeps_locks) else { return };
        let locked = receiver.waiting().filter(|hold| hold.ends_at > now);
        let Some(first_due_at) = locked.map(|hold| hold.half_over_at()).min() else { return };
        receiver.keeps_locks = true;
        let (wakes_at, gone) = (first_due_at.max(not_before), receiver.gone.clone());
        self.wait_for(async move {
            let is_awake = tokio::select! {
                slept = client.sleep_until(wakes_at) => slept.is_ok(),
                () = gone.cancelled() => false,
            };
            move |connection_task: &mut ConnectionTask| {
                if is_awake {
                    connection_task.renew_waiting(link);
                }
            }
        });
    }

    fn renew_waiting(&mut self, link: LinkId) {
        let (shared, now) = (self.shared.clone(), self.shared.client.elapsed());
        let Some(receiver) = self.receiver(link) else { return };
        let is_due = |hold: &&mut ClientHold| hold.ends_at > now && hold.half_over_at() <= now;
        let due: BTreeSet<LockToken> =
            receiver.waiting().filter(is_due).map(|hold| hold.id.lock_token()).collect();
        let queue = receiver.entity.name().clone();
        self.wait_for(async move {
            let renewed = join_all(due.into_iter().map(|token| shared.renew(&queue, token))).await;
            move |connection_task: &mut ConnectionTask| {
                connection_task.renewed(link, &renewed.into_iter().collect())
            }
        });
    }

    fn renewed(&mut self, link: LinkId, renewed: &RenewedLocks) {
        let Some(receiver) = self.receiver(link) else { return };
        receiver.keeps_locks = false;
        for hold in receiver.waiting() {
            if let Some(Some(RenewedLock { ends_at, lasts })) = renewed.get(&hold.id.lock_token()) {
                (hold.ends_at, hold.lasts) = (*ends_at, *lasts);
            }
        }
        // After a pause always: a lock that ends soon, or could not be renewed, would be renewed again and again.
        self.keep_locks(link, self.shared.client.elapsed().saturating_add(limits::SERVICE_BUS_PAUSE));
    }

    /// What was fetched and has waited for so long that somebody else may have it by now. What is of a session is its client's to
    /// keep.
    pub(crate) fn expired_backlog(&mut self, link: LinkId) -> Vec<ClientHold> {
        let now = self.shared.client.elapsed();
        let receiver = self.receiver(link).filter(|receiver| receiver.session.is_none());
        receiver.map_or_else(Vec::new, |receiver| receiver.backlog.take_expired(now))
    }
}

impl EndpointState {
    async fn renew(&self, queue: &QueueName, token: LockToken) -> (LockToken, Option<RenewedLock>) {
        // Before it is asked for: it is not locked for longer by the time the answer is heard.
        let asked_at = self.client.elapsed();
        let renewed = async { Ok(self.settler(queue)?.renew_for(token).await?) }.await;
        let renewed =
            renewed.map(|(_, lasts)| RenewedLock { ends_at: asked_at.saturating_add(lasts), lasts });
        let told =
            |refusal: &AmqpRefusal| tracing::debug!(%refusal, "keep the lock of what waits for a client");
        (token, renewed.inspect_err(told).ok())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use futures_util::StreamExt;

    use super::*;
    use crate::amqp::tests::peer::Attach;
    use crate::amqp::tests::peer::Performative;
    use crate::clock::Timestamp;
    use crate::engine::Engine;
    use crate::engine::Queue;
    use crate::message::Message;
    use crate::queue::Order;
    use crate::queue::QueueOptions;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::body;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::deleting;
    use crate::service_bus::tests::bare::detach;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::bare::window;
    use crate::service_bus::tests::socketless;
    use crate::testing::ManualClock;

    /// Credit of a client whose session takes only so many transfers.
    fn narrow(received: u32, left: u32, transfers: u32) -> Performative {
        match credit(0, received, left) {
            Performative::Flow(flow) => Performative::Flow(window(flow, transfers)),
            other => other,
        }
    }

    fn only(connection_task: &mut ConnectionTask) -> &mut Receiver {
        let link = *connection_task.links.keys().next().unwrap();
        connection_task.receiver(link).unwrap()
    }

    /// A queue with messages, and a connection whose client receives and deletes.
    async fn stage(bodies: Vec<Vec<u8>>) -> (Engine, ManualClock, Queue, ConnectionTask) {
        stage_of(bodies, deleting(receiver(0, "q"))).await
    }

    /// The same with a client that asks for this link.
    async fn stage_of(bodies: Vec<Vec<u8>>, asked: Attach) -> (Engine, ManualClock, Queue, ConnectionTask) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000_000));
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let queue = socketless::unordered(engine.client()).await;
        for body in bodies {
            queue.send(Message::new(body)).await.unwrap();
        }
        let shared = socketless::endpoint(engine.client(), Arc::new(clock.clone())).await;
        let mut connection_task = socketless::opened(shared);
        connection_task.says(&[attach(asked)]);
        connection_task.until(|connection_task| connection_task.work.is_empty()).await;
        (engine, clock, queue, connection_task)
    }

    /// The same with a client whose session takes one of so many messages, `0` and so on.
    async fn waiting_stage(count: u8) -> (Engine, ManualClock, Queue, ConnectionTask) {
        let bodies = (0..count).map(|number| vec![b'0' + number]).collect();
        let (engine, clock, queue, mut connection_task) = stage(bodies).await;
        connection_task.says(&[narrow(0, u32::from(count), 1)]);
        connection_task.until(|connection_task| only(connection_task).sent.len() == usize::from(count)).await;
        (engine, clock, queue, connection_task)
    }

    #[tokio::test]
    async fn what_waits_for_the_window_of_a_client_longer_than_its_lock_comes_once() {
        let (engine, clock, queue, mut connection_task) = waiting_stage(3).await;
        let mut heard: Vec<String> = connection_task.written().iter().filter_map(body).collect();
        let half = QueueOptions::default().lock / 2;
        for _ in 0..4 {
            clock.advance(half + half / 5);
            let enough = engine.client().elapsed() + half;
            connection_task
                .until(|connection_task| only(connection_task).waiting().all(|hold| hold.ends_at > enough))
                .await;
            assert!(queue.receive(Duration::ZERO).await.unwrap().is_none(), "nobody else is sent it");
        }
        connection_task.says(&[narrow(1, 2, 100)]);
        heard.extend(connection_task.written().iter().filter_map(body));
        assert_eq!(heard, ["0", "1", "2"]);
        connection_task.until(|connection_task| only(connection_task).deletions == 0).await;
        assert_eq!(queue.view().await.unwrap().counts.stored(), 0);
    }

    #[tokio::test]
    async fn what_has_waited_longer_than_its_lock_is_not_sent() {
        for asked in [deleting(receiver(0, "q")), receiver(0, "q")] {
            let bodies = (0..5).map(|number| vec![b'0' + number; 900 * 1024]).collect();
            let (_engine, clock, queue, mut connection_task) = stage_of(bodies, asked).await;
            connection_task.says(&[narrow(0, 5, 100)]);
            connection_task
                .until(|connection_task| only(connection_task).backlog.holds_mut().count() == 2)
                .await;
            clock.advance(QueueOptions::default().lock);
            let mut of_another = Vec::new();
            for _ in 0..5 {
                of_another.push(queue.receive(Duration::ZERO).await.unwrap().expect("its lock has ended"));
            }
            let heard: Vec<u8> = connection_task.written().iter().filter_map(last_byte).collect();
            assert_eq!(heard, b"012", "what had left before, and nothing that somebody else has");
            assert!(only(&mut connection_task).backlog.is_empty());
        }
    }

    /// The last byte of a message that ends with a frame.
    fn last_byte(frame: &Performative) -> Option<u8> {
        match frame {
            Performative::Transfer(transfer, payload) if !transfer.more => payload.last().copied(),
            _ => None,
        }
    }

    #[tokio::test]
    async fn locks_are_renewed_when_half_of_what_they_last_is_over_although_the_queue_was_changed() {
        let (engine, clock, queue, mut connection_task) = waiting_stage(2).await;
        let (before, shorter) = (QueueOptions::default().lock, Duration::from_secs(10));
        let options = QueueOptions { order: Order::None, lock: shorter, ..QueueOptions::default() };
        engine.client().change_queue("q", options).await.unwrap();
        clock.advance(before / 2);
        connection_task
            .until(|connection_task| only(connection_task).waiting().all(|hold| hold.lasts == shorter))
            .await;
        let renewed_at = engine.client().elapsed();
        clock.advance(shorter / 4);
        for _ in 0..20 {
            queue.view().await.unwrap();
            let next = connection_task.work.next().now_or_never();
            assert!(next.is_none(), "nothing is renewed before half of it is over");
        }
        clock.advance(shorter / 4);
        connection_task
            .until(|connection_task| {
                only(connection_task).waiting().all(|hold| hold.ends_at > renewed_at + shorter)
            })
            .await;
    }

    #[tokio::test]
    async fn nobody_keeps_the_locks_of_a_link_that_is_gone() {
        let (_engine, _clock, _queue, mut connection_task) = waiting_stage(2).await;
        assert!(only(&mut connection_task).keeps_locks);
        connection_task.written();
        connection_task.says(&[detach(0)]);
        connection_task.settle_down().await;
        assert!(connection_task.links.is_empty());
    }

    #[tokio::test]
    async fn a_lock_lasts_from_when_its_renewal_was_asked_for() {
        let (_engine, clock, queue, connection_task) = stage(vec![b"x".to_vec()]).await;
        let token = queue.receive(Duration::ZERO).await.unwrap().unwrap().keep().lock_token();
        let shared = connection_task.shared.clone();
        let asked_at = shared.client.elapsed();
        let mut renewing = std::pin::pin!(shared.renew(queue.name(), token));
        let at_once = futures_util::poll!(&mut renewing);
        clock.advance(Duration::from_secs(5));
        let (_, renewed) = match at_once {
            std::task::Poll::Ready(renewed) => renewed,
            std::task::Poll::Pending => renewing.await,
        };
        let renewed = renewed.unwrap();
        assert_eq!(renewed.ends_at, asked_at + renewed.lasts);
    }
}
