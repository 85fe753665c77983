//! A client that says bytes over a socket, and an endpoint that hears them: what no SDK says can be said too.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::amqp::Value;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_data;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::intake::Intake;
use crate::queue::QueueOptions;
use crate::service_bus::endpoint::Endpoint;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::meters::Meters;
use crate::service_bus::piped_stream::Pipe;
use crate::service_bus::shared::Owners;
use crate::service_bus::tests::source::Source;
use crate::testing::ManualClock;

pub(super) const ATTACH: u64 = 0x12;
pub(super) const FLOW: u64 = 0x13;
pub(super) const TRANSFER: u64 = 0x14;
pub(super) const DISPOSITION: u64 = 0x15;
pub(super) const DETACH: u64 = 0x16;

pub(super) const ACCEPTED: u64 = 0x24;
pub(super) const REJECTED: u64 = 0x25;
pub(super) const MODIFIED: u64 = 0x27;

pub(super) const NONE: Value = Value::Null;

/// An endpoint on an engine in memory, whose clock stands still.
pub(super) struct Host {
    pub(super) engine: Engine,
    pub(super) clock: ManualClock,
    /// Where it listens.
    pub(super) addresses: Vec<SocketAddr>,
    stopping: tokio_util::sync::DropGuard,
    running: JoinHandle<()>,
}

impl Host {
    pub(super) async fn open() -> Host {
        let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        Host::owned(crate::testing::engine().await.unwrap(), options, Owners::nobody()).await
    }

    pub(super) async fn with(engine: Engine, clock: ManualClock, options: EndpointOptions) -> Host {
        Host::owned((engine, clock), options, Owners::nobody()).await
    }

    /// An endpoint whose queues have owners.
    pub(super) async fn owned(
        (engine, clock): (Engine, ManualClock),
        options: EndpointOptions,
        owners: Owners,
    ) -> Host {
        let (intake, shown) = (Intake::new(engine.client().clone()), Arc::new(clock.clone()));
        let endpoint = Endpoint::bind(options, intake, owners, shown, Meters::default()).await.unwrap();
        let (addresses, stopping) = (endpoint.addresses().to_vec(), CancellationToken::new());
        let running = tokio::spawn(endpoint.run(stopping.clone()));
        Host { engine, clock, addresses, stopping: stopping.drop_guard(), running }
    }

    /// Stops the endpoint, and waits until it has; its engine goes on.
    pub(super) async fn stop(self) -> Engine {
        drop(self.stopping);
        self.running.await.unwrap();
        self.engine
    }

    /// A connection that says nothing yet.
    pub(super) async fn stream(&self) -> TcpStream {
        TcpStream::connect(self.addresses[0]).await.unwrap()
    }

    pub(super) async fn queue(&self, name: &str, options: QueueOptions) -> Queue {
        self.engine.client().create_queue(name, options).await.unwrap()
    }

    /// A client whose connection is open and has begun a session.
    pub(super) async fn client(&self) -> Wire {
        let wire = Wire::over(self.stream().await);
        wire.opened().await
    }

    /// A client that says who it is before; the code by which it is sent away, if it is.
    pub(super) async fn client_as(&self, mechanism: &'static str, response: &[u8]) -> Result<Wire, u8> {
        let mut wire = Wire::over(self.stream().await);
        wire.stream.write_all(b"AMQP\x03\x01\0\0").await.unwrap();
        let mut header = [0; 8];
        wire.stream.read_exact(&mut header).await.unwrap();
        assert_eq!(wire.next_answer().await.code, 0x40);
        let claims = vec![Value::symbol(mechanism), Value::Binary(Bytes::copy_from_slice(response))];
        wire.say_as(1, 0x41, claims, &[]).await;
        let outcome = wire.next_answer().await;
        assert_eq!(outcome.code, 0x44);
        match outcome.field(0) {
            Value::Ubyte(0) => Ok(wire.opened().await),
            Value::Ubyte(code) => Err(*code),
            other => panic!("{other:?} is no code"),
        }
    }
}

impl Wire {
    pub(super) fn over(stream: impl Pipe + 'static) -> Wire {
        Wire {
            stream: Box::new(stream),
            incoming: BytesMut::new(),
            sent: 0,
            requests: 0,
            has_tokens: false,
            counts: HashMap::new(),
            early: VecDeque::new(),
        }
    }

    pub(super) async fn opened(mut self) -> Wire {
        let wire = &mut self;
        wire.stream.write_all(b"AMQP\0\x01\0\0").await.unwrap();
        wire.say(0x10, vec![Value::from("client")]).await;
        let windows = [Value::Uint(0), Value::Uint(5_000), Value::Uint(5_000)];
        wire.say(0x11, [vec![NONE], windows.to_vec()].concat()).await;
        let mut header = [0; 8];
        wire.stream.read_exact(&mut header).await.unwrap();
        assert_eq!((wire.next_answer().await.code, wire.next_answer().await.code), (0x10, 0x11));
        self
    }
}

/// What was heard.
#[derive(Debug)]
pub(super) struct ReceivedFrame {
    pub(super) code: u64,
    pub(super) fields: Vec<Value>,
    pub(super) payload: Bytes,
}

impl ReceivedFrame {
    pub(super) fn field(&self, index: usize) -> &Value {
        self.fields.get(index).unwrap_or(&NONE)
    }

    /// Condition and description of the error in a field: of a detach, or of a rejection.
    pub(super) fn error(&self, index: usize) -> (String, String) {
        let mut fields = list(self.field(index));
        if let Some(Value::Described(_)) = fields.first() {
            fields = list(&fields[0]);
        }
        let text = |at: usize| fields.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text(0), text(1))
    }

    /// The kind of a delivery state in a field.
    pub(super) fn state(&self, index: usize) -> u64 {
        match self.field(index) {
            Value::Described(pair) => pair.0.as_u64().unwrap(),
            other => panic!("{other:?} is no state"),
        }
    }

    pub(super) fn message(&self) -> Sections {
        Sections::parse(&self.payload).unwrap()
    }

    /// The body of a message of one data section.
    pub(super) fn body(&self) -> String {
        match self.message().body().unwrap() {
            MessageBody::Data(data) => String::from_utf8(data.concat()).unwrap(),
            other => panic!("{other:?} is no data"),
        }
    }
}

/// The fields of something described.
fn list(value: &Value) -> Vec<Value> {
    value.undescribed().as_list().unwrap_or_default().to_vec()
}

/// A client.
pub(super) struct Wire {
    stream: Box<dyn Pipe>,
    incoming: BytesMut,
    sent: u32,
    pub(super) requests: u64,
    pub(super) has_tokens: bool,
    /// The delivery counts of links that were drained.
    counts: HashMap<u32, u32>,
    /// What came before the answer to a settlement, to be taken next.
    early: VecDeque<ReceivedFrame>,
}

impl Wire {
    pub(super) async fn say(&mut self, code: u64, fields: Vec<Value>) {
        self.say_with(code, fields, &[]).await;
    }

    pub(super) async fn say_with(&mut self, code: u64, fields: Vec<Value>, payload: &[u8]) {
        self.say_as(0, code, fields, payload).await;
    }

    async fn say_as(&mut self, kind: u8, code: u64, fields: Vec<Value>, payload: &[u8]) {
        let mut body = BytesMut::new();
        described(code, fields).encode(&mut body);
        body.put_slice(payload);
        let mut frame = BytesMut::new();
        frame.put_u32(u32::try_from(body.len() + 8).unwrap());
        frame.put_slice(&[2, kind, 0, 0]);
        frame.put_slice(&body);
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The next frame.
    pub(super) async fn next_answer(&mut self) -> ReceivedFrame {
        match self.early.pop_front() {
            Some(early) => early,
            None => self.next_received().await,
        }
    }

    async fn next_received(&mut self) -> ReceivedFrame {
        let receiving = tokio::time::timeout(Duration::from_secs(20), self.frame());
        receiving.await.expect("the endpoint says something")
    }

    /// The next frame that is no flow.
    pub(super) async fn another_answer(&mut self) -> ReceivedFrame {
        loop {
            let incoming = self.next_answer().await;
            if incoming.code != FLOW {
                return incoming;
            }
        }
    }

    async fn frame(&mut self) -> ReceivedFrame {
        loop {
            if self.incoming.len() >= 4 {
                let length = u32::from_be_bytes(self.incoming[..4].try_into().unwrap()) as usize;
                if self.incoming.len() >= length {
                    let mut frame = self.incoming.split_to(length).freeze();
                    frame.advance(8);
                    if !frame.is_empty() {
                        return incoming(&frame);
                    }
                    continue;
                }
            }
            assert!(self.stream.read_buf(&mut self.incoming).await.unwrap() > 0, "the connection has ended");
        }
    }

    /// Asks for a link whose messages this client receives, and hears the answer.
    pub(super) async fn attach_receiver(&mut self, handle: u32, source: Source) -> ReceivedFrame {
        self.ask_for_receiver(handle, source).await;
        self.another_answer().await
    }

    /// Asks for a link whose messages this client receives.
    pub(super) async fn ask_for_receiver(&mut self, handle: u32, source: Source) {
        let fields = vec![
            Value::from(format!("receiver-{handle}")),
            Value::Uint(handle),
            Value::Boolean(true),
            Value::Ubyte(if source.is_settled { 1 } else { 0 }),
            Value::Ubyte(1),
            described(0x28, source.fields),
            described(0x29, vec![Value::from(source.reply_to)]),
            NONE,
            NONE,
            NONE,
            NONE,
            NONE,
            NONE,
            Value::Map(source.properties),
        ];
        self.say(ATTACH, fields).await;
    }

    /// Asks for a link over which this client sends.
    pub(super) async fn attach_sender(&mut self, handle: u32, target: Vec<Value>) -> ReceivedFrame {
        self.attach_to(handle, described(0x29, target), Vec::new()).await
    }

    /// Asks for a link over which this client sends to an entity by way of another.
    pub(super) async fn attach_sender_by_way(&mut self, handle: u32, way: &str, to: &str) -> ReceivedFrame {
        let destination = (Value::symbol("com.microsoft:transfer-destination-address"), Value::from(to));
        self.attach_to(handle, described(0x29, vec![Value::from(way)]), vec![destination]).await
    }

    /// Asks for a link over which this client declares transactions.
    pub(super) async fn attach_coordinator(&mut self, handle: u32) {
        let answer = self.attach_to(handle, described(0x30, Vec::new()), Vec::new()).await;
        assert_eq!(answer.code, ATTACH);
    }

    async fn attach_to(
        &mut self,
        handle: u32,
        target: Value,
        properties: Vec<(Value, Value)>,
    ) -> ReceivedFrame {
        let fields = vec![
            Value::from(format!("sender-{handle}")),
            Value::Uint(handle),
            Value::Boolean(false),
            Value::Ubyte(2),
            Value::Ubyte(0),
            described(0x28, Vec::new()),
            target,
            NONE,
            NONE,
            Value::Uint(0),
            NONE,
            NONE,
            NONE,
            Value::Map(properties),
        ];
        self.say(ATTACH, fields).await;
        self.another_answer().await
    }

    /// The condition and description with which a link that was asked for is refused.
    pub(super) async fn refusal(&mut self, attached: &ReceivedFrame) -> (String, String) {
        assert_eq!(attached.code, ATTACH);
        assert_eq!((attached.field(5), attached.field(6)), (&NONE, &NONE), "a refused link has no ends");
        let detached = self.another_answer().await;
        assert_eq!(detached.code, DETACH, "{detached:?}");
        detached.error(2)
    }

    pub(super) async fn credit(&mut self, handle: u32, from: u32, credit: u32, drain: bool) {
        let windows = [Value::Uint(0), Value::Uint(5_000), Value::Uint(self.sent), Value::Uint(5_000)];
        let link = [Value::Uint(handle), Value::Uint(from), Value::Uint(credit), NONE, Value::Boolean(drain)];
        self.say(FLOW, [windows.to_vec(), link.to_vec()].concat()).await;
    }

    /// All messages that come before the answer to a drain.
    pub(super) async fn drained(&mut self, handle: u32, credit: u32) -> Vec<ReceivedFrame> {
        let from = self.counts.get(&handle).copied().unwrap_or_default();
        self.credit(handle, from, credit, true).await;
        let mut messages = Vec::new();
        loop {
            let incoming = self.next_answer().await;
            match incoming.code {
                TRANSFER => messages.push(incoming),
                FLOW if *incoming.field(4) == Value::Uint(handle) => {
                    let count = incoming.field(5).as_u64().and_then(|count| u32::try_from(count).ok());
                    self.counts.insert(handle, count.unwrap_or_default());
                    return messages;
                }
                _ => {}
            }
        }
    }

    /// Sends a message with a state, as in a transaction.
    pub(super) async fn transfer_in(&mut self, handle: u32, state: Value, payload: &[u8]) {
        self.transfer_as(handle, (false, state), 0, payload).await;
    }

    /// Sends a message, in frames as large as the endpoint takes; says its number.
    pub(super) async fn transfer(&mut self, handle: u32, format: u32, payload: &[u8]) -> u32 {
        self.transfer_as(handle, (false, NONE), format, payload).await
    }

    /// Sends a message that may be settled at once, and may have a state; says its number.
    pub(super) async fn transfer_as(
        &mut self,
        handle: u32,
        (settled, state): (bool, Value),
        format: u32,
        payload: &[u8],
    ) -> u32 {
        let number = self.sent;
        self.sent += 1;
        let mut parts = payload.chunks(60_000).peekable();
        while let Some(part) = parts.next() {
            let tag = Bytes::copy_from_slice(&number.to_be_bytes());
            let more = parts.peek().is_some();
            let fields = vec![
                Value::Uint(handle),
                Value::Uint(number),
                Value::Binary(tag),
                Value::Uint(format),
                Value::Boolean(settled),
                Value::Boolean(more),
                NONE,
                state.clone(),
            ];
            self.say_with(TRANSFER, fields, part).await;
        }
        number
    }

    /// Says how a delivery that was received is to end, and hears the answer.
    pub(super) async fn settle(&mut self, number: u32, state: Value) -> ReceivedFrame {
        let number = Value::Uint(number);
        let fields = vec![Value::Boolean(true), number.clone(), number, Value::Boolean(false), state];
        self.say(DISPOSITION, fields).await;
        loop {
            let incoming = self.next_received().await;
            match incoming.code {
                DISPOSITION => return incoming,
                // What becomes ready by it may be sent before it is answered.
                TRANSFER => self.early.push_back(incoming),
                _ => {}
            }
        }
    }

    /// Ends a link, and hears that it is over.
    pub(super) async fn detach(&mut self, handle: u32) {
        self.say(DETACH, vec![Value::Uint(handle), Value::Boolean(true)]).await;
        while self.another_answer().await.code != DETACH {}
    }
}

pub(super) fn described(code: u64, fields: Vec<Value>) -> Value {
    Value::described(Value::Ulong(code), Value::List(fields))
}

pub(super) fn map(entries: Vec<(&'static str, Value)>) -> Value {
    Value::Map(entries.into_iter().map(|(name, value)| (Value::from(name), value)).collect())
}

/// A message of one data section.
pub(super) fn data(body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    encode_data(&mut out, body);
    out.freeze()
}

fn incoming(frame: &Bytes) -> ReceivedFrame {
    let (header, size) = match frame[3] {
        0x45 => (4, 0),
        0xc0 => (5, usize::from(frame[4])),
        0xd0 => (8, u32::from_be_bytes(frame[4..8].try_into().unwrap()) as usize),
        code => panic!("{code:#x} is no list"),
    };
    let end = header + size;
    let Value::Described(pair) = Value::decode(&frame.slice(..end)).unwrap() else {
        panic!("it is described")
    };
    let (code, fields) = *pair;
    let fields = fields.as_list().unwrap().to_vec();
    ReceivedFrame { code: code.as_u64().unwrap(), fields, payload: frame.slice(end..) }
}
