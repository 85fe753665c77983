//! What a connection tells its application, and what the application answers.

use std::fmt;

use bytes::Bytes;

use crate::amqp::attach::Attach;
use crate::amqp::attach::ReceiverSettles;
use crate::amqp::attach::SenderSettles;
use crate::amqp::error::AmqpError;
use crate::amqp::opening::Open;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::terminus::Source;
use crate::amqp::terminus::Target;
use crate::amqp::text::Text;
use crate::amqp::value::Map;

/// One link of a connection. It never names another one, even if the peer uses the same handle again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId {
    pub(crate) channel: u16,
    pub(crate) handle: u32,
    /// Counts the links of the connection.
    pub(crate) serial: u64,
}

impl LinkId {
    /// The number of the session, which a later session may have again.
    pub fn channel(self) -> u16 {
        self.channel
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.channel, self.handle, self.serial)
    }
}

/// The number of a delivery, which its session gives it in its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryNumber(pub(crate) u32);

impl fmt::Display for DeliveryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What has happened on a connection, in the order of the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum AmqpEvent {
    /// The peer says who it is. Nothing more is read before `Connection::answer_sasl`.
    Sasl {
        /// The mechanism it has chosen, one of those offered.
        mechanism: Text,
        /// What the mechanism asks for: name and password, for PLAIN.
        response: Bytes,
    },
    /// The connection is open, and answered.
    Opened(Box<Open>),
    /// The peer wants a link: answer with `accept_link` or `refuse_link`, now or later.
    Attached {
        /// The link.
        link: LinkId,
        /// What the peer said. Its role is the peer's: from a sender, messages come.
        attach: Box<Attach>,
    },
    /// A whole message has come over a link whose peer sends.
    Message {
        /// The link.
        link: LinkId,
        /// What to settle it by.
        delivery: DeliveryNumber,
        /// The format of the message; 0 is the standard's.
        format: u32,
        /// The name the sender gives it.
        tag: Bytes,
        /// Its sections.
        payload: Bytes,
        /// Whether the sender has settled it: then nothing is expected.
        settled: bool,
        /// The transaction with which it comes, or not at all.
        transaction: Option<Bytes>,
    },
    /// A message has come that is larger than its link takes: reject it. It counts as one that has come.
    TooLarge {
        /// The link.
        link: LinkId,
        /// What to settle it by.
        delivery: DeliveryNumber,
        /// Whether the sender has settled it: then nothing is expected.
        settled: bool,
        /// The transaction with which it comes, or not at all.
        transaction: Option<Bytes>,
    },
    /// The peer says how a delivery has ended, or is about to. It comes at most once for each delivery.
    Settled {
        /// The link.
        link: LinkId,
        /// The delivery.
        delivery: DeliveryNumber,
        /// How it has ended; the link's default, if the peer does not say.
        outcome: Option<DeliveryOutcome>,
        /// Whether it is settled. If not, the peer waits for `Connection::settle`.
        settled: bool,
        /// The transaction with which it ends so, or not at all.
        transaction: Option<Bytes>,
    },
    /// Something of a transaction that the peer has settled, and so waits for no answer to, is about a link or a delivery that
    /// has ended here. A transaction without it is not what the peer has asked for.
    MissingPart {
        /// The transaction.
        transaction: Bytes,
    },
    /// A receiving peer's credit has changed.
    Credit {
        /// The link.
        link: LinkId,
        /// How many messages it would take now, those sent meanwhile left out.
        credit: u32,
        /// Whether it wants what there is at once, and then `Connection::drained`.
        drain: bool,
    },
    /// A link is over. If the peer has ended it, it waits for `Connection::detach`: until then what it has sent can be
    /// settled, and what it said of deliveries answered. If the peer has broken a rule it is being told, and the link's
    /// deliveries are forgotten; the answer does nothing then.
    Detached {
        /// The link.
        link: LinkId,
        /// Why, unless it is an ordinary end. Of an error that has ended the session, only the beginning.
        error: Option<AmqpError>,
        /// Whether it is closed, and not only detached.
        closed: bool,
    },
    /// A session is over. Its links were told before. If the peer has ended it, it waits for `Connection::end`.
    Ended {
        /// Its channel.
        channel: u16,
        /// Why, unless it is an ordinary end.
        error: Option<AmqpError>,
    },
    /// The connection is over; this is the last event. If the peer has ended it, or will say nothing more, it waits for
    /// `Connection::close`, and until then deliveries can be settled. What is left in the output is to be written.
    Closed {
        /// Why, unless it is an ordinary end.
        error: Option<AmqpError>,
    },
}

/// How a link is accepted. [`LinkAnswer::to`] echoes what the peer asked for, which is what most peers want to see.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkAnswer {
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go to.
    pub target: Option<Target>,
    /// How the sender settles.
    pub sender_settles: SenderSettles,
    /// How the receiver settles.
    pub receiver_settles: ReceiverSettles,
    /// The largest message of a peer that sends: at most the connection's limit, which is meant by none. One that receives hears of
    /// none, and is sent what it takes itself.
    pub message_bytes_max: Option<u64>,
    /// How many bytes more than that are taken all the same, up to the connection's limit: a client that fills a batch to the
    /// last byte may forget what stands around it.
    pub message_bytes_beyond: u64,
    /// How many messages a sending peer may send at once; for a receiving one it means nothing.
    pub credit: u32,
    /// Extensions.
    pub offered_capabilities: Vec<Text>,
    /// More about the link.
    pub properties: Map,
}

impl LinkAnswer {
    /// An answer that agrees to all that the peer asked for and gives no credit.
    pub fn to(attach: &Attach) -> LinkAnswer {
        LinkAnswer {
            source: attach.source.clone(),
            target: attach.target.clone(),
            sender_settles: attach.sender_settles,
            receiver_settles: attach.receiver_settles,
            message_bytes_max: None,
            message_bytes_beyond: 0,
            credit: 0,
            offered_capabilities: Vec::new(),
            properties: Map::new(),
        }
    }

    /// With credit.
    pub fn credit(mut self, credit: u32) -> LinkAnswer {
        self.credit = credit;
        self
    }
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutgoingMessage {
    /// The delivery's name, at most 32 bytes; it is to be unique among the link's unsettled ones.
    pub tag: Bytes,
    /// The sections of the message.
    pub payload: Bytes,
    /// Its format; 0 is the standard's.
    pub format: u32,
    /// Whether it is settled at once, so that nothing is heard of it.
    pub settled: bool,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// The link is not there (any more), not answered, or the peer is its sender.
    #[error("the link does not take messages")]
    NoLink,
    /// The peer has not asked for it.
    #[error("the peer has given no credit")]
    NoCredit,
    /// Too much waits to be written: try again when it is less.
    #[error("there is no room for more")]
    NoRoom,
    /// Too many deliveries are unsettled: try again when they are fewer.
    #[error("too many deliveries are unsettled")]
    TooManyUnsettled,
    /// The message, or its tag, is larger than the peer takes.
    #[error("the message is larger than the peer takes")]
    TooLarge,
}
