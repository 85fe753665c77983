//! Messages that go out: fetched when a client has given credit, never before, and sent in the order in which they were
//! handed out.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::amqp::DeliveryNumber;
use crate::amqp::LinkId;
use crate::amqp::Unsent;
use crate::engine::MessageStatus;
use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::backlog::PackedMessage;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Fetching;
use crate::service_bus::links::PendingMessage;
use crate::service_bus::outgoing::MessageStateWord;
use crate::service_bus::receive::Handing;
use crate::service_bus::receive::MessageBatch;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

impl ConnectionTask {
    /// Sends answers that wait, then fetches messages for every receiver that has credit. Those for which there is no room stay
    /// hungry.
    pub(crate) fn feed_receivers(&mut self) {
        if self.amqp.has_room() && !self.is_closing && !self.is_write_closed {
            self.rewind_browsers();
            let is_for_replies =
                |link: &LinkId| matches!(self.links.get(link), Some(EndpointLink::Replies(_)));
            let (replies, receivers): (Vec<LinkId>, Vec<LinkId>) =
                std::mem::take(&mut self.hungry).into_iter().partition(is_for_replies);
            replies.into_iter().for_each(|link| self.send_replies(link));
            // Of all of them before any fetches: what a later one lets go is room for an earlier one.
            receivers.iter().for_each(|link| self.send_backlog(*link));
            receivers.into_iter().for_each(|link| self.feed(link));
        }
    }

    fn feed(&mut self, link: LinkId) {
        let credit = self.amqp.credit(link) as usize;
        let has_room = self.amqp.has_room() && !self.backlogs.is_full();
        let (share, unsettled_room) = (self.backlogs.share(self.links.len()), self.unsettled_room());
        let Some(receiver) = self.receiver(link).filter(|receiver| !receiver.is_leaving) else { return };
        if let Some(fetching) = &receiver.fetching {
            // What it has brought by then is sent, or goes back before anything else is fetched.
            if receiver.drains || fetching.max > credit {
                receiver.hurry();
            }
            return;
        }
        if receiver.drains && credit == 0 {
            return self.finish_draining(link);
        }
        if !receiver.backlog.is_empty() || !has_room {
            self.hungry.insert(link);
            return;
        }
        let session_room = self.session_room(link);
        let Some(receiver) = self.receiver(link) else { return };
        let mut max = credit.min(limits::SERVICE_BUS_FETCH_MAX).min(share).min(session_room);
        let may_be_settled = receiver.deletes || unsettled_room > 0;
        if !receiver.deletes {
            max = max.min(unsettled_room);
        }
        if let Some(window) = &receiver.window {
            max = max.min(window.room(credit));
        }
        if !receiver.fits() {
            max = 0;
        }
        // What locks and windows hold back is not there for a client that drains: it settles only afterwards.
        match max {
            // A drain that was not looked into goes on after the pause.
            _ if receiver.is_unasked => {}
            _ if receiver.is_paused && receiver.drains => self.finish_draining(link),
            _ if receiver.is_paused => {}
            0 if receiver.drains => self.finish_draining(link),
            // What is settled by token may be settled over another connection.
            0 if credit > 0 && (!may_be_settled || session_room == 0) => {
                self.pause(link, limits::SERVICE_BUS_PAUSE);
            }
            0 if credit > 0 => self.wait_for_room(link),
            0 => receiver.window.iter().for_each(|window| window.note_waiting(false)),
            _ => self.fetch(link, max),
        }
    }

    /// Feeds a receiver again when there may be room in its window, or when somebody else has the message that does not
    /// fit into it.
    fn wait_for_room(&mut self, link: LinkId) {
        let shared = self.shared.clone();
        if let Some(window) = self.receiver(link).and_then(|receiver| receiver.window.as_ref()) {
            window.note_waiting(true);
        }
        let Some(receiver) = self.receiver(link).filter(|receiver| !receiver.is_waiting_for_room) else {
            return;
        };
        let Some(window) = receiver.window.clone() else { return };
        receiver.is_waiting_for_room = true;
        let (entity, held_back) = (receiver.entity.clone(), receiver.held_back);
        self.wait_for(async move {
            let look_at = shared.client.elapsed() + limits::SERVICE_BUS_PAUSE;
            let wakes_at = window.wakes_at_ms().map(Duration::from_millis);
            let until = match held_back {
                Some(_) => wakes_at.map_or(look_at, |at| at.min(look_at)),
                None => wakes_at.unwrap_or(look_at),
            };
            tokio::select! {
                _ = shared.client.sleep_until(until) => {}
                () = window.activity() => {}
            }
            let is_gone = match held_back {
                Some(held) => !is_there(&entity, held.message).await,
                None => false,
            };
            move |connection_task: &mut ConnectionTask| {
                connection_task.look_for_room(link, held_back.filter(|_| is_gone))
            }
        });
    }

    fn look_for_room(&mut self, link: LinkId, gone: Option<PendingMessage>) {
        self.hungry.insert(link);
        let Some(receiver) = self.receiver(link) else { return };
        receiver.is_waiting_for_room = false;
        if gone.is_some() && receiver.held_back == gone {
            receiver.held_back = None;
        }
    }

    fn finish_draining(&mut self, link: LinkId) {
        if let Some(receiver) = self.receiver(link) {
            receiver.drains = false;
            self.amqp.drained(link);
        }
    }

    fn fetch(&mut self, link: LinkId, max: usize) {
        let shared = self.shared.clone();
        let Some(receiver) = self.receiver(link) else { return };
        let (entity, session) = (receiver.entity.clone(), receiver.session.clone());
        let handing = Handing {
            session: session.as_ref().map(Arc::downgrade),
            deletes: receiver.deletes,
            state: MessageStateWord::Active,
            window: receiver.window.clone(),
        };
        receiver.held_back = None;
        if let Some(window) = &receiver.window {
            window.note_waiting(false);
        }
        let (hurry, is_for_drain) = (CancellationToken::new(), receiver.drains);
        receiver.fetching = Some(Fetching { hurry: hurry.clone(), max, is_for_drain });
        let wait = if is_for_drain { Duration::ZERO } else { limits::RECEIVE_WAIT };
        self.wait_for(async move {
            let fetched = fetch(&shared, &entity, session.as_deref(), handing, (max, wait), &hurry).await;
            // Before anybody hears of it: who holds a session only by fetching for it keeps it from the next.
            drop(session);
            move |connection_task: &mut ConnectionTask| connection_task.fetched(link, fetched)
        });
    }

    fn fetched(&mut self, link: LinkId, fetched: Result<MessageBatch, ReceiveError>) {
        let MessageBatch { packed_messages, held_back } = match fetched {
            Ok(packed) => packed,
            Err(error) => return self.fetch_failed(link, error),
        };
        let is_write_closed = self.is_write_closed;
        self.backlogs.note(&packed_messages);
        let Some(receiver) = self.receiver(link) else {
            let holds = packed_messages.iter().map(|packed_message| &packed_message.hold);
            return self.shared.give_back_all(holds);
        };
        let was_for_drain = receiver.fetching.take().is_some_and(|fetching| fetching.is_for_drain);
        if receiver.is_leaving || is_write_closed {
            return self.give_back(
                link,
                packed_messages.into_iter().map(|packed_message| packed_message.hold).collect(),
            );
        }
        let is_all = was_for_drain && receiver.drains && packed_messages.is_empty();
        let beyond = receiver.backlog.add(packed_messages);
        // What is beyond comes before what was held back, which is met again behind it.
        receiver.held_back = held_back.filter(|_| beyond.is_empty());
        self.give_back(link, beyond.into_iter().map(|packed_message| packed_message.hold).collect());
        self.hungry.insert(link);
        self.send_backlog(link);
        self.keep_locks(link, Duration::ZERO);
        if is_all {
            self.finish_draining(link);
        }
    }

    fn fetch_failed(&mut self, link: LinkId, error: ReceiveError) {
        let Some(receiver) = self.receiver(link) else { return };
        receiver.fetching = None;
        let is_unasked =
            matches!(error, ReceiveError::Unavailable(Unavailable::NotOwner | Unavailable::Busy));
        let refusal = AmqpRefusal::from(error);
        tracing::debug!(%refusal, "fetch for a receiver");
        match refusal.condition {
            // As many are handed out as may be, and they will be fewer; or no node has the partition at the moment.
            condition::SERVER_BUSY => {
                receiver.is_unasked = is_unasked;
                self.pause(link, limits::SERVICE_BUS_PAUSE);
            }
            // What it was attached to was deleted.
            condition::NOT_FOUND | condition::SESSION_LOCK_LOST => self.detach(link, refusal),
            _ => self.detach(link, AmqpRefusal::new(condition::DETACH_FORCED, refusal.to_string())),
        }
    }

    /// Fetches nothing for a receiver for a while.
    fn pause(&mut self, link: LinkId, lasts: Duration) {
        let Some(receiver) = self.receiver(link) else { return };
        receiver.is_paused = true;
        receiver.pauses += 1;
        let pause = receiver.pauses;
        self.hungry.insert(link);
        let client = self.shared.client.clone();
        self.wait_for(async move {
            let _ = client.sleep(lasts).await;
            move |connection_task: &mut ConnectionTask| {
                // One that was ended early must not end the next, before which the client has longer.
                if connection_task.receiver(link).is_some_and(|receiver| receiver.pauses == pause) {
                    connection_task.go_on(link);
                }
            }
        });
    }

    fn go_on(&mut self, link: LinkId) {
        let Some(receiver) = self.receiver(link) else { return };
        (receiver.is_paused, receiver.is_unasked) = (false, false);
        match receiver.too_large.take() {
            Some(refusal) => self.detach(link, refusal),
            None => drop(self.hungry.insert(link)),
        }
    }

    /// Notes that the client has settled something, which may be what its receiver waits for.
    pub(crate) fn note_settled(&mut self, link: LinkId) {
        self.hungry.insert(link);
        let Some(receiver) = self.receiver(link).filter(|receiver| receiver.is_paused) else { return };
        if receiver.too_large.is_none() || receiver.unsettled.is_empty() {
            self.go_on(link);
        }
    }

    /// Sends what was fetched, as far as there is room.
    fn send_backlog(&mut self, link: LinkId) {
        let expired = self.expired_backlog(link);
        self.give_back(link, expired);
        while let Some(outgoing) = self.receiver(link).and_then(|receiver| receiver.next_outgoing()) {
            match self.amqp.send(link, outgoing) {
                Ok(delivery) => self.note_sent(link, delivery),
                // Others have fetched at the same time.
                Err(Unsent::TooManyUnsettled) => {
                    self.give_back_backlog(link);
                    match self.receiver(link).is_some_and(|receiver| receiver.drains) {
                        true => self.finish_draining(link),
                        false => self.pause(link, limits::SERVICE_BUS_PAUSE),
                    }
                }
                Err(Unsent::NoRoom) => return,
                Err(Unsent::TooLarge) => return self.stop_at_too_large(link),
                // The client has taken its credit back.
                Err(Unsent::NoCredit | Unsent::NoLink) => self.give_back_backlog(link),
            }
        }
    }

    /// Notes that the next message was sent.
    fn note_sent(&mut self, link: LinkId, delivery: DeliveryNumber) {
        let sent = self.receiver(link).and_then(|receiver| receiver.backlog.pop_front());
        let Some(PackedMessage { hold, .. }) = sent else { return };
        let shared = self.shared.clone();
        shared.meters.too_large.forget(&hold.queue, hold.number());
        shared.meters.note_delivered(1);
        let Some(receiver) = self.receiver(link) else { return };
        match receiver.deletes {
            true => {
                receiver.sent.push(hold);
                self.deleting.insert(link);
            }
            false => receiver.note_unsettled(delivery, hold, &shared.holds),
        }
    }

    /// Gives back everything that was fetched and not sent.
    pub(crate) fn give_back_backlog(&mut self, link: LinkId) {
        let holds = self.receiver(link).map_or_else(Vec::new, |receiver| receiver.backlog.take_all());
        self.give_back(link, holds);
    }

    /// The next message is larger than the client takes. Nothing behind it is sent: that would break the order. The
    /// client is told when it has settled what it has, which it could not do any more afterwards.
    fn stop_at_too_large(&mut self, link: LinkId) {
        let bytes_max = self.amqp.message_bytes_max(link);
        let Some(receiver) = self.receiver(link) else { return };
        let Some(packed_message) = receiver.backlog.front() else { return };
        let (bytes, number) = (packed_message.payload.len(), packed_message.hold.number());
        let refusal = AmqpRefusal::new(
            condition::SIZE_EXCEEDED,
            format!(
                "message {number} of queue {:?} has {bytes} bytes, and this receiver takes at most {bytes_max} bytes; nothing \
                 behind it is sent before it: receive it with a larger limit, or dead-letter it",
                packed_message.hold.queue.as_str()
            ),
        );
        let (queue, is_dead) = (packed_message.hold.queue.clone(), packed_message.hold.is_dead_letter);
        let shared = &self.shared;
        let told = (is_dead, shared.clock.now());
        shared.meters.too_large.tell(&queue, number, (bytes as u64, bytes_max), told);
        self.give_back_backlog(link);
        let Some(receiver) = self.receiver(link) else { return };
        match receiver.session.is_some() && !receiver.unsettled.is_empty() {
            true => {
                receiver.too_large = Some(refusal);
                self.pause(link, limits::SERVICE_BUS_TOO_LARGE_TIMEOUT);
            }
            false => self.detach(link, refusal),
        }
    }

    /// Deletes what receivers that settle nothing have been sent, as far as it is on its way.
    pub(crate) fn delete_sent(&mut self) {
        let written_to = self.bytes_given + self.amqp.output().len() as u64;
        for link in std::mem::take(&mut self.deleting) {
            let unsent = self.amqp.unsent(link).len();
            let bytes_written = self.bytes_written;
            let Some(receiver) = self.receiver(link) else { continue };
            let holds = receiver.sent.take_out(unsent, written_to, bytes_written);
            if !receiver.sent.is_empty() {
                self.deleting.insert(link);
            }
            if !holds.is_empty() {
                self.hungry.insert(link);
                self.delete(link, holds);
            }
        }
    }

    /// Deletes messages that a client has got over a link, whose end waits for it.
    pub(crate) fn delete(&mut self, link: LinkId, holds: Vec<ClientHold>) {
        let Some(deletions) = self.deletions(link).filter(|_| !holds.is_empty()) else { return };
        *deletions += 1;
        let shared = self.shared.clone();
        self.start(async move {
            if let Err(refusal) = shared.delete(&holds).await {
                tracing::warn!(%refusal, "failed to delete a message that was sent; it may be sent again");
            }
            move |connection_task: &mut ConnectionTask| {
                if let Some(deletions) = connection_task.deletions(link) {
                    *deletions -= 1;
                }
            }
        });
    }

    fn deletions(&mut self, link: LinkId) -> Option<&mut usize> {
        match self.links.get_mut(&link) {
            Some(EndpointLink::Receiver(receiver)) => Some(&mut receiver.deletions),
            Some(EndpointLink::Replies(replies)) => Some(&mut replies.deletions),
            _ => None,
        }
    }
}

/// Asks the engine, or the dead-letter queue, for messages.
async fn fetch(
    shared: &EndpointState,
    entity: &Entity,
    session: Option<&HeldSession>,
    handing: Handing,
    (max, wait): (usize, Duration),
    hurry: &CancellationToken,
) -> Result<MessageBatch, ReceiveError> {
    let queue = &entity.queue;
    if entity.is_transfer {
        let _ = tokio::time::timeout(wait, hurry.cancelled()).await;
        return Ok(MessageBatch { packed_messages: Vec::new(), held_back: None });
    }
    let deliveries = match session {
        _ if entity.is_dead_letters => queue.receive_dead_letters_until(max, wait, hurry.cancelled()).await?,
        Some(session) => session.accepted.receive_until(max, wait, hurry.cancelled()).await?,
        None => queue.receive_until(max, wait, hurry.cancelled()).await?,
    };
    Ok(shared.pack(queue, deliveries, handing))
}

/// Whether a message that was held back could still be had.
async fn is_there(entity: &Entity, message: SequenceNumber) -> bool {
    let found = entity.queue.peek(message, 1).await.unwrap_or_default().into_iter().next();
    let Some(view) = found.filter(|view| view.sequence_number == message) else { return false };
    match view.status {
        MessageStatus::DeadLettered(dead_letter) => {
            entity.is_dead_letters && !dead_letter.deferred && view.locked_until.is_none()
        }
        MessageStatus::Ready => !entity.is_dead_letters,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::tests::peer::Attach;
    use crate::amqp::tests::peer::Performative;
    use crate::engine::Engine;
    use crate::error::ReceiveRefusal;
    use crate::message::Message;
    use crate::service_bus::holds::tests::hold;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::body;
    use crate::service_bus::tests::bare::drain;
    use crate::service_bus::tests::bare::is_drained;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::socketless;
    use crate::testing::ManualClock;

    /// A connection whose one receiver could not fetch, of a queue with a message, and what its client heard of its drain before
    /// it is fed again.
    async fn drained_after(
        error: ReceiveError,
        clock: &ManualClock,
    ) -> (Engine, ConnectionTask, Vec<Performative>) {
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let queue = socketless::unordered(engine.client()).await;
        queue.send(Message::new("m")).await.unwrap();
        let shared = socketless::endpoint(engine.client(), Arc::new(clock.clone())).await;
        let mut connection_task = socketless::opened(shared);
        connection_task.hear(&[attach(receiver(0, "q"))]).await;
        connection_task.written();
        let link = *connection_task.links.keys().next().expect("it has a receiver");
        connection_task.fetch_failed(link, error);
        connection_task.says(&[drain(0, 0, 10)]);
        let heard = connection_task.written();
        (engine, connection_task, heard)
    }

    #[tokio::test]
    async fn a_drain_that_nobody_could_look_into_goes_on_until_somebody_can() {
        let clock = ManualClock::default();
        let busy = ReceiveError::Unavailable(Unavailable::Busy);
        let (_engine, mut connection_task, mut heard) = drained_after(busy, &clock).await;
        assert!(heard.is_empty(), "{heard:?}");
        clock.advance(limits::SERVICE_BUS_PAUSE);
        while !heard.iter().any(is_drained) {
            connection_task.until(|connection_task| !connection_task.amqp.output().is_empty()).await;
            heard.extend(connection_task.written());
        }
        assert_eq!(heard.iter().filter_map(body).collect::<Vec<_>>(), ["m"]);
    }

    #[tokio::test]
    async fn what_too_many_waiting_hold_back_is_not_there_for_a_drain() {
        let too_many = ReceiveError::Refused(ReceiveRefusal::TooManyWaiting(1));
        let (_engine, _, heard) = drained_after(too_many, &ManualClock::default()).await;
        assert!(heard.iter().any(is_drained), "{heard:?}");
    }

    #[tokio::test]
    async fn what_has_no_credit_any_more_goes_back_whatever_comes_behind_it() {
        let engine = Engine::in_memory().clock(ManualClock::default()).open().await.unwrap();
        socketless::unordered(engine.client()).await;
        let shared = socketless::endpoint(engine.client(), Arc::new(ManualClock::default())).await;
        let mut connection_task = socketless::opened(shared.clone());
        let asked = Attach { max_message_bytes: Some(1_000), ..receiver(0, "q") };
        connection_task.hear(&[attach(asked)]).await;
        let link = *connection_task.links.keys().next().expect("it has a receiver");
        let holds = [hold(1, u64::MAX >> 1), hold(2, u64::MAX >> 1)];
        shared.holds.add(holds.clone(), Duration::ZERO);
        let packed_messages = [(&holds[0], 10), (&holds[1], 10_000)]
            .map(|(hold, bytes)| PackedMessage { hold: hold.clone(), payload: vec![0; bytes].into() });
        let receiver = connection_task.receiver(link).expect("it receives");
        assert!(receiver.backlog.add(packed_messages.into()).is_empty());
        connection_task.send_backlog(link);
        assert!(!connection_task.receiver(link).expect("it goes on").is_leaving);
        for hold in holds {
            assert!(shared.holds.get(&hold.queue, hold.token).is_none(), "nobody has it");
        }
    }
}
