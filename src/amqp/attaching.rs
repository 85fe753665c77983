//! How links of a session begin and end.

use crate::amqp::attach::Attach;
use crate::amqp::attach::ReceiverSettles;
use crate::amqp::attach::SenderSettles;
use crate::amqp::closing::Detach;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::LinkAnswer;
use crate::amqp::event::LinkId;
use crate::amqp::hub::Breach;
use crate::amqp::hub::Hub;
use crate::amqp::link::Link;
use crate::amqp::link::LinkState;
use crate::amqp::session::Session;
use crate::amqp::session::unattached;
use crate::limits::AMQP_LINK_NAME_BYTES_MAX;

/// What is announced as the largest message where there is none.
const NO_LIMIT: u64 = 0;

impl Session {
    /// The link of this name, unless it is over or the handle has another one by now.
    pub(crate) fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(&id.handle).filter(|link| link.id == id)
    }

    pub(crate) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(&id.handle).filter(|link| link.id == id)
    }

    /// The peer asks for a link.
    pub(crate) fn attach(&mut self, hub: &mut Hub, attach: Box<Attach>) -> Result<(), Breach> {
        let handle = attach.handle;
        if handle >= hub.options.handles_max {
            return Err(Breach::connection(condition::FRAMING_ERROR, "a handle is above the highest"));
        }
        if self.links.contains_key(&handle) {
            return Err(Breach::session(condition::HANDLE_IN_USE, "the handle is attached already"));
        }
        if attach.name.len() > AMQP_LINK_NAME_BYTES_MAX {
            return Err(Breach::session(condition::INVALID_FIELD, "the name of a link is too long"));
        }
        if hub.links >= hub.options.links_max {
            return Err(Breach::session(
                condition::RESOURCE_LIMIT_EXCEEDED,
                "the connection has too many links",
            ));
        }
        self.steal(hub, &attach);
        let id = LinkId { channel: self.channel, handle, serial: hub.links_ever };
        hub.links_ever += 1;
        hub.links += 1;
        let link = Link {
            id,
            name: attach.name.clone(),
            peer: attach.role,
            state: LinkState::Attaching,
            delivery_count: if attach.role.is_receiver() {
                0
            } else {
                attach.initial_delivery_count.unwrap_or(0)
            },
            credit: 0,
            drain: false,
            drained_at: None,
            is_credit_unsent: false,
            is_drain_last: false,
            message_bytes_max: attach.max_message_bytes.filter(|max| *max > 0).unwrap_or(u64::MAX),
            partial: None,
            unsettled: 0,
            queued: 0,
            unsent: Vec::new(),
        };
        self.links.insert(handle, link);
        hub.events.push_back(AmqpEvent::Attached { link: id, attach });
        Ok(())
    }

    /// A link of the same name and direction takes the place of the one before it.
    fn steal(&mut self, hub: &mut Hub, attach: &Attach) {
        let is_same =
            |link: &&Link| link.name == attach.name && link.peer == attach.role && !link.state.is_ending();
        if let Some(handle) = self.links.values().find(is_same).map(|link| link.id.handle) {
            self.break_link(hub, handle, AmqpError::new(condition::STOLEN, "its name was attached again"));
        }
    }

    /// Answers a link with an attach.
    pub(crate) fn accept(&mut self, hub: &mut Hub, id: LinkId, answer: LinkAnswer) {
        let most = hub.options.message_bytes_max;
        let Some(link) = self.link_mut(id).filter(|link| link.state == LinkState::Attaching) else {
            return;
        };
        let is_sending = link.peer.is_receiver();
        // A peer that receives keeps to what is announced, too: it would end its link at the first larger message.
        let limit = match answer.message_bytes_max {
            _ if is_sending => NO_LIMIT,
            Some(bytes) => bytes.min(most),
            None => most,
        };
        let attach = Attach {
            name: link.name.clone(),
            handle: id.handle,
            role: link.peer.opposite(),
            sender_settles: answer.sender_settles,
            receiver_settles: answer.receiver_settles,
            source: answer.source,
            target: answer.target,
            initial_delivery_count: is_sending.then_some(link.delivery_count),
            max_message_bytes: Some(limit),
            offered_capabilities: answer.offered_capabilities,
            desired_capabilities: Vec::new(),
            properties: answer.properties,
        };
        if !hub.outbox.frame(id.channel, |out| attach.write(out)) {
            let error = AmqpError::new(condition::FRAME_SIZE_TOO_SMALL, "the answer needs a larger frame");
            return self.break_link(hub, id.handle, error);
        }
        link.state = LinkState::Attached;
        if is_sending {
            if std::mem::take(&mut link.is_credit_unsent) {
                let (link, credit, drain) = (id, link.credit, link.drain);
                hub.events.push_back(AmqpEvent::Credit { link, credit, drain });
            }
        } else {
            link.message_bytes_max = limit.saturating_add(answer.message_bytes_beyond).min(most);
            self.grant(hub, id, answer.credit);
        }
    }

    /// Ends a link from our side. One that was not answered is refused: an answer without ends, and its end.
    pub(crate) fn detach(&mut self, hub: &mut Hub, handle: u32, error: Option<AmqpError>) {
        let Some(link) = self.links.get_mut(&handle).filter(|link| link.state != LinkState::Detaching) else {
            return;
        };
        if let LinkState::Left { closed } = link.state {
            return self.answer_detach(hub, Detach { handle, closed, error });
        }
        let is_answer = link.state == LinkState::Attaching;
        link.state = LinkState::Detaching;
        if is_answer {
            self.answer_without_ends(hub, handle);
        }
        self.forget_deliveries(hub, handle);
        let detach = |error| Detach { handle, closed: true, error };
        hub.outbox.with_error(self.channel, error, |out, error| detach(error).write(out));
    }

    /// Lets a link go that the peer has left. What the peer has ended with its session needs no answer of its own.
    fn answer_detach(&mut self, hub: &mut Hub, answer: Detach) {
        self.forget_deliveries(hub, answer.handle);
        self.links.remove(&answer.handle);
        hub.links -= 1;
        if !self.is_left {
            let detach = |error| Detach { error, ..answer };
            hub.outbox.with_error(self.channel, answer.error.clone(), |out, error| detach(error).write(out));
        }
    }

    /// Ends a link because of what its peer did, and tells the application.
    pub(crate) fn break_link(&mut self, hub: &mut Hub, handle: u32, error: AmqpError) {
        let Some(link) = self.links.get(&handle).filter(|link| !link.state.is_ending()) else {
            return;
        };
        let link = link.id;
        self.miss_partial(hub, handle);
        let unsent = self.stop_sending(hub, handle);
        if !unsent.is_empty() {
            hub.unsent.insert(link, unsent);
        }
        self.detach(hub, handle, Some(error.clone()));
        hub.events.push_back(AmqpEvent::Detached { link, error: Some(error), closed: true });
    }

    /// The peer ends a link, or answers that we did.
    pub(crate) fn detached(&mut self, hub: &mut Hub, detach: Detach) -> Result<(), Breach> {
        let handle = detach.handle;
        match self.links.get(&handle).map(|link| link.state).ok_or_else(unattached)? {
            LinkState::Detaching => {
                self.links.remove(&handle);
                hub.links -= 1;
            }
            LinkState::Left { .. } => return Err(unattached()),
            LinkState::Attaching | LinkState::Attached => {
                self.leave(hub, handle, detach.closed, detach.error)
            }
        }
        Ok(())
    }

    /// The peer leaves a link. What it has said of deliveries, and those it has sent, wait for the application, which is
    /// told; what was on its way to the peer goes no further.
    pub(crate) fn leave(&mut self, hub: &mut Hub, handle: u32, closed: bool, error: Option<AmqpError>) {
        if self.links.get(&handle).is_some_and(|link| link.state == LinkState::Attaching) && !self.is_left {
            self.answer_without_ends(hub, handle);
        }
        let unsent = self.stop_sending(hub, handle);
        let Some(link) = self.links.get_mut(&handle) else { return };
        link.state = LinkState::Left { closed };
        link.unsent.extend(unsent);
        if let Some(partial) = link.partial.take() {
            hub.partial_bytes -= partial.bytes.len();
        }
        hub.events.push_back(AmqpEvent::Detached { link: link.id, error, closed });
    }

    /// Takes back what waits for the peer's window, and forgets what the peer has said nothing of. Says of which
    /// deliveries not everything was written.
    fn stop_sending(&mut self, hub: &mut Hub, handle: u32) -> Vec<u32> {
        let Some(link) = self.links.get_mut(&handle).filter(|link| link.peer.is_receiver()) else {
            return Vec::new();
        };
        let mut unsent = Vec::new();
        if std::mem::take(&mut link.queued) > 0 {
            self.queue.retain(|queued| {
                let is_other = queued.handle() != handle;
                if !is_other {
                    hub.queued_bytes -= queued.cost();
                    unsent.extend(queued.number());
                }
                is_other
            });
        }
        if link.unsettled == 0 {
            return unsent;
        }
        let before = self.outgoing.len();
        self.outgoing.retain(|_, its_handle| *its_handle != handle);
        link.unsettled -= before - self.outgoing.len();
        hub.unsettled_out -= before - self.outgoing.len();
        unsent
    }

    /// Stops sending over every link at once: there may be as many links as there are deliveries.
    pub(crate) fn stop_sending_all(&mut self, hub: &mut Hub) {
        for handle in std::mem::take(&mut self.outgoing).into_values() {
            hub.unsettled_out -= 1;
            if let Some(link) = self.links.get_mut(&handle) {
                link.unsettled -= 1;
            }
        }
        for queued in std::mem::take(&mut self.queue) {
            hub.queued_bytes -= queued.cost();
            if let Some(link) = self.links.get_mut(&queued.handle()) {
                link.queued -= 1;
                link.unsent.extend(queued.number());
            }
        }
    }

    /// The answer to an attach that will be followed by a detach: null where the ends would be.
    fn answer_without_ends(&self, hub: &mut Hub, handle: u32) {
        let Some(link) = self.links.get(&handle) else {
            return;
        };
        let attach = Attach {
            name: link.name.clone(),
            handle,
            role: link.peer.opposite(),
            sender_settles: SenderSettles::default(),
            receiver_settles: ReceiverSettles::default(),
            source: None,
            target: None,
            initial_delivery_count: link.peer.is_receiver().then_some(0),
            max_message_bytes: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        hub.outbox.frame(self.channel, |out| attach.write(out));
    }

    /// Forgets the deliveries of a link; nothing is heard of them any more.
    fn forget_deliveries(&mut self, hub: &mut Hub, handle: u32) {
        self.stop_sending(hub, handle);
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        if let Some(partial) = link.partial.take() {
            hub.partial_bytes -= partial.bytes.len();
        }
        let (unsettled, is_outgoing) = (std::mem::take(&mut link.unsettled), link.peer.is_receiver());
        if unsettled > 0 {
            for deliveries in [&mut self.incoming, &mut self.outgoing, &mut self.described] {
                deliveries.retain(|_, its_handle| *its_handle != handle);
            }
            let counted = if is_outgoing { &mut hub.unsettled_out } else { &mut hub.unsettled_in };
            *counted -= unsettled;
        }
    }
}
