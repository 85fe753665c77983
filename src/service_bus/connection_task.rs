//! One connection: what its client sends becomes requests to the engine, and the answers of the engine go to the client.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::amqp::AmqpError;
use crate::amqp::AmqpEvent;
use crate::amqp::Connection;
use crate::amqp::LinkId;
use crate::service_bus::backlog::BacklogRoom;
use crate::service_bus::completions::Completions;
use crate::service_bus::completions::Releases;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::grants::Grants;
use crate::service_bus::in_order::InOrder;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Node;
use crate::service_bus::links::Receiver;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::transactions::Transactions;
use crate::service_bus::transactions::link_is_over;

/// What is done with the connection once an answer has come.
type Continuation = Box<dyn FnOnce(&mut ConnectionTask) + Send>;

/// One connection.
pub(crate) struct ConnectionTask {
    pub(crate) amqp: Connection,
    pub(crate) shared: Arc<EndpointState>,
    pub(crate) links: HashMap<LinkId, EndpointLink>,
    /// Completions that came together, to be asked of the engine together.
    pub(crate) completions: Completions,
    /// What was given back together, to be asked of the engine in another order.
    pub(crate) releases: Releases,
    /// Transactions that are not discharged.
    pub(crate) transactions: Transactions,
    /// What the connection may do.
    pub(crate) grants: Grants,
    /// What was fetched for all receivers together.
    pub(crate) backlogs: BacklogRoom,
    /// Receivers that may be able to take more, and links of answers for which there was no room.
    pub(crate) hungry: BTreeSet<LinkId>,
    /// Browsers that may be able to show more.
    pub(crate) browsing: BTreeSet<LinkId>,
    /// Senders with messages that came together.
    pub(crate) grouped: BTreeSet<LinkId>,
    /// A request that comes after messages which wait for the answer of a topic; nothing behind it is looked at before.
    pub(crate) held_event: Option<AmqpEvent>,
    /// Bytes of messages that wait, or that the engine was given and has not answered.
    pub(crate) sending_bytes: usize,
    /// Bytes of answers to requests that wait for the client to take them.
    pub(crate) replying_bytes: usize,
    /// Receivers that have been sent what is to be deleted.
    pub(crate) deleting: BTreeSet<LinkId>,
    /// Links over which answers went with what is to be deleted.
    pub(crate) answering: BTreeSet<LinkId>,
    /// What is asked of the engine.
    pub(crate) work: FuturesUnordered<BoxFuture<'static, Continuation>>,
    /// Answers that have come.
    pub(crate) answered: VecDeque<Continuation>,
    /// How many requests the client has caused, and which of them are not answered.
    pub(crate) work_ever: u64,
    pub(crate) under_way: BTreeSet<u64>,
    /// Ends, and beginnings after them, in the order in which they came, each with what has to be answered before.
    pub(crate) in_order: VecDeque<(u64, InOrder)>,
    /// When deliveries were last looked for that the client does not settle any more, in the clock's elapsed time.
    pub(crate) forgotten_looked_for_at: Duration,
    /// Since when a connection that has shown no key has had to: since it began, or there are other keys.
    pub(crate) stranger_since_ms: u64,
    /// Since when there is no link.
    pub(crate) linkless_since_ms: u64,
    /// Since when something waits to be written without the peer having taken any of it.
    pub(crate) stalled_since_ms: Option<u64>,
    /// Bytes that the stream was ever given.
    pub(crate) bytes_given: u64,
    /// How many of them are on their way to the peer.
    pub(crate) bytes_written: u64,
    /// Whether the client has left without a word: what it was handling may be why.
    pub(crate) has_broken_off: bool,
    /// Whether the connection is about to end.
    pub(crate) is_closing: bool,
    /// Whether nothing can be written to the peer any more. What it has sent is still read.
    pub(crate) is_write_closed: bool,
    /// When nothing was taken for too long: what has come by then is all that is read.
    pub(crate) gave_up_at_ms: Option<u64>,
}

impl ConnectionTask {
    pub(crate) fn new(amqp: Connection, shared: Arc<EndpointState>) -> ConnectionTask {
        let now_ms = elapsed_ms(&*shared.clock);
        ConnectionTask {
            amqp,
            shared,
            links: HashMap::new(),
            completions: Completions::default(),
            releases: Releases::new(),
            transactions: Transactions::default(),
            grants: Grants::default(),
            backlogs: BacklogRoom::default(),
            hungry: BTreeSet::new(),
            browsing: BTreeSet::new(),
            grouped: BTreeSet::new(),
            held_event: None,
            sending_bytes: 0,
            replying_bytes: 0,
            deleting: BTreeSet::new(),
            answering: BTreeSet::new(),
            work: FuturesUnordered::new(),
            answered: VecDeque::new(),
            work_ever: 0,
            under_way: BTreeSet::new(),
            in_order: VecDeque::new(),
            forgotten_looked_for_at: Duration::ZERO,
            stranger_since_ms: now_ms,
            linkless_since_ms: now_ms,
            stalled_since_ms: None,
            bytes_given: 0,
            bytes_written: 0,
            has_broken_off: false,
            is_closing: false,
            is_write_closed: false,
            gave_up_at_ms: None,
        }
    }

    /// Sends a request of the client to the engine, and does the rest when it is answered. What is sent first reaches the engine first.
    /// What the client ends later ends after it.
    pub(crate) fn start<F, T>(&mut self, call: F)
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(&mut ConnectionTask) + Send + 'static,
    {
        let work = self.work_ever;
        self.work_ever += 1;
        self.under_way.insert(work);
        self.wait_for(call.map(move |then| {
            move |connection_task: &mut ConnectionTask| {
                then(connection_task);
                connection_task.under_way.remove(&work);
            }
        }));
    }

    /// Asks something that may take as long as it likes, and does the rest when it is answered. No end waits for it.
    pub(crate) fn wait_for<F, T>(&mut self, call: F)
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(&mut ConnectionTask) + Send + 'static,
    {
        let call: BoxFuture<'static, Continuation> =
            call.map(|then| -> Continuation { Box::new(then) }).boxed();
        // Unbudgeted, or what is asked late in a long turn would be asked in another order.
        let mut call = tokio::task::unconstrained(call);
        match (&mut call).now_or_never() {
            Some(then) => self.answered.push_back(then),
            None => self.work.push(call.boxed()),
        }
    }

    /// Does everything that can be done without waiting.
    pub(crate) fn turn(&mut self) {
        loop {
            let mut is_idle = true;
            while let Some(event) = self.next_event() {
                self.heed(event);
                is_idle = false;
            }
            self.send_groups();
            self.send_settlements();
            while let Some(then) = self.answered.pop_front() {
                then(self);
                is_idle = false;
            }
            is_idle &= !self.do_in_order();
            self.feed_receivers();
            self.feed_browsers();
            if is_idle && self.answered.is_empty() {
                return;
            }
        }
    }

    /// What the client has said next, unless it has to wait.
    fn next_event(&mut self) -> Option<AmqpEvent> {
        let event = self.held_event.take().or_else(|| self.amqp.next_event())?;
        if self.must_wait(&event) {
            self.held_event = Some(event);
            return None;
        }
        Some(event)
    }

    /// Whether something may only be done once every message that was sent before it has been given to the engine.
    fn must_wait(&mut self, event: &AmqpEvent) -> bool {
        let AmqpEvent::Message { link, .. } = event else { return false };
        let comes_after_messages = match self.links.get(link) {
            Some(EndpointLink::Coordinator) => true,
            Some(EndpointLink::Requests(requests)) => matches!(requests.node, Node::Management(_)),
            _ => false,
        };
        if comes_after_messages {
            self.send_groups();
        }
        comes_after_messages && !self.grouped.is_empty()
    }

    fn heed(&mut self, event: AmqpEvent) {
        match event {
            AmqpEvent::Sasl { mechanism, response } => self.take_sasl(mechanism.as_str(), &response),
            AmqpEvent::Opened(_) => {}
            AmqpEvent::Attached { link, attach } => self.arrive(link, attach),
            AmqpEvent::Message { link, delivery, format, payload, settled, transaction, .. } => {
                self.take_message(link, (delivery, settled), (format, payload), transaction);
            }
            AmqpEvent::TooLarge { link, delivery, settled, transaction } => {
                self.reject_too_large(link, (delivery, settled), transaction.as_ref());
            }
            AmqpEvent::Settled { link, delivery, outcome, settled, transaction } => match transaction {
                Some(transaction) => self.settle_in(link, (delivery, settled), outcome, transaction),
                None => self.settle(link, delivery, outcome, settled),
            },
            AmqpEvent::MissingPart { transaction } => {
                self.note_missing(true, Some(&transaction), &link_is_over());
            }
            AmqpEvent::Credit { link, drain, .. } => self.note_credit(link, drain),
            AmqpEvent::Detached { link, .. } => self.leave(InOrder::Leave(link, None)),
            AmqpEvent::Ended { channel, .. } => self.leave(InOrder::End(channel)),
            AmqpEvent::Closed { error } => {
                if let Some(error) = error {
                    tracing::debug!(%error, "an AMQP connection was closed");
                }
                self.has_broken_off = !self.amqp.was_closed_by_peer();
                self.leave(InOrder::Close(None));
            }
        }
    }

    pub(crate) fn receiver(&mut self, link: LinkId) -> Option<&mut Receiver> {
        match self.links.get_mut(&link) {
            Some(EndpointLink::Receiver(receiver)) => Some(receiver),
            _ => None,
        }
    }

    pub(crate) fn note_credit(&mut self, link: LinkId, drain: bool) {
        self.hungry.insert(link);
        match self.links.get_mut(&link) {
            Some(EndpointLink::Receiver(receiver)) => receiver.drains = drain,
            Some(EndpointLink::Browser(_)) => self.note_browsing(link, drain),
            Some(EndpointLink::Replies(_)) => {
                self.send_replies(link);
                if drain {
                    self.amqp.drained(link);
                }
            }
            _ => {}
        }
    }
}

impl From<AmqpRefusal> for AmqpError {
    fn from(refusal: AmqpRefusal) -> AmqpError {
        AmqpError::new(refusal.condition, refusal.description)
    }
}
