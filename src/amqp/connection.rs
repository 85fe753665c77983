//! One connection, as its server sees it.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::amqp::error::AmqpError;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::Event;
use crate::amqp::event::LinkAnswer;
use crate::amqp::event::LinkId;
use crate::amqp::event::Outgoing;
use crate::amqp::event::Unsent;
use crate::amqp::options::ConnectionOptions;
use crate::amqp::outcome::Outcome;

/// The server side of one connection: bytes in, events out; commands in, bytes out. It knows no socket and no clock.
#[derive(Debug)]
pub struct Connection {
    options: ConnectionOptions,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
}

impl Connection {
    /// A connection of which nothing was read yet. The instants it is given are milliseconds since any beginning.
    pub fn new(options: ConnectionOptions, _now_ms: u64) -> Connection {
        Connection { options, input: BytesMut::new(), output: BytesMut::new(), events: VecDeque::new() }
    }

    /// Takes what was read from the peer.
    pub fn receive(&mut self, bytes: &[u8], _now_ms: u64) {
        self.input.extend_from_slice(bytes);
    }

    /// The peer will send nothing more.
    pub fn receive_end(&mut self) {}

    /// The next event. None, if the rest of the input is incomplete or the output is full.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What is to be written to the peer: take it from the front.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Whether more may be sent. If not, write the output first.
    pub fn has_room(&self) -> bool {
        self.output.len() < self.options.buffered_bytes_max
    }

    /// Whether nothing more is to be read or said. Write the output, and drop it.
    pub fn is_finished(&self) -> bool {
        false
    }

    /// When [`tick`](Connection::tick) is due next.
    pub fn deadline_ms(&self) -> Option<u64> {
        None
    }

    /// Does what is due: heartbeats, and the end of a peer that was silent too long.
    pub fn tick(&mut self, _now_ms: u64) {}

    /// Answers [`Event::Sasl`].
    pub fn answer_sasl(&mut self, _is_welcome: bool) {}

    /// Attaches a link that the peer asked for. Nothing happens if the link is answered or over.
    pub fn accept_link(&mut self, _link: LinkId, _answer: LinkAnswer) {}

    /// Refuses a link that the peer asked for. It is over: no event tells so.
    pub fn refuse_link(&mut self, _link: LinkId, _error: AmqpError) {}

    /// Sends a message to a receiving peer.
    ///
    /// # Errors
    /// It was not sent, and nothing has changed.
    pub fn send(&mut self, _link: LinkId, _message: Outgoing) -> Result<DeliveryNumber, Unsent> {
        Err(Unsent::NoLink)
    }

    /// Settles a delivery with an outcome. Nothing happens if it is settled already, or its link is over.
    pub fn settle(&mut self, _link: LinkId, _delivery: DeliveryNumber, _outcome: Outcome) {}

    /// Lets a sending peer have this much credit, those counted that it has; credit is never taken back.
    pub fn grant(&mut self, _link: LinkId, _credit: u32) {}

    /// How many messages may be sent on the link now: by us, or by the peer if it is the sender.
    pub fn credit(&self, _link: LinkId) -> u32 {
        0
    }

    /// Tells a draining peer that there is nothing more: it takes back its credit.
    pub fn drained(&mut self, _link: LinkId) {}

    /// Ends a link. No event tells so.
    pub fn detach(&mut self, _link: LinkId, _error: Option<AmqpError>) {}

    /// Ends the connection.
    pub fn close(&mut self, _error: Option<AmqpError>) {}
}
