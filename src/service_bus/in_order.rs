//! What happens in the order in which the client sent it.

use crate::amqp::AmqpError;
use crate::amqp::Attach;
use crate::amqp::LinkId;
use crate::service_bus::refusal::AmqpRefusal;

/// What waits for its turn.
pub(crate) enum InOrder {
    /// A link ends, by its client or for a reason of ours.
    Leave(LinkId, Option<AmqpRefusal>),
    /// The session of a channel ends; its links have ended before.
    End(u16),
    /// The connection ends.
    Close(Option<AmqpError>),
    /// A client wants a link.
    Attach(LinkId, Box<Attach>),
}
