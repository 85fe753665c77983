//! Whatever peer and application do, in whatever order, the books of a connection agree.

use bytes::Bytes;
use proptest::prelude::*;

use crate::amqp::attach::Attach;
use crate::amqp::attach::Role;
use crate::amqp::connection::Connection;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkAnswer;
use crate::amqp::event::LinkId;
use crate::amqp::event::OutgoingMessage;
use crate::amqp::link::LinkState;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::message;
use crate::amqp::tests::streams;
use crate::amqp::transfer::Flow;
use crate::amqp::transfer::Transfer;

/// One step of either side. An index chooses among what the application has ever heard of, also what is long over.
#[derive(Debug, Clone)]
enum Step {
    /// Anything, which seldom is allowed.
    PeerSays(u16, Performative),
    /// A part of a message on a link that has credit; whether it is the last.
    PeerSends(prop::sample::Index, usize, bool),
    /// Credit and a window, and whether it drains.
    PeerFlows(prop::sample::Index, u32, u32, bool),
    /// An outcome for some deliveries from one on, and whether they are settled with it.
    PeerEnds(prop::sample::Index, u32, bool),
    Accept(prop::sample::Index, u32),
    Refuse(prop::sample::Index),
    Detach(prop::sample::Index),
    Grant(prop::sample::Index, u32),
    Drained(prop::sample::Index),
    Send(prop::sample::Index, usize, bool),
    Settle(prop::sample::Index, bool),
    Write,
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<prop::sample::Index>;
    prop_oneof![
        1 => (0..2_u16, streams::performative()).prop_map(|(channel, sent)| Step::PeerSays(channel, sent)),
        9 => (which(), 0..450_usize, any::<bool>()).prop_map(|(link, len, more)| Step::PeerSends(link, len, more)),
        5 => (which(), 0..9_u32, 0..9_u32, any::<bool>())
            .prop_map(|(link, credit, window, drain)| Step::PeerFlows(link, credit, window, drain)),
        5 => (which(), 0..5_u32, any::<bool>())
            .prop_map(|(delivery, more, settled)| Step::PeerEnds(delivery, more, settled)),
        4 => (which(), 0..9_u32).prop_map(|(link, credit)| Step::Accept(link, credit)),
        1 => which().prop_map(Step::Refuse),
        1 => which().prop_map(Step::Detach),
        2 => (which(), 0..9_u32).prop_map(|(link, credit)| Step::Grant(link, credit)),
        2 => which().prop_map(Step::Drained),
        6 => (which(), 0..900_usize, any::<bool>()).prop_map(|(link, len, settled)| Step::Send(link, len, settled)),
        6 => (which(), any::<bool>()).prop_map(|(delivery, accepts)| Step::Settle(delivery, accepts)),
        3 => Just(Step::Write),
    ]
}

/// An application that remembers everything and does nothing by itself.
struct Application {
    connection: Connection,
    asked: Vec<(LinkId, Attach)>,
    deliveries: Vec<(LinkId, DeliveryNumber)>,
    /// How many messages the peer has sent.
    numbers: u32,
    is_closed: bool,
}

impl Application {
    fn begun() -> Application {
        let connection = Connection::new(streams::options(), 0);
        let mut application = Application {
            connection,
            asked: Vec::new(),
            deliveries: Vec::new(),
            numbers: 100,
            is_closed: false,
        };
        application.connection.receive(&streams::well_begun(), 0);
        application.receive_attach();
        application.connection.answer_sasl(true);
        while let Some((link, attach)) = application.receive_attach() {
            application.connection.accept_link(link, LinkAnswer::to(&attach).credit(5));
        }
        assert_eq!(application.asked.len(), 4);
        application
    }

    /// Notes the events, up to the first link that is asked for.
    fn receive_attach(&mut self) -> Option<(LinkId, Attach)> {
        while let Some(event) = self.connection.next_event() {
            assert!(!self.is_closed, "nothing follows the last event: {event:?}");
            match event {
                AmqpEvent::Attached { link, attach } => {
                    self.asked.push((link, *attach));
                    return self.asked.last().cloned();
                }
                AmqpEvent::Message { link, delivery, .. } | AmqpEvent::TooLarge { link, delivery, .. } => {
                    self.deliveries.push((link, delivery));
                }
                // Half of what is ended is answered at once, the rest at the end or never.
                AmqpEvent::Detached { link, .. } if self.deliveries.len().is_multiple_of(2) => {
                    self.connection.detach(link, None);
                }
                AmqpEvent::Ended { channel, .. } if !self.deliveries.len().is_multiple_of(3) => {
                    self.connection.end(channel)
                }
                AmqpEvent::Closed { .. } => self.is_closed = true,
                _ => {}
            }
        }
        None
    }

    fn take(&mut self, step: Step) {
        let link = |index: &prop::sample::Index| self.asked[index.index(self.asked.len())].clone();
        match step {
            Step::PeerSays(channel, sent) => self.connection.receive(&peer::frame(channel, &sent), 0),
            Step::PeerSends(index, len, more) => self.peer_sends(link(&index).0, len, more),
            Step::PeerFlows(index, credit, window, drain) => {
                self.peer_flows(link(&index).0, credit, window, drain);
            }
            Step::PeerEnds(index, more, settled) => self.peer_ends(&index, more, settled),
            Step::Accept(index, credit) => {
                let (link, attach) = link(&index);
                self.connection.accept_link(link, LinkAnswer::to(&attach).credit(credit));
            }
            Step::Refuse(index) => self.connection.refuse_link(link(&index).0, Default::default()),
            Step::Detach(index) => self.connection.detach(link(&index).0, None),
            Step::Grant(index, credit) => self.connection.grant(link(&index).0, credit),
            Step::Drained(index) => self.connection.drained(link(&index).0),
            Step::Send(index, len, settled) => self.send(link(&index).0, len, settled),
            Step::Settle(index, accepts) => self.settle(&index, accepts),
            Step::Write => self.connection.output().clear(),
        }
        while self.receive_attach().is_some() {}
        streams::assert_bounds(&mut self.connection);
    }

    fn peer_sends(&mut self, id: LinkId, len: usize, more: bool) {
        let session = self.connection.sessions.get(&id.channel);
        let Some(link) = session.and_then(|session| session.link(id)) else {
            return;
        };
        let is_first = link.partial.is_none();
        if link.peer.is_receiver() || link.state != LinkState::Attached || (is_first && link.credit == 0) {
            return;
        }
        self.numbers += u32::from(is_first);
        let transfer = Transfer {
            handle: id.handle,
            delivery_id: is_first.then_some(self.numbers),
            delivery_tag: is_first.then(|| Bytes::from_static(b"t")),
            settled: Some(len.is_multiple_of(5)),
            more,
            aborted: more && len.is_multiple_of(7),
            ..Transfer::default()
        };
        self.says(id.channel, Performative::Transfer(transfer, vec![1; len].into()));
    }

    fn peer_flows(&mut self, id: LinkId, credit: u32, window: u32, drain: bool) {
        let session = self.connection.sessions.get(&id.channel);
        let Some((session, link)) = session.and_then(|session| Some((session, session.link(id)?))) else {
            return;
        };
        let flow = Flow {
            next_incoming_id: Some(session.next_outgoing_id),
            incoming_window: window,
            delivery_count: Some(link.delivery_count),
            drain,
            ..peer::flow(id.handle, credit)
        };
        self.says(id.channel, Performative::Flow(flow));
    }

    fn peer_ends(&mut self, index: &prop::sample::Index, more: u32, settled: bool) {
        if !self.deliveries.is_empty() {
            let (link, DeliveryNumber(first)) = self.deliveries[index.index(self.deliveries.len())];
            if self.connection.sessions.contains_key(&link.channel) {
                let role = if more == 4 { Role::Sender } else { Role::Receiver };
                let sent = peer::disposition(
                    role,
                    first,
                    first.wrapping_add(more),
                    settled,
                    DeliveryOutcome::Accepted,
                );
                self.says(link.channel, sent);
            }
        }
    }

    fn says(&mut self, channel: u16, sent: Performative) {
        self.connection.receive(&peer::frame(channel, &sent), 0);
    }

    fn send(&mut self, link: LinkId, len: usize, settled: bool) {
        let credit = self.connection.credit(link);
        let outgoing = OutgoingMessage { settled, ..message(vec![0; len]) };
        match self.connection.send(link, outgoing) {
            Ok(delivery) => {
                assert_eq!(self.connection.credit(link), credit - 1);
                self.deliveries.push((link, delivery));
            }
            Err(_) => assert_eq!(self.connection.credit(link), credit, "nothing has changed"),
        }
    }

    fn settle(&mut self, index: &prop::sample::Index, accepts: bool) {
        if !self.deliveries.is_empty() {
            let (link, delivery) = self.deliveries[index.index(self.deliveries.len())];
            let outcome = if accepts { DeliveryOutcome::Accepted } else { DeliveryOutcome::Rejected(None) };
            self.connection.settle(link, delivery, outcome);
        }
    }
}

proptest! {
    #[test]
    fn whatever_both_sides_do_the_books_agree(steps in prop::collection::vec(step(), 0..120)) {
        let mut application = Application::begun();
        for step in steps {
            application.take(step);
        }
        application.connection.close(None);
        while application.receive_attach().is_some() {}
        prop_assert!(application.is_closed);
        application.connection.receive_end();
        // The end is heard of once there is room for what would be said to it.
        application.take(Step::Write);
        while application.receive_attach().is_some() {}
        application.connection.close(None);
        prop_assert!(application.connection.is_finished());
    }
}
