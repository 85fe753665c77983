//! What the sessions of a connection share: the way out, the events, and what everything together may cost.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use bytes::Bytes;

use crate::amqp::error::AmqpError;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::LinkId;
use crate::amqp::frame_queue::FrameQueue;
use crate::amqp::options::ConnectionOptions;

/// What every session is given when something happens to it.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) options: ConnectionOptions,
    pub(crate) outbox: FrameQueue,
    pub(crate) events: VecDeque<AmqpEvent>,
    /// How many links there ever were.
    pub(crate) links_ever: u64,
    /// How many links there are.
    pub(crate) links: usize,
    /// How many deliveries of the peer are unsettled.
    pub(crate) unsettled_in: usize,
    /// How many deliveries to the peer are unsettled. They are counted apart: a peer that settles nothing can still send.
    pub(crate) unsettled_out: usize,
    /// Bytes of messages of which only a part has come.
    pub(crate) partial_bytes: usize,
    /// Bytes of messages that wait for a peer's window.
    pub(crate) queued_bytes: usize,
    /// Of links that are over, and whose end the application has not heard or answered: which deliveries were not written whole.
    pub(crate) unsent: BTreeMap<LinkId, Vec<u32>>,
}

impl Hub {
    pub(crate) fn new(options: ConnectionOptions) -> Hub {
        let outbox = FrameQueue::new(options.frame_bytes_max as usize);
        Hub {
            options,
            outbox,
            events: VecDeque::new(),
            links_ever: 0,
            links: 0,
            unsettled_in: 0,
            unsettled_out: 0,
            partial_bytes: 0,
            queued_bytes: 0,
            unsent: BTreeMap::new(),
        }
    }

    /// Whether more may be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.outbox.len() + self.queued_bytes < self.options.buffered_bytes_max && !self.is_full_of_answers()
    }

    /// Whether so many answers wait to be written that nothing is heard that would be answered. Messages do not count: who takes them slowly
    /// settles meanwhile, and renews locks.
    pub(crate) fn is_full_of_answers(&self) -> bool {
        self.outbox.answer_len() >= self.options.buffered_bytes_max
    }

    /// Tells that a transaction misses what its peer has settled: it is about something that has ended here.
    pub(crate) fn miss_part(&mut self, settled_transaction: Option<&Bytes>) {
        if let Some(transaction) = settled_transaction {
            // A copy, because a part of a frame keeps all of it.
            let transaction = Bytes::copy_from_slice(transaction);
            self.events.push_back(AmqpEvent::MissingPart { transaction });
        }
    }

    /// Whether one more delivery of the peer may be unsettled.
    pub(crate) fn may_unsettle_in(&self) -> bool {
        self.unsettled_in < self.options.unsettled_max
    }

    /// How many more deliveries to the peer may be unsettled.
    pub(crate) fn unsettled_out_left(&self) -> usize {
        self.options.unsettled_max.saturating_sub(self.unsettled_out)
    }

    /// How many bytes of messages may have come in part: at least one message must fit.
    pub(crate) fn partial_bytes_max(&self) -> usize {
        let message = usize::try_from(self.options.message_bytes_max).unwrap_or(usize::MAX);
        self.options.partial_bytes_max.max(message)
    }
}

/// What a peer has broken, and so what ends.
#[derive(Debug)]
pub(crate) enum Breach {
    Connection(AmqpError),
    Session(AmqpError),
    /// The link of this handle.
    Link(u32, AmqpError),
}

impl Breach {
    pub(crate) fn connection(condition: &'static str, description: &'static str) -> Breach {
        Breach::Connection(AmqpError::new(condition, description))
    }

    pub(crate) fn session(condition: &'static str, description: &'static str) -> Breach {
        Breach::Session(AmqpError::new(condition, description))
    }

    pub(crate) fn link(handle: u32, condition: &'static str, description: &'static str) -> Breach {
        Breach::Link(handle, AmqpError::new(condition, description))
    }
}
