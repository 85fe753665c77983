//! AMQP 1.0, server side, without I/O: bytes in, events out; commands in, bytes out.

mod attach;
mod closing;
mod connection;
mod error;
mod event;
mod fields;
mod malformed;
pub mod message;
mod opening;
mod options;
mod outcome;
mod performative;
mod properties;
mod reader;
mod terminus;
#[cfg(test)]
mod tests;
mod text;
mod transfer;
mod value;
mod writer;

pub use crate::amqp::attach::Attach;
pub use crate::amqp::attach::ReceiverSettles;
pub use crate::amqp::attach::Role;
pub use crate::amqp::attach::SenderSettles;
pub use crate::amqp::connection::Connection;
pub use crate::amqp::error::AmqpError;
pub use crate::amqp::error::condition;
pub use crate::amqp::event::DeliveryNumber;
pub use crate::amqp::event::Event;
pub use crate::amqp::event::LinkAnswer;
pub use crate::amqp::event::LinkId;
pub use crate::amqp::event::Outgoing;
pub use crate::amqp::event::Unsent;
pub use crate::amqp::malformed::Malformed;
pub use crate::amqp::opening::Open;
pub use crate::amqp::options::ConnectionOptions;
pub use crate::amqp::outcome::Outcome;
pub use crate::amqp::properties::Properties;
pub use crate::amqp::terminus::Source;
pub use crate::amqp::terminus::Target;
pub use crate::amqp::text::Text;
pub use crate::amqp::value::Map;
pub use crate::amqp::value::Value;
pub use crate::amqp::value::lookup;
