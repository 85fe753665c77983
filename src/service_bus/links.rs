//! Links, and what each is for.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::amqp::DeliveryNumber;
use crate::amqp::LinkId;
use crate::amqp::Outgoing;
use crate::amqp::Text;
use crate::amqp::Unsent;
use crate::message::Message;
use crate::service_bus::address::Address;
use crate::service_bus::entity::Entity;
use crate::service_bus::holds::Hold;
use crate::service_bus::session::Session;
use crate::service_bus::talk::Talk;

/// A link, and what it is for.
pub(crate) enum Link {
    /// It is not decided yet.
    Pending,
    /// Messages come to a queue.
    Sender(Sender),
    /// Messages go out of a queue.
    Receiver(Receiver),
    /// Requests come to the management of an entity, or to the node for tokens.
    Requests(Requests),
    /// Answers go out.
    Replies(Replies),
}

/// A link over which messages come to a queue.
pub(crate) struct Sender {
    pub(crate) entity: Entity,
    /// Messages that came together, to be sent together.
    pub(crate) group: Group,
}

/// Messages that came together.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) messages: Vec<Message>,
    /// What each is settled by; nothing for one that the client has settled.
    pub(crate) deliveries: Vec<Option<DeliveryNumber>>,
    pub(crate) bytes: usize,
}

/// A link over which messages go out of a queue.
pub(crate) struct Receiver {
    pub(crate) entity: Entity,
    /// Whether what is sent is settled, and gone.
    pub(crate) deletes: bool,
    /// What is being fetched; cancelled, it is given back.
    pub(crate) fetching: Option<CancellationToken>,
    /// Whether the client wants to hear when there is nothing more.
    pub(crate) drains: bool,
    /// What the client has not settled.
    pub(crate) unsettled: HashMap<DeliveryNumber, Hold>,
    /// What was fetched and had no room.
    pub(crate) backlog: VecDeque<Parcel>,
    pub(crate) session: Option<Arc<Session>>,
}

/// A message ready to be sent.
pub(crate) struct Parcel {
    pub(crate) hold: Option<Hold>,
    pub(crate) payload: Bytes,
}

/// A link over which requests come.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(crate) node: Node,
}

/// What requests are for.
#[derive(Clone)]
pub(crate) enum Node {
    Tokens,
    Management(Box<Entity>),
}

/// A link over which answers go.
pub(crate) struct Replies {
    pub(crate) node: Address,
    /// What the client calls its end.
    pub(crate) target: Option<Text>,
    /// Answers for which there was no credit.
    pub(crate) backlog: VecDeque<Bytes>,
    pub(crate) sent: u64,
}

impl Receiver {
    pub(crate) fn new(entity: Entity, deletes: bool, session: Option<Arc<Session>>) -> Receiver {
        Receiver {
            entity,
            deletes,
            fetching: None,
            drains: false,
            unsettled: HashMap::new(),
            backlog: VecDeque::new(),
            session,
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(fetching) = &self.fetching {
            fetching.cancel();
        }
    }
}

impl Talk {
    pub(crate) fn receiver(&mut self, link: LinkId) -> Option<&mut Receiver> {
        match self.links.get_mut(&link) {
            Some(Link::Receiver(receiver)) => Some(receiver),
            _ => None,
        }
    }

    pub(crate) fn note_credit(&mut self, link: LinkId, drain: bool) {
        self.hungry.insert(link);
        match self.links.get_mut(&link) {
            Some(Link::Receiver(receiver)) if drain => {
                receiver.drains = true;
                // What is there is fetched at once, without waiting.
                if let Some(fetching) = &receiver.fetching {
                    fetching.cancel();
                }
            }
            Some(Link::Replies(_)) => {
                self.send_replies(link);
                if drain {
                    self.amqp.drained(link);
                }
            }
            _ => {}
        }
    }

    /// Sends an answer to a request, as soon as the client takes it.
    pub(crate) fn reply(&mut self, link: LinkId, payload: Bytes) {
        if let Some(Link::Replies(replies)) = self.links.get_mut(&link)
            && replies.backlog.len() < crate::limits::SERVICE_BUS_REQUESTS_MAX
        {
            replies.backlog.push_back(payload);
        }
        self.send_replies(link);
    }

    pub(crate) fn send_replies(&mut self, link: LinkId) {
        let Some(Link::Replies(replies)) = self.links.get_mut(&link) else { return };
        while let Some(payload) = replies.backlog.front() {
            let tag = Bytes::copy_from_slice(&replies.sent.to_be_bytes());
            let outgoing = Outgoing { tag, payload: payload.clone(), format: 0, settled: true };
            match self.amqp.send(link, outgoing) {
                Err(Unsent::NoCredit | Unsent::NoRoom) => return,
                Ok(_) | Err(Unsent::NoLink | Unsent::TooLarge) => {}
            }
            replies.sent += 1;
            replies.backlog.pop_front();
        }
    }
}
