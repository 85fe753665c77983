//! One connection, as its server sees it.

use std::collections::BTreeMap;

use bytes::BytesMut;

use crate::amqp::closing::CLOSE;
use crate::amqp::closing::ClosingFrame;
use crate::amqp::closing::END;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkAnswer;
use crate::amqp::event::LinkId;
use crate::amqp::event::OutgoingMessage;
use crate::amqp::event::Unsent;
use crate::amqp::hub::Hub;
use crate::amqp::link::LinkState;
use crate::amqp::options::ConnectionOptions;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::pulse::Pulse;
use crate::amqp::pulse::PulseAction;
use crate::amqp::session::Session;
use crate::amqp::settling::Endings;
use crate::limits::AMQP_FRAME_BYTES_MIN;

/// The server side of one connection: bytes in, events out; commands in, bytes out. It knows no socket and no clock:
/// instants are milliseconds since any beginning. Dropping it raises no event for its sessions and links.
#[derive(Debug)]
pub struct Connection {
    pub(crate) hub: Hub,
    pub(crate) input: BytesMut,
    pub(crate) phase: ConnectionPhase,
    pub(crate) sessions: BTreeMap<u16, Session>,
    /// Whether the peer will send nothing more than what waits in the input.
    pub(crate) has_all_input: bool,
    /// A frame that begins something where the peer has left what is not over yet.
    pub(crate) held: Option<(u16, Performative)>,
    /// A disposition of which not all deliveries have been told.
    pub(crate) endings: Option<Endings>,
    pub(crate) pulse: Pulse,
}

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// A protocol header is to come.
    Header,
    /// The mechanisms are offered, the peer is to choose.
    Mechanism,
    /// The application is to say whether the peer is welcome.
    Verdict,
    /// The second protocol header is to come.
    SecondHeader,
    /// The peer is to open.
    Opening,
    /// Open.
    Open,
    /// We have closed; the peer is to answer.
    Closing,
    /// The peer has closed, or left; the application is to answer.
    Left {
        /// Whether the peer wants to hear that it is closed.
        wants_close: bool,
    },
    /// Nothing is read or said any more.
    Finished,
}

impl Connection {
    /// A connection of which nothing was read yet.
    pub fn new(mut options: ConnectionOptions, now_ms: u64) -> Connection {
        options.frame_bytes_max = options.frame_bytes_max.max(AMQP_FRAME_BYTES_MIN);
        let idle_timeout_ms = options.idle_ms.map(|ms| 2 * u64::from(ms));
        let mut pulse = Pulse::new(now_ms, idle_timeout_ms);
        pulse.begin_stage(options.open_ms_max);
        Connection {
            hub: Hub::new(options),
            input: BytesMut::new(),
            phase: ConnectionPhase::Header,
            sessions: BTreeMap::new(),
            has_all_input: false,
            held: None,
            endings: None,
            pulse,
        }
    }

    /// Takes what was read from the peer. Ask for the events before more is read.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) {
        self.pulse.pass(now_ms);
        self.pulse.note_received();
        if self.phase == ConnectionPhase::Finished {
            return;
        }
        self.input.extend_from_slice(bytes);
        let frame_bytes_max = self.hub.options.frame_bytes_max as usize;
        let unread_bytes_max = self.hub.options.buffered_bytes_max.max(frame_bytes_max);
        if self.input.len() > unread_bytes_max.saturating_add(bytes.len()) {
            let what = "more was sent than is read";
            self.fail(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, what));
            // What was thrown away cannot be found again, not even the peer's answer.
            self.finish();
        }
    }

    /// The peer will send nothing more. What it has sent is still told; the event that it has left comes after it.
    pub fn receive_end(&mut self) {
        self.has_all_input = true;
    }

    /// The next event. None, if the rest of the input is incomplete, or too many answers wait to be written.
    pub fn next_event(&mut self) -> Option<AmqpEvent> {
        loop {
            if let Some(event) = self.hub.events.pop_front() {
                return Some(event);
            }
            if self.hub.is_full_of_answers() || !self.step() {
                return None;
            }
        }
    }

    /// What is to be written to the peer: take it from the front.
    pub fn output(&mut self) -> &mut BytesMut {
        self.hub.outbox.bytes()
    }

    /// Whether more should be read: not while too many answers wait to be written, or something that was ended is to be answered
    /// first, because nothing would be done with it. Do not ask `has_room` for it: what waits for the peer's window goes
    /// only when the peer is heard.
    pub fn may_read(&self) -> bool {
        let is_done = matches!(self.phase, ConnectionPhase::Finished | ConnectionPhase::Left { .. })
            || self.has_all_input;
        !is_done && self.held.is_none() && !self.hub.is_full_of_answers()
    }

    /// Whether so many answers wait to be written that nothing is read.
    pub(crate) fn is_full_of_answers(&self) -> bool {
        self.hub.is_full_of_answers()
    }

    /// Whether more may be sent. If not, write the output; if there is none, the peer's window is closed: read on.
    pub fn has_room(&self) -> bool {
        self.hub.has_room()
    }

    /// How many more deliveries may be sent that the peer settles.
    pub(crate) fn unsettled_left(&self) -> usize {
        self.hub.unsettled_out_left()
    }

    /// Whether nothing more is to be read. Write the rest of the output, and drop it.
    pub fn is_finished(&self) -> bool {
        self.phase == ConnectionPhase::Finished && self.hub.events.is_empty()
    }

    /// When [`tick`](Connection::tick) is due next. It changes with everything that is received or written.
    pub fn deadline_ms(&self) -> Option<u64> {
        if self.phase == ConnectionPhase::Finished { None } else { self.pulse.deadline_ms() }
    }

    /// Does what is due: heartbeats, and the end of a peer that was silent too long.
    pub fn tick(&mut self, now_ms: u64) {
        self.hub.outbox.shrink();
        if self.hub.outbox.was_touched() {
            self.pulse.spoke();
        }
        self.pulse.pass(now_ms);
        match self.pulse.due() {
            PulseAction::Nothing => {}
            _ if self.phase == ConnectionPhase::Finished => {}
            _ if self.phase == ConnectionPhase::Closing => self.finish(),
            // Nobody listens.
            PulseAction::Heartbeat if self.phase == (ConnectionPhase::Left { wants_close: false }) => {
                self.pulse.spoke()
            }
            PulseAction::Heartbeat => self.beat(),
            _ if matches!(self.phase, ConnectionPhase::Left { .. }) => self.finish(),
            PulseAction::StageOver => {
                self.fail(AmqpError::new(condition::CONNECTION_FORCED, "opening took too long"))
            }
            PulseAction::Silence => {
                self.fail(AmqpError::new(condition::CONNECTION_FORCED, "the peer was silent"))
            }
        }
    }

    /// Takes note that nothing is read for now: what the peer says meanwhile waits, and it is not silent.
    pub fn note_unread(&mut self, now_ms: u64) {
        if self.phase == ConnectionPhase::Open {
            self.pulse.pass(now_ms);
            self.pulse.note_received();
        }
    }

    /// Says that this side is alive; whatever waits to be written says so too.
    fn beat(&mut self) {
        if self.hub.outbox.len() == 0 {
            self.hub.outbox.heartbeat();
        }
        self.hub.outbox.was_touched();
        self.pulse.spoke();
    }

    /// Attaches a link that the peer asked for. Nothing happens if the link is answered or over.
    pub fn accept_link(&mut self, link: LinkId, answer: LinkAnswer) {
        self.on_link(link, |session, hub| session.accept(hub, link, answer));
    }

    /// Refuses a link that the peer asked for. It is over: no event tells so.
    pub fn refuse_link(&mut self, link: LinkId, error: AmqpError) {
        self.detach(link, Some(error));
    }

    /// Sends a message to a receiving peer, which uses one of its credit. What the peer's window does not let pass
    /// waits here.
    ///
    /// # Errors
    /// It was not sent, and nothing has changed.
    pub fn send(&mut self, link: LinkId, message: OutgoingMessage) -> Result<DeliveryNumber, Unsent> {
        let session = self.sessions.get_mut(&link.channel).ok_or(Unsent::NoLink)?;
        session.send(&mut self.hub, link, message)
    }

    /// Settles a delivery of either direction with an outcome. Nothing happens if it is settled, or its link is over.
    pub fn settle(&mut self, link: LinkId, delivery: DeliveryNumber, outcome: DeliveryOutcome) {
        self.on_link(link, |session, hub| session.settle(hub, link, delivery, outcome));
    }

    /// Lets a sending peer have this much credit, what it has left counted in. Credit is never taken back, because
    /// messages that use it may be on their way.
    pub fn grant(&mut self, link: LinkId, credit: u32) {
        self.on_link(link, |session, hub| session.grant(hub, link, credit));
    }

    /// How many messages may be sent on the link now: by us, or by the peer if it is the sender.
    pub fn credit(&self, link: LinkId) -> u32 {
        let session = self.sessions.get(&link.channel);
        let link = session.and_then(|session| session.link(link));
        link.filter(|link| link.state == LinkState::Attached).map_or(0, |link| link.credit)
    }

    /// The largest message that may be sent on the link, in bytes.
    pub fn message_bytes_max(&self, link: LinkId) -> u64 {
        let session = self.sessions.get(&link.channel);
        session.and_then(|session| session.link(link)).map_or(0, |link| link.message_bytes_max)
    }

    /// Tells a draining peer that there is nothing more: its credit is used up. Nothing happens if it does not drain.
    pub fn drained(&mut self, link: LinkId) {
        self.on_link(link, |session, hub| session.drained(hub, link));
    }

    /// Of which deliveries not everything was written, in their order: what waits for the peer's window, or did when the
    /// link ended. They are known until the link is [detached](Connection::detach), which answers that end, or the connection is dropped.
    pub fn unsent(&self, link: LinkId) -> Vec<DeliveryNumber> {
        match self.hub.unsent.get(&link) {
            Some(unsent) => unsent.iter().copied().map(DeliveryNumber).collect(),
            None => self.sessions.get(&link.channel).map(|session| session.unsent(link)).unwrap_or_default(),
        }
    }

    /// Ends a session that the peer has ended. Nothing happens if it is over, or the peer goes on with it.
    pub fn end(&mut self, channel: u16) {
        if let Some(session) = self.sessions.get_mut(&channel).filter(|session| session.is_left) {
            session.forget(&mut self.hub, None);
            self.hub.outbox.frame(channel, |out| ClosingFrame::default().write(out, END));
            self.sessions.remove(&channel);
        }
    }

    /// Ends a link, or answers the peer that has ended it; one that was not answered is refused. Its deliveries are
    /// forgotten, and no event tells so.
    pub fn detach(&mut self, link: LinkId, error: Option<AmqpError>) {
        self.hub.unsent.remove(&link);
        if self.phase == ConnectionPhase::Open {
            self.on_link(link, |session, hub| session.miss_partial(hub, link.handle));
        }
        self.on_link(link, |session, hub| session.detach(hub, link.handle, error));
    }

    /// Ends the connection, or answers the peer that has ended it. If it was not over, the event that it is closed
    /// follows those that were not asked for yet.
    pub fn close(&mut self, error: Option<AmqpError>) {
        if self.is_over() {
            return;
        }
        if let ConnectionPhase::Left { wants_close } = self.phase {
            if wants_close {
                self.hub.outbox.with_error(0, error, |out, error| ClosingFrame { error }.write(out, CLOSE));
            }
            return self.finish();
        }
        self.forget_sessions();
        if self.phase == ConnectionPhase::Open {
            self.hub
                .outbox
                .with_error(0, error.clone(), |out, error| ClosingFrame { error }.write(out, CLOSE));
            self.phase = ConnectionPhase::Closing;
            self.pulse.begin_stage(self.hub.options.open_ms_max);
        } else {
            self.finish();
        }
        self.hub.events.push_back(AmqpEvent::Closed { error });
    }

    /// Whether the peer has said that it closes, and did not just leave, fall silent or break a rule.
    pub fn was_closed_by_peer(&self) -> bool {
        self.phase == ConnectionPhase::Left { wants_close: true }
    }

    /// Ends the connection because of what the peer did or did not do.
    pub(crate) fn fail(&mut self, error: AmqpError) {
        self.close(Some(error));
    }

    pub(crate) fn finish(&mut self) {
        self.phase = ConnectionPhase::Finished;
        self.input = BytesMut::new();
        self.forget_sessions();
    }

    /// Forgets everything on the connection but what is already to be written.
    fn forget_sessions(&mut self) {
        self.sessions.values_mut().for_each(|session| session.keep_unsent(&mut self.hub));
        self.sessions.clear();
        self.endings = None;
        self.held = None;
    }

    /// Whether it was said that the connection is closed.
    fn is_over(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Closing | ConnectionPhase::Finished)
    }

    /// Does something with a link, if it is still there.
    fn on_link(&mut self, link: LinkId, act: impl FnOnce(&mut Session, &mut Hub)) {
        let session = self.sessions.get_mut(&link.channel);
        if let Some(session) = session.filter(|session| session.link(link).is_some()) {
            act(session, &mut self.hub);
        }
    }
}
