//! A client without an SDK: it says exact bytes to an endpoint over a real socket, as many frames in one write as it likes,
//! and hears what comes back frame by frame.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use socket2::Socket;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::amqp::MessageProperties;
use crate::amqp::Value;
use crate::amqp::message;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::Attach;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Detach;
use crate::amqp::tests::peer::Flow;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Role;
use crate::amqp::tests::peer::SenderSettles;
use crate::amqp::tests::peer::Source;
use crate::amqp::tests::peer::Target;
use crate::amqp::tests::peer::Transfer;
use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::intake::Intake;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::endpoint::Endpoint;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::meters::Meters;
use crate::service_bus::shared::Owners;

/// How long anything may take before a test gives up.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An engine with an endpoint that listens.
pub(crate) struct Fixture {
    engine: Engine,
    pub(crate) address: SocketAddr,
    pub(crate) meters: Meters,
    stopping: CancellationToken,
}

impl Fixture {
    /// In memory.
    pub(crate) async fn open() -> Fixture {
        Fixture::on(Engine::in_memory().open().await.unwrap()).await
    }

    /// On an engine that may write to a disk.
    pub(crate) async fn on(engine: Engine) -> Fixture {
        Fixture::by(engine, Arc::new(SystemClock::default())).await
    }

    /// On an engine, by its clock.
    pub(crate) async fn by(engine: Engine, clock: Arc<dyn Clock>) -> Fixture {
        let options = EndpointOptions::new("127.0.0.1:0".parse().unwrap());
        let intake = Intake::new(engine.client().clone());
        let meters = Meters::default();
        let endpoint =
            Endpoint::bind(options, intake, Owners::nobody(), clock, meters.clone()).await.unwrap();
        let (address, stopping) = (endpoint.addresses()[0], CancellationToken::new());
        tokio::spawn(endpoint.run(stopping.clone()));
        Fixture { engine, address, meters, stopping }
    }

    pub(crate) fn client(&self) -> &Client {
        self.engine.client()
    }

    /// A queue that behaves as one of Service Bus, with sessions.
    pub(crate) async fn queue(&self, name: &str) -> Queue {
        let options = QueueOptions { order: Order::Arrival, ..QueueOptions::default() };
        self.client().create_queue(name, options).await.unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

/// A connection with a client that says what it likes.
pub(crate) struct Bare {
    stream: TcpStream,
    input: BytesMut,
}

impl Bare {
    /// Connects and opens, without SASL, and begins a session on channel 0.
    pub(crate) async fn connect(fixture: &Fixture) -> Bare {
        Bare::open(TcpStream::connect(fixture.address).await.unwrap()).await
    }

    /// Connects as the SDKs for .NET do: the buffers of the socket are small, and are made so when it is open.
    pub(crate) async fn connect_with_buffers(fixture: &Fixture, bytes: usize) -> Bare {
        let stream = TcpStream::connect(fixture.address).await.unwrap();
        let socket = Socket::from(stream.into_std().unwrap());
        socket.set_send_buffer_size(bytes).unwrap();
        socket.set_recv_buffer_size(bytes).unwrap();
        Bare::open(TcpStream::from_std(socket.into()).unwrap()).await
    }

    async fn open(stream: TcpStream) -> Bare {
        stream.set_nodelay(true).unwrap();
        let mut bare = Bare { stream, input: BytesMut::new() };
        bare.says_bytes(&[peer::HEADER, &says(peer::open()), &says(peer::begin())].concat()).await;
        let mut header = [0; 8];
        bare.stream.read_exact(&mut header).await.unwrap();
        assert_eq!(header, *peer::HEADER);
        assert!(matches!(bare.next_frame().await, Some(Performative::Open(_))));
        assert!(matches!(bare.next_frame().await, Some(Performative::Begin(_))));
        bare
    }

    /// Says frames on channel 0, all of them in one write.
    pub(crate) async fn says(&mut self, performatives: impl IntoIterator<Item = Performative>) {
        let bytes: Vec<u8> = performatives.into_iter().flat_map(says).collect();
        self.says_bytes(&bytes).await;
    }

    pub(crate) async fn says_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame; none when the endpoint has ended the stream.
    pub(crate) async fn next_frame(&mut self) -> Option<Performative> {
        loop {
            if let Some((_, performative)) = peer::next_performative(&mut self.input) {
                return Some(performative);
            }
            let reading = tokio::time::timeout(TIMEOUT, self.stream.read_buf(&mut self.input)).await;
            match reading.expect("the endpoint says something") {
                Ok(0) => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                read => drop(read.unwrap()),
            }
        }
    }

    /// What is heard up to a frame that is waited for, that included.
    pub(crate) async fn frames_until(
        &mut self,
        is_last: impl Fn(&Performative) -> bool,
    ) -> Vec<Performative> {
        let mut frames = Vec::new();
        loop {
            let next = self.next_frame().await;
            frames.push(next.unwrap_or_else(|| panic!("the stream has ended after {frames:?}")));
            if is_last(frames.last().unwrap()) {
                return frames;
            }
        }
    }

    /// Attaches a link that sends to an address, and waits for its credit.
    pub(crate) async fn attach_sender(&mut self, handle: u32, address: &str) {
        self.says([attach(Attach {
            target: Some(Target { address: Some(address.into()), ..Target::default() }),
            ..peer::attach(&format!("link-{handle}"), handle, Role::Sender)
        })])
        .await;
        self.frames_until(|frames| matches!(frames, Performative::Flow(flow) if flow.handle == Some(handle)))
            .await;
    }

    /// Attaches a link that receives from an address.
    pub(crate) async fn attach_receiver(&mut self, handle: u32, address: &str) {
        self.attach_with(receiver(handle, address)).await;
    }

    /// Attaches a link that receives the messages of a session.
    pub(crate) async fn attach_session(&mut self, handle: u32, address: &str, session: &str) {
        self.attach_with(session_receiver(handle, address, session)).await;
    }

    /// Attaches a link, and says how it was answered.
    pub(crate) async fn attach_with(&mut self, asked: Attach) -> Attach {
        self.says([attach(asked)]).await;
        let mut frames = self.frames_until(|frames| matches!(frames, Performative::Attach(_))).await;
        match frames.pop() {
            Some(Performative::Attach(answer)) => *answer,
            _ => unreachable!("it was waited for"),
        }
    }

    /// The bodies of the next messages.
    pub(crate) async fn bodies(&mut self, count: usize) -> Vec<String> {
        let mut bodies = Vec::new();
        while bodies.len() < count {
            let next = self.next_frame().await.expect("the endpoint sends");
            bodies.extend(body(&next));
        }
        bodies
    }

    /// Ends its side of the stream, and hears the rest.
    pub(crate) async fn finish(mut self) -> Vec<Performative> {
        self.stream.shutdown().await.unwrap();
        self.rest().await
    }

    /// Hears until the endpoint ends the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Performative> {
        let mut frames = Vec::new();
        while let Some(next) = self.next_frame().await {
            frames.push(next);
        }
        frames
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

/// The bytes of a frame on channel 0.
pub(crate) fn says(performative: Performative) -> Vec<u8> {
    peer::frame(0, &performative)
}

pub(crate) fn attach(attach: Attach) -> Performative {
    Performative::Attach(Box::new(attach))
}

/// A link that receives from an address.
pub(crate) fn receiver(handle: u32, address: &str) -> Attach {
    Attach {
        source: Some(Source { address: Some(address.into()), ..Source::default() }),
        ..peer::attach(&format!("link-{handle}"), handle, Role::Receiver)
    }
}

/// A link that receives the messages of a session.
pub(crate) fn session_receiver(handle: u32, address: &str, session: &str) -> Attach {
    let mut asked = receiver(handle, address);
    if let Some(source) = &mut asked.source {
        source.filter = vec![(Value::symbol("com.microsoft:session-filter"), Value::from(session))];
    }
    asked
}

/// A link whose messages are gone once they are sent.
pub(crate) fn deleting(asked: Attach) -> Attach {
    Attach { sender_settles: SenderSettles::Settled, ..asked }
}

/// A link that only looks at messages.
pub(crate) fn copying(mut asked: Attach) -> Attach {
    if let Some(source) = &mut asked.source {
        source.distribution_mode = Some("copy".into());
    }
    asked
}

/// Credit on a link that has received so many messages.
pub(crate) fn credit(handle: u32, received: u32, credit: u32) -> Performative {
    Performative::Flow(Flow {
        next_incoming_id: None,
        incoming_window: 100_000,
        delivery_count: Some(received),
        ..peer::flow(handle, credit)
    })
}

/// The same credit, and the wish to hear when there is nothing more.
pub(crate) fn drain(handle: u32, received: u32, left: u32) -> Performative {
    match credit(handle, received, left) {
        Performative::Flow(flow) => Performative::Flow(Flow { drain: true, ..flow }),
        other => other,
    }
}

/// Whether a frame says that a drain is over.
pub(crate) fn is_drained(frames: &Performative) -> bool {
    matches!(frames, Performative::Flow(flow) if flow.drain && flow.link_credit == Some(0))
}

pub(crate) fn detach(handle: u32) -> Performative {
    Performative::Detach(Detach { handle, closed: true, error: None })
}

/// A message of a body, perhaps of a session.
pub(crate) fn payload(body: &str, session: Option<&str>) -> Bytes {
    let mut out = BytesMut::new();
    message::encode_properties(
        &mut out,
        &MessageProperties { group_id: session.map(Into::into), ..MessageProperties::default() },
    );
    message::encode_data(&mut out, body.as_bytes());
    out.freeze()
}

/// A transfer of a whole message.
pub(crate) fn transfer(handle: u32, delivery: u32, settled: bool, payload: &Bytes) -> Performative {
    match peer::transfer(handle, delivery, payload) {
        Performative::Transfer(transfer, payload) => {
            Performative::Transfer(Transfer { settled: Some(settled), ..transfer }, payload)
        }
        other => other,
    }
}

/// How a receiver ends deliveries.
pub(crate) fn ends(first: u32, last: u32, settled: bool, outcome: DeliveryOutcome) -> Performative {
    peer::disposition(Role::Receiver, first, last, settled, outcome)
}

/// A request to the management of an entity.
pub(crate) fn request(operation: &str, body: Vec<(Value, Value)>) -> Bytes {
    let mut out = BytesMut::new();
    let properties = MessageProperties {
        message_id: Value::from("request"),
        reply_to: Some("there".into()),
        ..MessageProperties::default()
    };
    message::encode_properties(&mut out, &properties);
    message::encode_application_properties(&mut out, &[(Value::string("operation"), Value::from(operation))]);
    message::encode_value(&mut out, &Value::Map(body));
    out.freeze()
}

/// The sections of a message that was heard.
pub(crate) fn sections(frames: &Performative) -> Option<message::Sections> {
    match frames {
        Performative::Transfer(_, payload) => Some(message::Sections::parse(payload).unwrap()),
        _ => None,
    }
}

/// The body of a message that was heard in one frame.
pub(crate) fn body(frames: &Performative) -> Option<String> {
    match sections(frames)?.body().unwrap() {
        message::MessageBody::Data(data) => {
            Some(data.iter().map(|part| String::from_utf8_lossy(part)).collect())
        }
        _ => None,
    }
}

/// A flow that opens the session's window so far.
pub(crate) fn window(flow: Flow, incoming_window: u32) -> Flow {
    Flow { incoming_window, ..flow }
}
