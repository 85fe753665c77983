//! Sending answers to requests. What a client asked for to have it deleted is deleted once the answer with it is on its way,
//! never before.

use bytes::Bytes;

use crate::amqp::LinkId;
use crate::amqp::OutgoingMessage;
use crate::amqp::Unsent;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::management::replies::ManagementReply;

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
                    replies.on_their_way.push(deletes);
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
            let out = replies.on_their_way.take_out(unsent, written_to, bytes_written);
            if replies.on_their_way.is_empty() {
                self.answering.remove(&link);
            }
            self.delete(out.into_iter().flatten().collect());
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
