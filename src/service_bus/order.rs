//! What happens in the order in which the client sent it: a link, a session or a connection ends when everything that was asked
//! before it is answered, and what a client wants after an end begins after it.

use std::collections::HashSet;

use crate::amqp::AmqpError;
use crate::amqp::Attach;
use crate::amqp::LinkId;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::in_order::InOrder;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::refusal::AmqpRefusal;

impl ConnectionTask {
    /// Ends a link from this side.
    pub(crate) fn detach(&mut self, link: LinkId, refusal: AmqpRefusal) {
        self.leave(InOrder::Leave(link, Some(refusal)));
    }

    /// Ends something, once all that came before it is done.
    pub(crate) fn leave(&mut self, what: InOrder) {
        self.send_groups();
        self.send_settlements();
        match &what {
            InOrder::Leave(link, _) => self.stop_feeding(*link),
            InOrder::Close(_) => {
                self.is_closing = true;
                let links: Vec<LinkId> = self.links.keys().copied().collect();
                links.into_iter().for_each(|link| self.stop_feeding(link));
            }
            InOrder::End(_) | InOrder::Attach(..) => {}
        }
        self.in_order.push_back((self.work_ever, what));
    }

    /// Begins a link, after what was to end before it.
    pub(crate) fn arrive(&mut self, link: LinkId, attach: Box<Attach>) {
        match self.in_order.is_empty() {
            true => self.attach(link, *attach),
            false => self.in_order.push_back((0, InOrder::Attach(link, attach))),
        }
    }

    /// Does what can be done now. Says whether there was anything.
    pub(crate) fn do_in_order(&mut self) -> bool {
        let mut has_done = false;
        while let Some((before, what)) = self.in_order.pop_front() {
            let is_answered = self.under_way.first().is_none_or(|work| *work >= before);
            let is_quiet = match &what {
                InOrder::Leave(link, _) => self.is_quiet(*link),
                InOrder::Close(_) => self.links.keys().all(|link| self.is_quiet(*link)),
                InOrder::End(_) | InOrder::Attach(..) => true,
            };
            if !is_answered || !is_quiet {
                self.in_order.push_front((before, what));
                return has_done;
            }
            self.do_one(what);
            has_done = true;
        }
        has_done
    }

    fn do_one(&mut self, what: InOrder) {
        match what {
            InOrder::Leave(link, refusal) => {
                self.forget(link);
                self.amqp.detach(link, refusal.map(AmqpError::from));
            }
            InOrder::End(channel) => self.amqp.end(channel),
            InOrder::Close(error) => {
                let links: Vec<LinkId> = self.links.keys().copied().collect();
                links.into_iter().for_each(|link| self.forget(link));
                self.amqp.close(error);
            }
            InOrder::Attach(link, attach) => self.attach(link, *attach),
        }
    }

    /// From now on nothing more goes over a link or is taken from it, and what was fetched for it and not sent goes back.
    fn stop_feeding(&mut self, link: LinkId) {
        match self.links.get_mut(&link) {
            Some(EndpointLink::Pending(_)) => drop(self.remove_link(link)),
            Some(EndpointLink::Receiver(receiver)) => {
                receiver.is_leaving = true;
                receiver.hurry();
                self.give_back_backlog(link);
            }
            Some(EndpointLink::Sender(sender)) => sender.is_leaving = true,
            _ => {}
        }
    }

    /// Whether nothing is fetched for a link any more, nothing that it has sent for good is still on its way out or being deleted, and
    /// nothing that came over it still waits to be sent on.
    fn is_quiet(&self, link: LinkId) -> bool {
        match self.links.get(&link) {
            Some(EndpointLink::Receiver(receiver)) => {
                receiver.fetching.is_none()
                    && receiver.deletions == 0
                    && receiver.sent.len() <= self.amqp.unsent(link).len()
            }
            Some(EndpointLink::Sender(sender)) => sender.is_quiet(),
            Some(EndpointLink::Replies(replies)) => replies.is_quiet(self.amqp.unsent(link).len()),
            _ => true,
        }
    }

    /// Lets a link go, and with it the session that it holds. Where its client has left without a word, the session's first
    /// message has failed: a client that a message kills would otherwise get it again for ever.
    fn forget(&mut self, link: LinkId) {
        let (unsent, has_broken_off) = (self.amqp.unsent(link), self.has_broken_off);
        if let Some(receiver) = self.receiver(link) {
            let holds = unsent.iter().filter_map(|delivery| receiver.unsettled.remove(delivery));
            let deleted = receiver.sent.take_all();
            let holds = holds.chain(deleted).collect();
            let is_left = has_broken_off && receiver.session.is_some();
            let left = if is_left { receiver.take_left() } else { Vec::new() };
            self.give_back(link, holds);
            self.break_off(&left);
        }
        self.give_up_replies(link);
        if let Some(EndpointLink::Coordinator) = self.remove_link(link) {
            self.transactions.forget(link);
        }
    }

    /// Knows a link no longer. If it was the last, the time begins that a connection may be without one.
    pub(crate) fn remove_link(&mut self, link: LinkId) -> Option<EndpointLink> {
        let removed = self.links.remove(&link);
        if self.links.is_empty() {
            self.linkless_since_ms = elapsed_ms(&*self.shared.clock);
        }
        removed
    }

    /// Fails the first of what a client has left behind, given in the order in which it was sent. The others are given back before,
    /// because they stay counted when an earlier one fails in their holder's hands.
    fn break_off(&self, left: &[ClientHold]) {
        let (holds, mut seen) = (&self.shared.holds, HashSet::new());
        // Of what has come again the last delivery counts, and nothing of what was settled by token.
        let is_held =
            |hold: &&ClientHold| seen.insert(hold.number()) && holds.get(&hold.queue, hold.token).is_some();
        let mut held: Vec<&ClientHold> = left.iter().rev().filter(is_held).collect();
        let first = held.pop();
        self.shared.give_back_all(held.into_iter().rev());
        first.into_iter().for_each(|hold| self.shared.break_off(hold));
    }

    /// Gives messages back that a client has not seen, as if they had not been handed out; given in the order in which
    /// they were handed out. Whatever is asked of the engine later finds them given back. The messages of a session that
    /// is about to be closed are given back with it.
    pub(crate) fn give_back(&mut self, link: LinkId, holds: Vec<ClientHold>) {
        let is_closing =
            self.receiver(link).is_some_and(|receiver| receiver.is_leaving && receiver.session.is_some());
        if !is_closing {
            self.shared.give_back_all(&holds);
        }
    }
}
