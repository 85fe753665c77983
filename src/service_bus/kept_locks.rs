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
use crate::service_bus::links::PackedMessage;
use crate::service_bus::links::Receiver;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::shared::EndpointState;
use crate::token::LockToken;

/// Until when locks were prolonged, in the clock's elapsed time; nothing for those that could not be.
type RenewedLocks = BTreeMap<LockToken, Option<Duration>>;

impl Receiver {
    /// What waits for its client, and is gone once it is sent. The lock of a session is its client's to renew.
    fn waiting(&mut self) -> impl Iterator<Item = &mut ClientHold> {
        let keeps = self.deletes && self.session.is_none();
        let backlog = self.backlog.iter_mut().map(|packed_message| &mut packed_message.hold);
        backlog.chain(self.sent.iter_mut()).filter(move |_| keeps)
    }
}

impl ConnectionTask {
    /// Renews the locks of what waits for the client of a link when half of their time is over, but not before an instant, as
    /// long as something waits.
    pub(crate) fn keep_locks(&mut self, link: LinkId, not_before: Duration) {
        let (client, now) = (self.shared.client.clone(), self.shared.client.elapsed());
        let Some(receiver) = self.receiver(link).filter(|receiver| !receiver.keeps_locks) else { return };
        let half = receiver.entity.options.lock / 2;
        let ends = receiver.waiting().map(|hold| hold.ends_at).filter(|ends_at| *ends_at > now);
        let Some(first_end) = ends.min() else { return };
        receiver.keeps_locks = true;
        let wakes_at = first_end.saturating_sub(half).max(not_before);
        self.wait_for(async move {
            let is_awake = client.sleep_until(wakes_at).await.is_ok();
            move |connection_task: &mut ConnectionTask| {
                if is_awake {
                    connection_task.renew_waiting(link, half);
                }
            }
        });
    }

    fn renew_waiting(&mut self, link: LinkId, half: Duration) {
        let (shared, now) = (self.shared.clone(), self.shared.client.elapsed());
        let Some(receiver) = self.receiver(link) else { return };
        let is_due = |hold: &&mut ClientHold| hold.ends_at > now && hold.ends_at <= now.saturating_add(half);
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
            if let Some(Some(ends_at)) = renewed.get(&hold.id.lock_token()) {
                hold.ends_at = *ends_at;
            }
        }
        let has_failed = renewed.values().any(Option::is_none);
        let pause = if has_failed { limits::SERVICE_BUS_PAUSE } else { Duration::ZERO };
        self.keep_locks(link, self.shared.client.elapsed().saturating_add(pause));
    }

    /// What was fetched to be gone once it is sent, and has waited for so long that somebody else may have it by now.
    pub(crate) fn expired_backlog(&mut self, link: LinkId) -> Vec<ClientHold> {
        let now = self.shared.client.elapsed();
        let is_expired = |packed_message: &PackedMessage| packed_message.hold.ends_at <= now;
        let deletes = |receiver: &&mut Receiver| receiver.deletes && receiver.session.is_none();
        let Some(receiver) = self.receiver(link).filter(deletes) else { return Vec::new() };
        if !receiver.backlog.iter().any(is_expired) {
            return Vec::new();
        }
        let backlog = std::mem::take(&mut receiver.backlog).into_iter();
        let (expired, kept): (Vec<_>, Vec<_>) = backlog.partition(is_expired);
        receiver.backlog = kept.into();
        expired.into_iter().map(|packed_message| packed_message.hold).collect()
    }
}

impl EndpointState {
    async fn renew(&self, queue: &QueueName, token: LockToken) -> (LockToken, Option<Duration>) {
        let renewed = async { Ok(self.settler(queue)?.renew_for(token).await?) }.await;
        let ends_at = renewed.map(|(_, lasts)| self.client.elapsed().saturating_add(lasts));
        let told =
            |refusal: &AmqpRefusal| tracing::debug!(%refusal, "keep the lock of what waits for a client");
        (token, ends_at.inspect_err(told).ok())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::amqp::tests::peer::Performative;
    use crate::clock::Timestamp;
    use crate::engine::Engine;
    use crate::engine::Queue;
    use crate::message::Message;
    use crate::queue::QueueOptions;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::body;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::deleting;
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
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000_000));
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let queue = socketless::unordered(engine.client()).await;
        for body in bodies {
            queue.send(Message::new(body)).await.unwrap();
        }
        let shared = socketless::endpoint(engine.client(), Arc::new(clock.clone())).await;
        let mut connection_task = socketless::opened(shared);
        connection_task.says(&[attach(deleting(receiver(0, "q")))]);
        connection_task.until(|connection_task| connection_task.work.is_empty()).await;
        (engine, clock, queue, connection_task)
    }

    #[tokio::test]
    async fn what_waits_for_the_window_of_a_client_longer_than_its_lock_comes_once() {
        let bodies = ["0", "1", "2"].map(|body| body.as_bytes().to_vec()).to_vec();
        let (engine, clock, queue, mut connection_task) = stage(bodies).await;
        connection_task.says(&[narrow(0, 3, 1)]);
        connection_task.until(|connection_task| only(connection_task).sent.len() == 3).await;
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
        let (_engine, clock, _queue, mut connection_task) = stage(vec![vec![0; 900 * 1024]; 5]).await;
        connection_task.says(&[narrow(0, 5, 100)]);
        connection_task.until(|connection_task| only(connection_task).backlog.len() == 2).await;
        let link = *connection_task.links.keys().next().unwrap();
        assert!(connection_task.expired_backlog(link).is_empty());
        clock.advance(QueueOptions::default().lock);
        assert_eq!(connection_task.expired_backlog(link).len(), 2);
        assert!(only(&mut connection_task).backlog.is_empty());
    }
}
