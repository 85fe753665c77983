//! Links, and what each is for.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::amqp::DeliveryNumber;
use crate::amqp::OutgoingMessage;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::backlog::Backlog;
use crate::service_bus::backlog::PackedMessage;
use crate::service_bus::browser::Browser;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::holds::ClientHolds;
use crate::service_bus::link_window::LinkWindow;
use crate::service_bus::management::replies::Replies;
use crate::service_bus::on_their_way::OnTheirWay;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::sender::Sender;

/// A link, and what it is for.
pub(crate) enum EndpointLink {
    /// It is not decided yet, perhaps because a session is waited for.
    Pending(Option<Box<SessionWait>>),
    /// Messages come to a queue.
    Sender(Sender),
    /// Messages go out of a queue.
    Receiver(Box<Receiver>),
    /// Messages are shown, and stay where they are.
    Browser(Browser),
    /// Transactions are declared and discharged.
    Coordinator,
    /// Requests come to the management of an entity, or to the node for tokens.
    Requests(Requests),
    /// Answers go out.
    Replies(Replies),
}

/// What a link waits for that was promised no session yet; it is given up with this.
pub(crate) struct SessionWait {
    pub(crate) entity: Entity,
    pub(crate) _unwanted: DropGuard,
}

/// A link over which messages go out of a queue.
pub(crate) struct Receiver {
    pub(crate) entity: Entity,
    /// Whether what is sent is settled, and gone.
    pub(crate) deletes: bool,
    /// What is being fetched.
    pub(crate) fetching: Option<Fetching>,
    /// Whether the client drains: it is to be answered when there is nothing more.
    pub(crate) drains: bool,
    /// Whether nothing is fetched for now: the engine has no locks for more, nobody could be asked, or the next message is too large.
    pub(crate) is_paused: bool,
    /// How often it has paused.
    pub(crate) pauses: u64,
    /// Whether it pauses because nobody could be asked: what there is, is not known.
    pub(crate) is_unasked: bool,
    /// Whether the link is about to end.
    pub(crate) is_leaving: bool,
    /// Why it ends as soon as what the client has is settled: the next message is too large for it.
    pub(crate) too_large: Option<AmqpRefusal>,
    /// What the client has not settled.
    pub(crate) unsettled: HashMap<DeliveryNumber, ClientHold>,
    /// What the client of a session has settled with transactions. What of it is settled for good is known as held no longer.
    pub(crate) in_transactions: HashMap<DeliveryNumber, ClientHold>,
    /// What was sent settled and is deleted once it is on its way, in order.
    pub(crate) sent: OnTheirWay<ClientHold>,
    /// How many requests of it to delete what was sent are not answered.
    pub(crate) deletions: usize,
    /// What was fetched and had no room.
    pub(crate) backlog: Backlog,
    /// Whether somebody sees to it that what waits is still locked.
    pub(crate) keeps_locks: bool,
    /// Cancelled when the link is gone: who waits for something of it waits no longer.
    pub(crate) gone: CancellationToken,
    pub(crate) session: Option<Arc<HeldSession>>,
    /// How much it is sent ahead; none for a session, and where what is sent is gone.
    pub(crate) window: Option<Arc<LinkWindow>>,
    /// The next message, which does not fit into the window, and how often its lock was lost.
    pub(crate) held_back: Option<PendingMessage>,
    /// Whether somebody waits for room in the window.
    pub(crate) is_waiting_for_room: bool,
}

/// A message that is not sent for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingMessage {
    pub(crate) message: SequenceNumber,
    pub(crate) times_lost: usize,
}

/// What is asked of the engine for a receiver.
pub(crate) struct Fetching {
    /// Cancelled, the engine answers at once with what it has handed out, or with nothing; nothing is taken back.
    pub(crate) hurry: CancellationToken,
    pub(crate) max: usize,
    /// Whether an answer with nothing means that there was nothing after the client began to drain.
    pub(crate) is_for_drain: bool,
}

/// A link over which requests come.
pub(crate) struct Requests {
    pub(crate) node: Node,
    /// How many requests have come over it whose answers are not handed over.
    pub(crate) unanswered: u32,
}

/// What requests are for.
#[derive(Clone)]
pub(crate) enum Node {
    Tokens,
    Management(Box<Entity>),
}

impl Receiver {
    pub(crate) fn new(
        entity: Entity,
        deletes: bool,
        session: Option<Arc<HeldSession>>,
        backlog: Backlog,
    ) -> Receiver {
        Receiver {
            entity,
            deletes,
            fetching: None,
            drains: false,
            is_paused: false,
            pauses: 0,
            is_unasked: false,
            is_leaving: false,
            too_large: None,
            unsettled: HashMap::new(),
            in_transactions: HashMap::new(),
            sent: OnTheirWay::default(),
            deletions: 0,
            backlog,
            keeps_locks: false,
            gone: CancellationToken::new(),
            session,
            window: None,
            held_back: None,
            is_waiting_for_room: false,
        }
    }

    /// Whether the next message, if it is known, fits into the window by now.
    pub(crate) fn fits(&self) -> bool {
        match (&self.window, self.held_back) {
            (Some(window), Some(held)) => window.admits(held.message, held.times_lost),
            _ => true,
        }
    }

    /// The next message of what was fetched, as it goes out.
    pub(crate) fn next_outgoing(&self) -> Option<OutgoingMessage> {
        let PackedMessage { hold, payload } = self.backlog.front()?;
        let tag = if self.deletes { [0; 16] } else { hold.token.tag() };
        Some(OutgoingMessage {
            tag: Bytes::copy_from_slice(&tag),
            payload: payload.clone(),
            format: 0,
            settled: self.deletes,
        })
    }

    /// Notes that a message is settled once a transaction is committed. Until then a client of a session still has it.
    pub(crate) fn note_in_transaction(&mut self, delivery: DeliveryNumber, holds: &ClientHolds) {
        let Some(hold) = self.unsettled.remove(&delivery).filter(|_| self.session.is_some()) else { return };
        // A session has no more of them out, so some of these are settled for good.
        if self.in_transactions.len() >= limits::ACCEPTED_AHEAD_MAX {
            self.in_transactions.retain(|_, hold| holds.get(&hold.queue, hold.token).is_some());
        }
        self.in_transactions.insert(delivery, hold);
    }

    /// Everything that its client has, in the order in which it was sent; what of it is settled in transactions may be settled for good.
    pub(crate) fn take_left(&mut self) -> Vec<ClientHold> {
        let in_transactions = std::mem::take(&mut self.in_transactions);
        let left = std::mem::take(&mut self.unsettled).into_iter().chain(in_transactions);
        left.collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Has the engine answer at once what is being fetched.
    pub(crate) fn hurry(&mut self) {
        let drains = self.drains;
        if let Some(fetching) = self.fetching.as_mut().filter(|fetching| !fetching.hurry.is_cancelled()) {
            fetching.is_for_drain = drains;
            fetching.hurry.cancel();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.gone.cancel();
        if let Some(window) = &self.window {
            window.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::SystemClock;
    use crate::engine::Engine;
    use crate::queue::QueueOptions;
    use crate::service_bus::holds::ClientSettlementKind;
    use crate::service_bus::holds::tests::hold;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::session_receiver;
    use crate::service_bus::tests::socketless;

    #[tokio::test]
    async fn what_was_rolled_back_and_is_settled_otherwise_is_not_kept_for_as_long_as_the_session() {
        let engine = Engine::in_memory().open().await.unwrap();
        engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let shared = socketless::endpoint(engine.client(), Arc::new(SystemClock::default())).await;
        let mut connection_task = socketless::opened(Arc::clone(&shared));
        connection_task.says(&[attach(session_receiver(0, "q", "s"))]);
        let is_attached = |link: &EndpointLink| matches!(link, EndpointLink::Receiver(_));
        connection_task.until(|connection_task| connection_task.links.values().all(is_attached)).await;
        let link = *connection_task.links.keys().next().expect("it is attached");
        let receiver = connection_task.receiver(link).expect("it receives");
        for number in 0..4 * limits::ACCEPTED_AHEAD_MAX {
            // The first was rolled back, the others are settled otherwise.
            let byte = if number == 0 { 0 } else { 1 + (number % 250) as u8 };
            let hold = hold(byte, u64::MAX >> 1);
            shared.holds.add([hold.clone()], Duration::ZERO);
            let (delivery, token) = (DeliveryNumber(number as u32), hold.token);
            receiver.unsettled.insert(delivery, hold);
            receiver.note_in_transaction(delivery, &shared.holds);
            if number > 0 {
                shared.holds.note_settled(token, ClientSettlementKind::Completed);
            }
        }
        assert!(receiver.in_transactions.len() <= limits::ACCEPTED_AHEAD_MAX);
        assert_eq!(receiver.take_left()[0].token, hold(0, 0).token, "its client still has it");
    }
}
