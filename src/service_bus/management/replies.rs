//! Answers to requests on their way out. What a client asked for to have it deleted is deleted once the answer with it is
//! on its way, never before.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::amqp::LinkId;
use crate::amqp::OutgoingMessage;
use crate::amqp::Text;
use crate::amqp::Unsent;
use crate::limits;
use crate::service_bus::address::EntityAddress;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::links::EndpointLink;

/// A link over which answers go.
pub(crate) struct Replies {
    pub(crate) node: EntityAddress,
    /// What the client calls its end.
    pub(crate) target: Option<Text>,
    /// Answers for which there was no credit.
    backlog: VecDeque<ManagementReply>,
    /// Answers that were sent since one with messages to delete, in order.
    on_their_way: VecDeque<SentReply>,
    sent: u64,
}

/// An answer.
pub(crate) struct ManagementReply {
    pub(crate) payload: Bytes,
    /// Messages in it that are deleted once it is on its way.
    pub(crate) deletes: Vec<ClientHold>,
}

/// An answer that was sent.
struct SentReply {
    deletes: Vec<ClientHold>,
    /// The byte of the connection after which it is on its way; unknown while it waits for the peer's window.
    until_byte: Option<u64>,
}

impl Replies {
    pub(crate) fn new(node: EntityAddress, target: Option<Text>) -> Replies {
        Replies { node, target, backlog: VecDeque::new(), on_their_way: VecDeque::new(), sent: 0 }
    }

    /// Whether nothing that it has sent is still on its way out, those answers left out that the connection cannot send.
    pub(crate) fn is_quiet(&self, unsent: usize) -> bool {
        self.on_their_way.len() <= unsent
    }

    /// What was to be deleted and has not gone out.
    pub(crate) fn take_undeleted(&mut self) -> Vec<ClientHold> {
        let sent = self.on_their_way.drain(..).flat_map(|reply| reply.deletes);
        sent.chain(self.backlog.drain(..).flat_map(|reply| reply.deletes)).collect()
    }
}

impl ConnectionTask {
    /// Sends an answer to a request, as soon as the client takes it.
    pub(crate) fn reply(&mut self, link: LinkId, payload: Bytes) {
        self.reply_with(link, ManagementReply { payload, deletes: Vec::new() });
    }

    /// The same with messages, which are deleted once it is on its way.
    pub(crate) fn reply_with(&mut self, link: LinkId, reply: ManagementReply) {
        match self.links.get_mut(&link) {
            Some(EndpointLink::Replies(replies))
                if replies.backlog.len() < limits::SERVICE_BUS_REQUESTS_MAX =>
            {
                replies.backlog.push_back(reply);
            }
            _ => reply.deletes.iter().rev().for_each(|hold| self.shared.give_back(hold)),
        }
        self.send_replies(link);
    }

    pub(crate) fn send_replies(&mut self, link: LinkId) {
        let Some(EndpointLink::Replies(replies)) = self.links.get_mut(&link) else { return };
        while let Some(reply) = replies.backlog.front() {
            let tag = Bytes::copy_from_slice(&replies.sent.to_be_bytes());
            let outgoing = OutgoingMessage { tag, payload: reply.payload.clone(), format: 0, settled: true };
            let sent = self.amqp.send(link, outgoing);
            if let Err(Unsent::NoCredit | Unsent::NoRoom | Unsent::TooManyUnsettled) = sent {
                return;
            }
            replies.sent += 1;
            let deletes = replies.backlog.pop_front().map(|reply| reply.deletes).unwrap_or_default();
            match sent {
                Ok(_) if !deletes.is_empty() || !replies.on_their_way.is_empty() => {
                    replies.on_their_way.push_back(SentReply { deletes, until_byte: None });
                    self.answering.insert(link);
                }
                Ok(_) => {}
                Err(_) => deletes.iter().rev().for_each(|hold| self.shared.give_back(hold)),
            }
        }
    }

    /// Deletes what was answered, as far as it is on its way.
    pub(crate) fn delete_answered(&mut self) {
        let (bytes_written, written_to) =
            (self.bytes_written, self.bytes_given + self.amqp.output().len() as u64);
        let links: Vec<LinkId> = self.answering.iter().copied().collect();
        for link in links {
            let unsent = self.amqp.unsent(link).len();
            let Some(EndpointLink::Replies(replies)) = self.links.get_mut(&link) else { continue };
            let known = replies.on_their_way.len().saturating_sub(unsent);
            for sent in replies.on_their_way.iter_mut().take(known) {
                sent.until_byte.get_or_insert(written_to);
            }
            let is_out = |sent: &SentReply| sent.until_byte.is_some_and(|until| until <= bytes_written);
            let count = replies.on_their_way.iter().take_while(|sent| is_out(sent)).count();
            let holds: Vec<ClientHold> =
                replies.on_their_way.drain(..count).flat_map(|sent| sent.deletes).collect();
            if replies.on_their_way.is_empty() {
                self.answering.remove(&link);
            }
            self.delete(holds);
        }
    }

    /// Deletes messages that a client has.
    fn delete(&mut self, holds: Vec<ClientHold>) {
        if holds.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        self.start(async move {
            if let Err(refusal) = shared.delete(&holds).await {
                tracing::warn!(%refusal, "delete a message that was answered: it may be received again");
            }
            |_: &mut ConnectionTask| {}
        });
    }
}
