//! One session: its windows, and its life.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use crate::amqp::closing::ClosingFrame;
use crate::amqp::closing::END;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::hub::Breach;
use crate::amqp::hub::Hub;
use crate::amqp::link::Link;
use crate::amqp::link::LinkState;
use crate::amqp::opening::Begin;
use crate::amqp::pending_transfer::PendingTransfer;
use crate::amqp::serial::ahead;
use crate::amqp::transfer::Flow;

/// A session that the peer has begun. Our end has the peer's channel, and our ends of links the peer's handles: only
/// the peer begins anything, so they cannot collide.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) channel: u16,
    /// Whether we have ended it, and the peer may not know yet.
    pub(crate) is_ending: bool,
    /// Whether the peer has ended it, and waits for our answer.
    pub(crate) is_left: bool,
    pub(crate) links: BTreeMap<u32, Link>,
    /// The number of the next frame of a transfer that comes.
    pub(crate) next_incoming_id: u32,
    /// How many frames of transfers the peer may still send.
    pub(crate) incoming_window: u32,
    /// Deliveries of the peer that we have not settled, with the handle of their link.
    pub(crate) incoming: BTreeMap<u32, u32>,
    /// The number of the next frame of a transfer that goes.
    pub(crate) next_outgoing_id: u32,
    /// How many frames of transfers the peer takes now.
    pub(crate) outgoing_window: u32,
    pub(crate) next_delivery: u32,
    /// Deliveries of ours that are not settled and of which the peer has said nothing, with the handle of their link.
    pub(crate) outgoing: BTreeMap<u32, u32>,
    /// Those of which it has said how they are to end. They are kept apart so that a peer that says it again and again
    /// for a long range has us look at none of them.
    pub(crate) described: BTreeMap<u32, u32>,
    /// What waits for the peer's window, in its order.
    pub(crate) queue: VecDeque<PendingTransfer>,
}

impl Session {
    /// Begins the session that a peer asks for, and answers.
    pub(crate) fn begin(hub: &mut Hub, channel: u16, begin: &Begin) -> Session {
        let window = hub.options.incoming_window.max(1);
        let answer = Begin {
            remote_channel: Some(channel),
            next_outgoing_id: 0,
            incoming_window: window,
            outgoing_window: window,
            handle_max: Some(hub.options.handles_max.saturating_sub(1)),
        };
        hub.outbox.frame(channel, |out| answer.write(out));
        Session {
            channel,
            is_ending: false,
            is_left: false,
            links: BTreeMap::new(),
            next_incoming_id: begin.next_outgoing_id,
            incoming_window: window,
            incoming: BTreeMap::new(),
            next_outgoing_id: 0,
            outgoing_window: begin.incoming_window,
            next_delivery: 0,
            outgoing: BTreeMap::new(),
            described: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// Takes the peer's windows, and perhaps its credit on a link.
    pub(crate) fn flow(&mut self, hub: &mut Hub, flow: &Flow) -> Result<(), Breach> {
        // A peer that has not heard our begin counts from where we begin.
        let received = flow.next_incoming_id.unwrap_or(0);
        let under_way = ahead(self.next_outgoing_id, received).unwrap_or(0);
        self.outgoing_window = flow.incoming_window.saturating_sub(under_way);
        if let Some(handle) = flow.handle {
            self.link_flow(hub, handle, flow)?;
        } else if flow.echo {
            self.send_windows(hub);
        }
        self.pump(hub);
        Ok(())
    }

    fn link_flow(&mut self, hub: &mut Hub, handle: u32, flow: &Flow) -> Result<(), Breach> {
        let link = self.links.get_mut(&handle).ok_or_else(unattached)?;
        match link.state {
            LinkState::Detaching => return Ok(()),
            LinkState::Left { .. } => return Err(unattached()),
            LinkState::Attaching | LinkState::Attached => {}
        }
        let (mut wants_answer, mut echo) = (flow.echo, false);
        if link.peer.is_receiver() {
            let has_changed = link.take_credit(flow);
            echo = link.has_missed_drained(flow);
            match link.state {
                LinkState::Attaching => link.is_credit_unsent = true,
                _ if has_changed => {
                    let (link, credit, drain) = (link.id, link.credit, link.drain);
                    hub.events.push_back(AmqpEvent::Credit { link, credit, drain });
                }
                _ => {}
            }
        } else {
            wants_answer |= link.take_count(flow);
        }
        if (wants_answer || echo) && link.state == LinkState::Attached {
            let flow = Flow { echo, ..self.credit_of(handle) };
            hub.outbox.frame(self.channel, |out| flow.write(out));
        }
        Ok(())
    }

    /// Opens the window again when half of it is used, so that a peer that sends steadily never waits for it.
    pub(crate) fn reopen_window(&mut self, hub: &mut Hub) {
        let window = hub.options.incoming_window.max(1);
        if self.incoming_window <= window / 2 {
            self.incoming_window = window;
            self.send_windows(hub);
        }
    }

    fn send_windows(&self, hub: &mut Hub) {
        let flow = self.windows();
        hub.outbox.frame(self.channel, |out| flow.write(out));
    }

    fn windows(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: self.outgoing_window,
            ..Flow::default()
        }
    }

    /// Tells the peer what we think of a link's credit.
    pub(crate) fn send_credit(&self, hub: &mut Hub, handle: u32, drain: bool) {
        if self.links.contains_key(&handle) {
            let flow = Flow { drain, ..self.credit_of(handle) };
            hub.outbox.frame(self.channel, |out| flow.write(out));
        }
    }

    fn credit_of(&self, handle: u32) -> Flow {
        let link = &self.links[&handle];
        Flow {
            handle: Some(handle),
            delivery_count: Some(link.delivery_count),
            link_credit: Some(link.credit),
            available: link.peer.is_receiver().then_some(0),
            ..self.windows()
        }
    }

    /// The peer ends the session: it leaves every link.
    pub(crate) fn left(&mut self, hub: &mut Hub, error: Option<AmqpError>) {
        self.is_left = true;
        let of_links = error.as_ref().map(AmqpError::shortened);
        self.stop_sending_all(hub);
        let handles: Vec<u32> = self.links.keys().copied().collect();
        for handle in handles {
            if !self.links[&handle].state.is_ending() {
                self.leave(hub, handle, true, of_links.clone());
            }
        }
        hub.events.push_back(AmqpEvent::Ended { channel: self.channel, error });
    }

    /// Ends the session from our side; what the peer still sends is ignored until it ends it too.
    pub(crate) fn end(&mut self, hub: &mut Hub, error: Option<AmqpError>) {
        if self.is_ending {
            return;
        }
        self.is_ending = true;
        self.links.keys().for_each(|handle| self.miss_partial(hub, *handle));
        hub.outbox
            .with_error(self.channel, error.clone(), |out, error| ClosingFrame { error }.write(out, END));
        self.forget(hub, error.as_ref());
        hub.events.push_back(AmqpEvent::Ended { channel: self.channel, error });
    }

    /// Forgets everything in the session, and tells of each link that it is over. There may be many, so the error that
    /// each is told is short.
    pub(crate) fn forget(&mut self, hub: &mut Hub, error: Option<&AmqpError>) {
        self.keep_unsent(hub);
        let error = error.map(AmqpError::shortened);
        hub.links -= self.links.len();
        hub.unsettled_in -= self.incoming.len();
        hub.unsettled_out -= self.outgoing.len() + self.described.len();
        self.incoming.clear();
        self.outgoing.clear();
        self.described.clear();
        for queued in self.queue.drain(..) {
            hub.queued_bytes -= queued.cost();
        }
        for (_, link) in std::mem::take(&mut self.links) {
            hub.partial_bytes -= link.partial.as_ref().map_or(0, |partial| partial.bytes.len());
            if !link.state.is_ending() {
                let (link, error) = (link.id, error.clone());
                hub.events.push_back(AmqpEvent::Detached { link, error, closed: true });
            }
        }
    }
}

/// A frame names a handle that no link has.
pub(crate) fn unattached() -> Breach {
    Breach::session(condition::UNATTACHED_HANDLE, "no link is attached to this handle")
}
