//! Answers to requests that wait, or are on their way out.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::amqp::LinkId;
use crate::amqp::Text;
use crate::service_bus::address::EntityAddress;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::on_their_way::OnTheirWay;

/// A link over which answers go.
pub(crate) struct Replies {
    pub(crate) node: EntityAddress,
    /// What the client calls its end.
    pub(crate) target: Option<Text>,
    /// Answers for which there was no credit.
    pub(crate) backlog: VecDeque<ManagementReply>,
    /// Answers that were sent since one with messages to delete, in order.
    pub(crate) on_their_way: OnTheirWay<Vec<ClientHold>>,
    /// How many requests of it to delete what was answered are not answered themselves.
    pub(crate) deletions: usize,
    pub(crate) sent: u64,
}

/// An answer.
pub(crate) struct ManagementReply {
    /// The link over which the request came.
    pub(crate) asked_over: LinkId,
    pub(crate) payload: Bytes,
    /// Messages in it that are deleted once it is on its way.
    pub(crate) deletes: Vec<ClientHold>,
    /// What is answered instead when those are not locked any more.
    pub(crate) lock_lost: Bytes,
}

impl ManagementReply {
    /// Whether somebody else may have by now what is to be deleted. What is of a session is its client's to keep.
    pub(crate) fn is_expired(&self, now: Duration) -> bool {
        self.deletes.iter().any(|hold| !hold.is_of_session() && hold.ends_at <= now)
    }
}

impl Replies {
    pub(crate) fn new(node: EntityAddress, target: Option<Text>) -> Replies {
        Replies {
            node,
            target,
            backlog: VecDeque::new(),
            on_their_way: OnTheirWay::default(),
            deletions: 0,
            sent: 0,
        }
    }

    /// Whether nothing that it has sent is still on its way out or being deleted, those answers left out that the connection cannot
    /// send.
    pub(crate) fn is_quiet(&self, unsent: usize) -> bool {
        self.on_their_way.len() <= unsent && self.deletions == 0
    }

    /// What was to be deleted with answers that were sent and have not gone out.
    pub(crate) fn take_undeleted(&mut self) -> Vec<ClientHold> {
        self.on_their_way.take_all().flatten().collect()
    }
}
