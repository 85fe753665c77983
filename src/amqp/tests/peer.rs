//! The other side: a client that says what it likes, and the connection it says it to.

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::ConnectionOptions;
pub(crate) use crate::amqp::attach::Attach;
pub(crate) use crate::amqp::attach::ReceiverSettles;
pub(crate) use crate::amqp::attach::Role;
pub(crate) use crate::amqp::attach::SenderSettles;
use crate::amqp::closing::CLOSE;
pub(crate) use crate::amqp::closing::ClosingFrame;
pub(crate) use crate::amqp::closing::Detach;
use crate::amqp::closing::END;
use crate::amqp::connection::Connection;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::LinkAnswer;
use crate::amqp::event::LinkId;
use crate::amqp::event::OutgoingMessage;
use crate::amqp::frame;
use crate::amqp::frame::FrameKind;
use crate::amqp::list;
use crate::amqp::opening::Begin;
use crate::amqp::opening::Open;
pub(crate) use crate::amqp::outcome::DeliveryOutcome;
pub(crate) use crate::amqp::performative::Performative;
use crate::amqp::sasl;
pub(crate) use crate::amqp::terminus::Source;
pub(crate) use crate::amqp::terminus::Target;
pub(crate) use crate::amqp::transfer::Disposition;
pub(crate) use crate::amqp::transfer::Flow;
pub(crate) use crate::amqp::transfer::Transfer;
use crate::amqp::writer;

pub(crate) const HEADER: &[u8] = b"AMQP\x00\x01\x00\x00";
pub(crate) const SASL_HEADER: &[u8] = b"AMQP\x03\x01\x00\x00";

/// The bytes of a frame.
pub(crate) fn frame(channel: u16, performative: &Performative) -> Vec<u8> {
    raw_frame(0, channel, |out| match performative {
        Performative::Open(open) => open.write(out),
        Performative::Begin(begin) => begin.write(out),
        Performative::Attach(attach) => attach.write(out),
        Performative::Flow(flow) => flow.write(out),
        Performative::Transfer(transfer, payload) => {
            transfer.write(out);
            out.put_slice(payload);
        }
        Performative::Disposition(disposition) => disposition.write(out),
        Performative::Detach(detach) => detach.write(out),
        Performative::End(end) => end.write(out, END),
        Performative::Close(close) => close.write(out, CLOSE),
    })
}

pub(crate) fn raw_frame(kind: u8, channel: u16, write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut body = BytesMut::new();
    write(&mut body);
    let mut bytes = (body.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend([2, kind]);
    bytes.extend(channel.to_be_bytes());
    bytes.extend(&body);
    bytes
}

pub(crate) fn sasl_init(mechanism: &str) -> Vec<u8> {
    raw_frame(1, 0, |out| {
        writer::descriptor(out, sasl::INIT);
        list::write(out, |fields| {
            fields.symbol(mechanism);
            fields.binary(&b"\0name\0password"[..]);
        });
    })
}

pub(crate) fn open() -> Performative {
    Performative::Open(Box::new(Open { container_id: "peer".into(), ..Open::default() }))
}

pub(crate) fn begin() -> Performative {
    let window = 1_000;
    Performative::Begin(Begin {
        incoming_window: window,
        outgoing_window: window,
        handle_max: Some(100),
        ..Begin::default()
    })
}

pub(crate) fn attach(name: &str, handle: u32, role: Role) -> Attach {
    Attach {
        name: name.into(),
        handle,
        role,
        sender_settles: SenderSettles::Unsettled,
        receiver_settles: ReceiverSettles::Second,
        source: Some(Source { address: Some("here".into()), ..Source::default() }),
        target: Some(Target { address: Some("there".into()), ..Target::default() }),
        initial_delivery_count: Some(0),
        max_message_bytes: None,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: Vec::new(),
    }
}

pub(crate) fn flow(handle: u32, credit: u32) -> Flow {
    Flow {
        next_incoming_id: Some(0),
        incoming_window: 1_000,
        outgoing_window: 1_000,
        handle: Some(handle),
        delivery_count: Some(0),
        link_credit: Some(credit),
        ..Flow::default()
    }
}

pub(crate) fn transfer(handle: u32, delivery: u32, payload: &[u8]) -> Performative {
    let transfer = Transfer {
        handle,
        delivery_id: Some(delivery),
        delivery_tag: Some(Bytes::copy_from_slice(&delivery.to_be_bytes())),
        message_format: Some(0),
        ..Transfer::default()
    };
    Performative::Transfer(transfer, Bytes::copy_from_slice(payload))
}

pub(crate) fn disposition(
    role: Role,
    first: u32,
    last: u32,
    settled: bool,
    state: DeliveryOutcome,
) -> Performative {
    Performative::Disposition(Disposition {
        role,
        first,
        last: Some(last),
        settled,
        state: Some(state),
        transaction: None,
    })
}

pub(crate) fn message(payload: impl Into<Bytes>) -> OutgoingMessage {
    OutgoingMessage { tag: Bytes::from_static(b"tag"), payload: payload.into(), format: 0, settled: false }
}

/// A connection and the peer that speaks to it.
pub(crate) struct Pair {
    pub(crate) connection: Connection,
    /// The instant at which everything happens.
    pub(crate) now_ms: u64,
}

impl Pair {
    /// Nothing was said yet.
    pub(crate) fn silent(options: ConnectionOptions) -> Pair {
        Pair { connection: Connection::new(options, 0), now_ms: 0 }
    }

    /// The connection is open, and a session has begun on channel 0.
    pub(crate) fn begun(options: ConnectionOptions) -> Pair {
        let mut pair = Pair::silent(options);
        pair.says_bytes(HEADER);
        pair.says(open());
        assert!(matches!(pair.events()[..], [AmqpEvent::Opened(_)]));
        pair.says(begin());
        assert_eq!(pair.events(), []);
        assert_eq!(pair.connection.output()[..8], *HEADER);
        let _ = pair.connection.output().split_to(8);
        assert!(matches!(pair.receive_frames()[..], [Performative::Open(_), Performative::Begin(_)]));
        pair
    }

    /// And a link is attached at handle 0: from a sender with so much credit, or to a receiver that gives so much.
    pub(crate) fn attached(role: Role, credit: u32) -> (Pair, LinkId) {
        Pair::attached_with(ConnectionOptions::default(), role, credit)
    }

    pub(crate) fn attached_with(options: ConnectionOptions, role: Role, credit: u32) -> (Pair, LinkId) {
        let mut pair = Pair::begun(options);
        let link = pair.attach(attach("link", 0, role), credit);
        if role.is_receiver() {
            pair.says(Performative::Flow(flow(0, credit)));
            assert_eq!(pair.events(), [AmqpEvent::Credit { link, credit, drain: false }]);
        }
        pair.receive_frames();
        (pair, link)
    }

    pub(crate) fn attach(&mut self, attach: Attach, credit: u32) -> LinkId {
        self.says(Performative::Attach(Box::new(attach)));
        let events = self.events();
        let [AmqpEvent::Attached { link, attach }] = &events[..] else {
            panic!("{events:?}");
        };
        self.connection.accept_link(*link, LinkAnswer::to(attach).credit(credit));
        *link
    }

    pub(crate) fn says(&mut self, performative: Performative) {
        self.says_bytes(&frame(0, &performative));
    }

    pub(crate) fn says_bytes(&mut self, bytes: &[u8]) {
        self.connection.receive(bytes, self.now_ms);
    }

    pub(crate) fn events(&mut self) -> Vec<AmqpEvent> {
        std::iter::from_fn(|| self.connection.next_event()).collect()
    }

    /// The frames that wait, heartbeats left out; the events are asked for first, because they answer.
    pub(crate) fn receive_frames(&mut self) -> Vec<Performative> {
        performatives(self.connection.output())
    }

    /// What happens when the peer says it: the events, and what it hears.
    pub(crate) fn after(&mut self, performative: Performative) -> (Vec<AmqpEvent>, Vec<Performative>) {
        self.says(performative);
        (self.events(), self.receive_frames())
    }

    /// The condition with which the connection was closed, if it was.
    pub(crate) fn closed_for(&mut self) -> Option<String> {
        self.events().into_iter().find_map(|event| match event {
            AmqpEvent::Closed { error } => error.map(|error| error.condition.to_string()),
            _ => None,
        })
    }
}

/// The next frame of some output with its channel, heartbeats left out, if it is complete.
pub(crate) fn next_performative(output: &mut BytesMut) -> Option<(u16, Performative)> {
    loop {
        let frame = frame::take(output, usize::MAX).unwrap()?;
        assert_eq!(frame.kind, FrameKind::Amqp);
        if !frame.body.is_empty() {
            return Some((frame.channel, Performative::read(&frame.body).unwrap()));
        }
    }
}

/// All frames of some output.
pub(crate) fn performatives(output: &mut BytesMut) -> Vec<Performative> {
    let mut frames = Vec::new();
    while let Some((_, performative)) = next_performative(output) {
        frames.push(performative);
    }
    assert!(output.is_empty());
    frames
}
