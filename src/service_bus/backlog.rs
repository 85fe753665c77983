//! What was fetched for the links of a connection and has no room in its output yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::holds::ClientHold;

/// A message ready to be sent.
pub(crate) struct PackedMessage {
    pub(crate) hold: ClientHold,
    pub(crate) payload: Bytes,
}

/// A message that was looked at, ready to be shown, with its number.
pub(crate) type SeenMessage = (SequenceNumber, Bytes);

/// What may have to wait for room.
pub(crate) trait HasPayload {
    /// Its bytes as they go out.
    fn payload(&self) -> &Bytes;
}

impl HasPayload for PackedMessage {
    fn payload(&self) -> &Bytes {
        &self.payload
    }
}

impl HasPayload for SeenMessage {
    fn payload(&self) -> &Bytes {
        &self.1
    }
}

/// What was fetched for one link and has no room yet, in order.
pub(crate) struct Backlog<M: HasPayload = PackedMessage> {
    messages: VecDeque<M>,
    /// Bytes of the backlogs of all links of the connection.
    together: Arc<AtomicUsize>,
}

impl<M: HasPayload> Backlog<M> {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn front(&self) -> Option<&M> {
        self.messages.front()
    }

    pub(crate) fn pop_front(&mut self) -> Option<M> {
        let message = self.messages.pop_front()?;
        self.together.fetch_sub(message.payload().len(), Ordering::Relaxed);
        Some(message)
    }

    /// Adds what was fetched, and returns what is beyond that which a connection may keep.
    pub(crate) fn add(&mut self, fetched: Vec<M>) -> Vec<M> {
        let mut beyond = Vec::new();
        for message in fetched {
            let has_room = self.together.load(Ordering::Relaxed) < limits::SERVICE_BUS_BACKLOG_BYTES;
            if !has_room || !beyond.is_empty() {
                beyond.push(message);
                continue;
            }
            self.together.fetch_add(message.payload().len(), Ordering::Relaxed);
            self.messages.push_back(message);
        }
        beyond
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        while self.pop_front().is_some() {}
    }
}

impl Backlog {
    /// The messages, in order, as their client will hold them.
    pub(crate) fn holds_mut(&mut self) -> impl Iterator<Item = &mut ClientHold> {
        self.messages.iter_mut().map(|packed_message| &mut packed_message.hold)
    }

    /// Takes out everything.
    pub(crate) fn take_all(&mut self) -> Vec<ClientHold> {
        std::iter::from_fn(|| self.pop_front()).map(|packed_message| packed_message.hold).collect()
    }

    /// Takes out what is locked no longer at an instant.
    pub(crate) fn take_expired(&mut self, now: Duration) -> Vec<ClientHold> {
        let is_expired = |packed_message: &PackedMessage| packed_message.hold.ends_at <= now;
        if !self.messages.iter().any(is_expired) {
            return Vec::new();
        }
        let (expired, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.messages).into_iter().partition(is_expired);
        self.messages = kept.into();
        let bytes = expired.iter().map(|packed_message| packed_message.payload.len()).sum();
        self.together.fetch_sub(bytes, Ordering::Relaxed);
        expired.into_iter().map(|packed_message| packed_message.hold).collect()
    }
}

impl<M: HasPayload> Drop for Backlog<M> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// How much the backlogs of a connection have room for.
pub(crate) struct BacklogRoom {
    together: Arc<AtomicUsize>,
    /// Whether there was as much as may be, and not half of it has gone out since.
    is_full: bool,
    /// About how large a message is.
    message_bytes: usize,
}

impl Default for BacklogRoom {
    fn default() -> BacklogRoom {
        // As large as those of which one fetch brings all that it may, until it is known better.
        let message_bytes = limits::RECEIVE_BYTES_MAX / limits::SERVICE_BUS_FETCH_MAX;
        BacklogRoom { together: Arc::default(), is_full: false, message_bytes }
    }
}

impl BacklogRoom {
    /// The backlog of another link.
    pub(crate) fn backlog<M: HasPayload>(&self) -> Backlog<M> {
        Backlog { messages: VecDeque::new(), together: Arc::clone(&self.together) }
    }

    fn bytes(&self) -> usize {
        self.together.load(Ordering::Relaxed)
    }

    /// Whether nothing is fetched for now. Half of it has to go out before, or each message that goes out would have all links
    /// fetch, and give most of it back.
    pub(crate) fn is_full(&mut self) -> bool {
        let until = if self.is_full {
            limits::SERVICE_BUS_BACKLOG_BYTES / 2
        } else {
            limits::SERVICE_BUS_BACKLOG_BYTES
        };
        self.is_full = self.bytes() >= until;
        self.is_full
    }

    /// How many messages may be fetched for one of so many links, all of which may fetch at the same time.
    pub(crate) fn share(&self, links: usize) -> usize {
        let bytes = limits::SERVICE_BUS_BACKLOG_BYTES.saturating_sub(self.bytes()) / links.max(1);
        (bytes.max(limits::SERVICE_BUS_BACKLOG_SHARE) / self.message_bytes).max(1)
    }

    /// Learns how large messages are: at once that they are larger, and by and by that they are smaller.
    pub(crate) fn note<M: HasPayload>(&mut self, fetched: &[M]) {
        let bytes: usize = fetched.iter().map(|message| message.payload().len()).sum();
        if let Some(each) = bytes.checked_div(fetched.len()) {
            self.message_bytes = each.max(usize::midpoint(self.message_bytes, each)).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::tests::peer::Performative;
    use crate::message::Message;
    use crate::service_bus::browser::Browser;
    use crate::service_bus::connection_task::ConnectionTask;
    use crate::service_bus::holds::tests::hold;
    use crate::service_bus::links::EndpointLink;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::copying;
    use crate::service_bus::tests::bare::credit;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::socketless;

    const LINKS: u32 = 16;
    const MESSAGES: usize = 48;
    const MESSAGE_BYTES: usize = 1_000 * 1_024;

    /// How many links wait for messages of the engine.
    fn fetching(connection_task: &ConnectionTask) -> usize {
        let is_fetching = |link: &&EndpointLink| match link {
            EndpointLink::Receiver(receiver) => receiver.fetching.is_some(),
            _ => false,
        };
        connection_task.links.values().filter(is_fetching).count()
    }

    impl ConnectionTask {
        /// Waits until the client has been sent so many whole messages.
        async fn until_it_has_sent(&mut self, messages: usize) {
            let mut sent = 0;
            while sent < messages {
                self.until(|connection_task| !connection_task.amqp.output().is_empty()).await;
                let is_end =
                    |frame: &&Performative| matches!(frame, Performative::Transfer(part, _) if !part.more);
                sent += self.written().iter().filter(is_end).count();
            }
        }
    }

    #[tokio::test]
    async fn the_links_of_a_slow_client_keep_no_more_together_than_they_may_and_everything_comes() {
        let (_engine, queue, mut connection_task) = socketless::connected().await;
        for _ in 0..MESSAGES {
            queue.send(Message::new(vec![0; MESSAGE_BYTES])).await.unwrap();
        }
        let asked: Vec<Performative> =
            (0..LINKS).flat_map(|link| [attach(receiver(link, "q")), credit(link, 0, 100)]).collect();
        connection_task.says(&asked);
        // Three links have been brought as much as a fetch may bring, and the client takes nothing.
        let is_attached = |link: &EndpointLink| matches!(link, EndpointLink::Receiver(_));
        connection_task
            .until(|connection_task| {
                connection_task.links.values().all(is_attached)
                    && fetching(connection_task) <= LINKS as usize - 3
            })
            .await;
        let kept = connection_task.backlogs.bytes();
        assert!(kept < limits::SERVICE_BUS_BACKLOG_BYTES + 2 * MESSAGE_BYTES, "{kept} bytes");
        connection_task.until_it_has_sent(MESSAGES).await;
        assert_eq!(connection_task.backlogs.bytes(), 0);
    }

    #[tokio::test]
    async fn what_one_link_lets_go_is_room_for_those_before_it() {
        let (_engine, _queue, mut connection_task) = socketless::connected().await;
        connection_task.hear(&[attach(receiver(0, "q")), attach(receiver(1, "q"))]).await;
        let last = *connection_task.links.keys().max().expect("both are attached");
        // It has waited for longer than its lock.
        let packed_message =
            PackedMessage { hold: hold(0, 0), payload: vec![0; limits::SERVICE_BUS_BACKLOG_BYTES].into() };
        let kept = connection_task.receiver(last).expect("it receives").backlog.add(vec![packed_message]);
        assert!(kept.is_empty());
        connection_task.says(&[credit(0, 0, 1)]);
        assert_eq!(fetching(&connection_task), 0, "there is no room");
        connection_task.hungry.insert(last);
        connection_task.turn();
        assert_eq!(fetching(&connection_task), 1);
    }

    fn browsers(connection_task: &mut ConnectionTask) -> impl Iterator<Item = &mut Browser> {
        connection_task.links.values_mut().filter_map(|link| match link {
            EndpointLink::Browser(browser) => Some(browser),
            _ => None,
        })
    }

    #[tokio::test]
    async fn the_browsers_of_a_slow_client_keep_no_more_together_than_they_may_and_everything_is_shown() {
        const BROWSERS: u32 = 64;
        let (_engine, queue, mut connection_task) = socketless::connected().await;
        queue.send(Message::new(vec![0; MESSAGE_BYTES])).await.unwrap();
        let attached: Vec<Performative> =
            (0..BROWSERS).map(|link| attach(copying(receiver(link, "q")))).collect();
        connection_task.hear(&attached).await;
        connection_task.written();
        connection_task.says(&(0..BROWSERS).map(|link| credit(link, 0, 1)).collect::<Vec<_>>());
        connection_task
            .until(|connection_task| browsers(connection_task).all(|browser| !browser.is_looking))
            .await;
        let kept = connection_task.backlogs.bytes();
        assert!(kept < limits::SERVICE_BUS_BACKLOG_BYTES + 2 * MESSAGE_BYTES, "{kept} bytes");
        connection_task.until_it_has_sent(BROWSERS as usize).await;
        assert_eq!(connection_task.backlogs.bytes(), 0);
    }

    #[tokio::test]
    async fn what_a_browser_keeps_without_credit_is_room_for_others() {
        let (_engine, _queue, mut connection_task) = socketless::connected().await;
        connection_task.hear(&[attach(receiver(0, "q")), attach(copying(receiver(1, "q")))]).await;
        let seen = (SequenceNumber::new(7), vec![0; limits::SERVICE_BUS_BACKLOG_BYTES].into());
        let browser = browsers(&mut connection_task).next().expect("it is attached");
        assert!(browser.backlog.add(vec![seen]).is_empty());
        connection_task.says(&[credit(0, 0, 1)]);
        assert_eq!(fetching(&connection_task), 1);
        let browser = browsers(&mut connection_task).next().expect("it stays");
        assert_eq!(browser.next.get(), 7, "it looks again from there");
    }

    #[test]
    fn many_links_fetch_less_each_the_larger_messages_are() {
        let mut room = BacklogRoom::default();
        assert!(
            room.share(1) >= limits::SERVICE_BUS_FETCH_MAX,
            "one fetches as much as may be fetched at once"
        );
        assert_eq!(room.share(200), 2);
        room.message_bytes = 1_000;
        assert!(room.share(100) >= limits::SERVICE_BUS_FETCH_MAX, "of small ones they all do");
        room.together.store(limits::SERVICE_BUS_BACKLOG_BYTES, Ordering::Relaxed);
        assert!(room.is_full());
        room.together.store(limits::SERVICE_BUS_BACKLOG_BYTES / 2, Ordering::Relaxed);
        assert!(room.is_full(), "half of it has to go out");
        room.together.store(limits::SERVICE_BUS_BACKLOG_BYTES / 2 - 1, Ordering::Relaxed);
        assert!(!room.is_full());
    }
}
