//! A connection without a socket: what its client says is heard at once, and whoever tests it says what is written.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;

use crate::amqp::Connection;
use crate::amqp::ConnectionOptions;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::Performative;
use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::intake::Intake;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::meters::Meters;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::shared::Owners;
use crate::service_bus::tests::bare::attach;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::session_receiver;

/// How long a test waits for an answer of the engine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What connections of an endpoint share that nobody listens for.
pub(crate) async fn endpoint(client: &Client, clock: Arc<dyn Clock>) -> Arc<EndpointState> {
    let intake = Intake::new(client.clone());
    let shared =
        EndpointState::new(intake, Owners::nobody(), clock, Meters::default(), Default::default(), false);
    shared.descriptions.open().await.unwrap();
    Arc::new(shared)
}

/// An engine with a queue without an order, and a connection to its endpoint.
pub(crate) async fn connected() -> (Engine, Queue, ConnectionTask) {
    let engine = Engine::in_memory().open().await.unwrap();
    let queue = unordered(engine.client()).await;
    let shared = endpoint(engine.client(), Arc::new(SystemClock::default())).await;
    (engine, queue, opened(shared))
}

/// A connection whose client has opened it and begun a session.
pub(crate) fn opened(shared: Arc<EndpointState>) -> ConnectionTask {
    opened_with(shared, ConnectionOptions::default())
}

/// The same with other limits.
pub(crate) fn opened_with(shared: Arc<EndpointState>, options: ConnectionOptions) -> ConnectionTask {
    let mut connection_task = ConnectionTask::new(Connection::new(options, 0), shared);
    connection_task.amqp.receive(peer::HEADER, 0);
    connection_task.says(&[peer::open(), peer::begin()]);
    connection_task.amqp.output().clear();
    connection_task
}

/// A queue without an order.
pub(crate) async fn unordered(client: &Client) -> Queue {
    let options = QueueOptions { order: Order::None, ..QueueOptions::default() };
    client.create_queue("q", options).await.unwrap()
}

/// An engine, and a connection whose client has the session of a queue with so many messages, and was sent what it may have of them.
pub(crate) async fn in_session(messages: usize) -> (Engine, ConnectionTask) {
    let engine = Engine::in_memory().open().await.unwrap();
    let options = QueueOptions { order: Order::Arrival, ..QueueOptions::default() };
    let queue = engine.client().create_queue("q", options).await.unwrap();
    let all = (0..messages).map(|number| Message::new(number.to_string()).workflow("s"));
    queue.send_batch(all).await.unwrap();
    let shared = endpoint(engine.client(), Arc::new(SystemClock::default())).await;
    let mut connection_task = opened(shared);
    let is_receiver = |link: &EndpointLink| matches!(link, EndpointLink::Receiver(_));
    connection_task.says(&[attach(session_receiver(0, "q", "s"))]);
    connection_task.until(|connection_task| connection_task.links.values().any(is_receiver)).await;
    connection_task.says(&[credit(0, 0, 1_000)]);
    let most = messages.min(limits::ACCEPTED_AHEAD_MAX);
    connection_task.until(|connection_task| unsettled(connection_task) == most).await;
    (engine, connection_task)
}

/// How many messages its client was sent and has not settled.
pub(crate) fn unsettled(connection_task: &ConnectionTask) -> usize {
    let unsettled = |link: &EndpointLink| match link {
        EndpointLink::Receiver(receiver) => receiver.unsettled.len(),
        _ => 0,
    };
    connection_task.links.values().map(unsettled).sum()
}

impl ConnectionTask {
    /// Hears frames, and does what can be done without waiting.
    pub(crate) fn says(&mut self, performatives: &[Performative]) {
        let bytes = performatives.iter().flat_map(|performative| peer::frame(0, performative));
        let now_ms = elapsed_ms(&*self.shared.clock);
        self.amqp.receive(&bytes.collect::<Vec<u8>>(), now_ms);
        self.turn();
    }

    /// Hears frames, and waits until everything that is asked of the engine is answered.
    pub(crate) async fn hear(&mut self, performatives: &[Performative]) {
        self.says(performatives);
        self.settle_down().await;
    }

    pub(crate) async fn settle_down(&mut self) {
        // What was answered at once waits for a turn.
        self.turn();
        self.until(|connection_task| connection_task.work.is_empty()).await;
    }

    /// Does what is answered until something is so.
    pub(crate) async fn until(&mut self, is_so: impl Fn(&mut ConnectionTask) -> bool) {
        while !is_so(self) {
            let then =
                tokio::time::timeout(TIMEOUT, self.work.next()).await.expect("an answer comes in time");
            self.answered.push_back(then.expect("something was asked"));
            self.turn();
        }
    }

    /// Takes what is to be written, as a socket does that has room for all of it, until there is nothing more.
    pub(crate) fn written(&mut self) -> Vec<Performative> {
        let (mut bytes, mut frames) = (BytesMut::new(), Vec::new());
        while !self.amqp.output().is_empty() {
            let part = self.amqp.output().split();
            self.bytes_given += part.len() as u64;
            self.bytes_written = self.bytes_given;
            bytes.unsplit(part);
            self.delete_answered();
            self.delete_sent();
            self.turn();
        }
        while let Some((_, performative)) = peer::next_performative(&mut bytes) {
            frames.push(performative);
        }
        frames
    }
}
