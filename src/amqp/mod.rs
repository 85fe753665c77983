//! AMQP 1.0, server side, without I/O: bytes in, events out; commands in, bytes out.
//!
//! A [`Connection`] is one peer. Give it what was read, ask for the [`AmqpEvent`]s, answer them with commands, write its
//! output. It reads no socket, asks for no time and knows no queue, so every conversation can be played again.
//!
//! # The loop around it
//!
//! In this order: events until there are none, then the output until there is none, then wait for what comes first:
//! bytes, the deadline, or something of the application's. A connection takes no further frame while
//! [`ConnectionOptions::buffered_bytes_max`] of answers wait to be written, so a peer that asks and never reads stops itself. A loop that
//! reads and writes at once reads while [`Connection::may_read`]; what waits because the peer's window is closed
//! ([`Connection::has_room`]) is no reason not to read, on the contrary.
//!
//! Of the socket: switch off Nagle's algorithm; where the system can (`TCP_QUICKACK`), acknowledge after every read,
//! because SDKs leave it on at their side, and then a message waits 40 ms behind a flow that nobody answers. When the
//! connection is finished, shut down writing and read until the end, or the peer may lose what was written last.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use seriatim::amqp::{AmqpEvent, Connection, ConnectionOptions, DeliveryOutcome, LinkAnswer};
//!
//! /// Takes every message of one peer. A real loop gives the milliseconds since it began instead of 0, keeps
//! /// `deadline_ms`, and calls `tick`.
//! fn serve(mut stream: impl Read + Write) -> std::io::Result<Vec<bytes::Bytes>> {
//!     let mut connection = Connection::new(ConnectionOptions::default(), 0);
//!     let (mut taken, mut chunk) = (Vec::new(), [0; 4096]);
//!     loop {
//!         while let Some(event) = connection.next_event() {
//!             match event {
//!                 AmqpEvent::Sasl { mechanism, .. } => connection.answer_sasl(mechanism == "ANONYMOUS"),
//!                 AmqpEvent::Attached { link, attach } => {
//!                     connection.accept_link(link, LinkAnswer::to(&attach).credit(100));
//!                 }
//!                 AmqpEvent::Message { link, delivery, payload, .. } => {
//!                     taken.push(payload); // In earnest: settle when it is on disk.
//!                     connection.settle(link, delivery, DeliveryOutcome::Accepted);
//!                     if connection.credit(link) < 50 {
//!                         connection.grant(link, 100);
//!                     }
//!                 }
//!                 AmqpEvent::Detached { link, .. } => connection.detach(link, None),
//!                 AmqpEvent::Ended { channel, .. } => connection.end(channel),
//!                 AmqpEvent::Closed { .. } => connection.close(None),
//!                 _ => {}
//!             }
//!         }
//!         if !connection.output().is_empty() {
//!             stream.write_all(&connection.output().split())?;
//!         } else if connection.is_finished() {
//!             return Ok(taken);
//!         } else {
//!             match stream.read(&mut chunk)? {
//!                 0 => connection.receive_end(),
//!                 n => connection.receive(&chunk[..n], 0),
//!             }
//!         }
//!     }
//! }
//! #
//! # struct Wire(std::io::Cursor<Vec<u8>>, Vec<u8>);
//! # impl Read for Wire {
//! #     fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> { self.0.read(buf) }
//! # }
//! # impl Write for Wire {
//! #     fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> { self.1.write(buf) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # let said = [
//! #     &b"AMQP\0\x01\0\0"[..],
//! #     b"\0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01p", // open
//! #     b"\0\0\0\x14\x02\0\0\0\0\x53\x11\xc0\x07\x04\x40\x43\x52\x09\x52\x09", // begin
//! #     b"\0\0\0\x13\x02\0\0\0\0\x53\x12\xc0\x06\x03\xa1\x01l\x43\x42", // attach
//! #     b"\0\0\0\x17\x02\0\0\0\0\x53\x14\xc0\x06\x03\x43\x43\xa0\x01t\0\x53\x75\x40", // transfer
//! # ];
//! # let said = std::io::Cursor::new(said.concat());
//! # let mut wire = Wire(said, Vec::new());
//! # assert_eq!(serve(&mut wire)?, [&b"\0\x53\x75\x40"[..]]);
//! # assert!(wire.1.starts_with(b"AMQP\0\x01\0\0"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What an application must know
//!
//! - **Every [`AmqpEvent::Sasl`] and [`AmqpEvent::Attached`] wants an answer**, now or much later. Nothing more is read before
//!   the first is answered; a link that is not answered holds up only itself. Commands for what is over do nothing, also
//!   after the peer has reused the handle.
//! - **Every [`AmqpEvent::Detached`], [`AmqpEvent::Ended`] and [`AmqpEvent::Closed`] wants an answer** too ([`Connection::detach`],
//!   [`Connection::end`], [`Connection::close`]): when everything that was said before it is done, because the peer takes
//!   the answer for that. Until then deliveries can be settled, and what the peer said of them answered. A peer that uses
//!   the handle or the channel again is not read before.
//! - **Sending**: [`Connection::credit`] says how many messages a receiver still takes. [`Connection::send`] takes a
//!   message only while [`Connection::has_room`]; what it has taken it writes, as the peer's window opens. Among
//!   several links, take turns by asking `has_room` between messages.
//! - **Settling**: a receiver that settles second says its outcome ([`AmqpEvent::Settled`] with `settled: false`, once for
//!   each delivery) and waits for [`Connection::settle`] to say the same, or `Rejected` with an error. One that
//!   settles itself needs no answer. Successive deliveries that are settled alike share a frame until the output is
//!   taken.
//! - **Receiving**: a sender has no credit until [`LinkAnswer::credit`] or [`Connection::grant`] gives some, which
//!   raises it to a number; grant again as messages are done with. Windows of sessions are kept open by themselves.
//! - **Draining**: a receiver's [`AmqpEvent::Credit`] with `drain: true` wants [`Connection::drained`] after whatever can
//!   be sent at once.
//! - **Refusing** a link, or detaching it, takes an error of three fields, which is always written with all three.
//! - **A dynamic source** ([`Source::dynamic`]) asks for a node: accept it with an address of your own making.
//! - **Payloads and tags share memory** with what was read around them: copy what is kept for long.
//! - **Deliveries of a link that is over** are forgotten here; whatever they held is the application's to release.
//!   [`Connection::unsent`] names those of which the peer has not been sent everything.
//! - **The end of a session** tells of its links first, the end of the connection does not: forget them all.

mod array;
mod attach;
mod attaching;
mod closing;
mod connection;
mod decode_error;
mod error;
mod event;
mod fields;
mod frame;
mod frame_queue;
mod handshake;
mod hub;
mod incoming;
mod link;
mod list;
pub mod message;
mod opened;
mod opening;
mod options;
mod outcome;
mod outgoing;
mod pending_transfer;
mod performative;
mod properties;
mod pulse;
mod reader;
mod sasl;
mod serial;
mod session;
mod settling;
mod terminus;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod transfer;
mod value;
mod writer;

pub use crate::amqp::attach::Attach;
pub use crate::amqp::attach::ReceiverSettles;
pub use crate::amqp::attach::Role;
pub use crate::amqp::attach::SenderSettles;
pub use crate::amqp::connection::Connection;
pub use crate::amqp::decode_error::DecodeError;
pub use crate::amqp::error::AmqpError;
pub use crate::amqp::error::condition;
pub use crate::amqp::event::AmqpEvent;
pub use crate::amqp::event::DeliveryNumber;
pub use crate::amqp::event::LinkAnswer;
pub use crate::amqp::event::LinkId;
pub use crate::amqp::event::OutgoingMessage;
pub use crate::amqp::event::Unsent;
pub use crate::amqp::opening::Open;
pub use crate::amqp::options::ConnectionOptions;
pub use crate::amqp::outcome::DeliveryOutcome;
pub use crate::amqp::properties::MessageProperties;
pub use crate::amqp::terminus::Source;
pub use crate::amqp::terminus::Target;
pub use crate::amqp::text::Text;
pub use crate::amqp::value::Map;
pub use crate::amqp::value::Value;
pub use crate::amqp::value::lookup;
