//! What the frames of an open connection do.

use crate::amqp::closing::ClosingFrame;
use crate::amqp::connection::Connection;
use crate::amqp::connection::ConnectionPhase;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::frame;
use crate::amqp::frame::Frame;
use crate::amqp::frame::FrameKind;
use crate::amqp::hub::Breach;
use crate::amqp::link::LinkState;
use crate::amqp::opening::Begin;
use crate::amqp::performative::Performative;
use crate::amqp::session::Session;

impl Connection {
    /// Does one thing: tells one delivery of a disposition, or takes one frame. Says whether there was one to do.
    pub(crate) fn step(&mut self) -> bool {
        if self.end_one() || self.take_held() {
            return true;
        }
        let has_done = match self.phase {
            _ if self.held.is_some() => return false,
            ConnectionPhase::Verdict | ConnectionPhase::Left { .. } | ConnectionPhase::Finished => {
                return false;
            }
            ConnectionPhase::Header | ConnectionPhase::SecondHeader => self.take_header(),
            ConnectionPhase::Mechanism
            | ConnectionPhase::Opening
            | ConnectionPhase::Open
            | ConnectionPhase::Closing => self.take_frame(),
        };
        has_done || self.take_end()
    }

    /// Takes the end of the input, after everything before it.
    fn take_end(&mut self) -> bool {
        if !self.has_all_input {
            return false;
        }
        match self.phase {
            // Nobody answers any more.
            ConnectionPhase::Closing => self.finish(),
            _ => {
                let what = "the peer has left without closing";
                let error = Some(AmqpError::new(condition::CONNECTION_FORCED, what));
                self.hub.events.push_back(AmqpEvent::Closed { error });
                self.phase = ConnectionPhase::Left { wants_close: false };
            }
        }
        true
    }

    /// Takes the frame that had to wait until its handle or its channel was free.
    fn take_held(&mut self) -> bool {
        let Some((channel, performative)) = self.held.take() else { return false };
        if self.must_wait(channel, &performative) {
            self.held = Some((channel, performative));
            return false;
        }
        self.on_performative(channel, performative);
        true
    }

    /// Whether the peer uses a handle, or a channel, that it has left and that we still answer for.
    fn must_wait(&self, channel: u16, performative: &Performative) -> bool {
        let Some(session) = self.sessions.get(&channel) else { return false };
        let is_left = |handle: u32| {
            session.links.get(&handle).is_some_and(|link| matches!(link.state, LinkState::Left { .. }))
        };
        match performative {
            Performative::Begin(_) => session.is_left,
            Performative::Attach(attach) => is_left(attach.handle),
            _ => false,
        }
    }

    fn end_one(&mut self) -> bool {
        let Some(endings) = &mut self.endings else {
            return false;
        };
        let session = self.sessions.get_mut(&endings.channel);
        let (Some(session), Some(number)) = (session, endings.numbers.next()) else {
            self.endings = None;
            return false;
        };
        session.end_one(&mut self.hub, number, &endings.disposition);
        true
    }

    fn take_frame(&mut self) -> bool {
        let bytes_max = self.hub.options.frame_bytes_max as usize;
        match frame::take(&mut self.input, bytes_max) {
            Ok(None) => false,
            Ok(Some(frame)) => {
                self.on_frame(&frame);
                true
            }
            Err(what) => {
                self.input.clear();
                let was_closing = self.phase == ConnectionPhase::Closing;
                self.fail(AmqpError::new(condition::FRAMING_ERROR, what));
                if was_closing {
                    self.finish();
                }
                true
            }
        }
    }

    fn on_frame(&mut self, frame: &Frame) {
        match (self.phase, frame.kind) {
            (ConnectionPhase::Mechanism, FrameKind::Sasl) => self.take_mechanism(&frame.body),
            (ConnectionPhase::Mechanism, FrameKind::Amqp) | (_, FrameKind::Sasl) => {
                self.fail(AmqpError::new(condition::FRAMING_ERROR, "a frame of this type is not expected"));
            }
            (_, FrameKind::Amqp) if frame.body.is_empty() => {}
            (_, FrameKind::Amqp) => match Performative::read(&frame.body) {
                Ok(performative) => self.on_performative(frame.channel, performative),
                Err(malformed) => {
                    self.fail(AmqpError::new(condition::DECODE_ERROR, malformed.to_string()));
                }
            },
        }
    }

    pub(crate) fn on_performative(&mut self, channel: u16, performative: Performative) {
        match (self.phase, performative) {
            (ConnectionPhase::Opening, Performative::Open(open)) => self.open(open),
            (ConnectionPhase::Open | ConnectionPhase::Closing, Performative::Close(close)) => {
                self.closed(close)
            }
            (ConnectionPhase::Open, performative) if self.must_wait(channel, &performative) => {
                self.held = Some((channel, performative));
            }
            (ConnectionPhase::Open, performative) => {
                let settled_transaction = performative.settled_transaction().cloned();
                if let Err(breach) = self.in_session(channel, performative) {
                    self.hub.miss_part(settled_transaction.as_ref());
                    self.punish(channel, breach);
                }
            }
            (ConnectionPhase::Closing, _) => {}
            _ => self.fail(AmqpError::new(condition::NOT_ALLOWED, "the connection is not open")),
        }
    }

    /// The peer closes, or answers that we did.
    fn closed(&mut self, close: ClosingFrame) {
        if self.phase == ConnectionPhase::Open {
            self.hub.events.push_back(AmqpEvent::Closed { error: close.error });
            self.phase = ConnectionPhase::Left { wants_close: true };
        } else {
            self.finish();
        }
    }

    fn in_session(&mut self, channel: u16, performative: Performative) -> Result<(), Breach> {
        if let Performative::Begin(begin) = &performative {
            return self.begin(channel, begin);
        }
        let no_session =
            || Breach::connection(condition::NOT_ALLOWED, "no session has begun on this channel");
        let session = self.sessions.get_mut(&channel).ok_or_else(no_session)?;
        let hub = &mut self.hub;
        match performative {
            Performative::End(_) if session.is_ending => {
                session.forget(hub, None);
                self.sessions.remove(&channel);
                Ok(())
            }
            _ if session.is_left => Err(no_session()),
            Performative::End(end) => {
                session.left(hub, end.error);
                Ok(())
            }
            ended if session.is_ending => {
                hub.miss_part(ended.settled_transaction());
                Ok(())
            }
            Performative::Attach(attach) => session.attach(hub, attach),
            Performative::Flow(flow) => session.flow(hub, &flow),
            Performative::Transfer(transfer, payload) => session.transfer(hub, transfer, payload),
            Performative::Disposition(disposition) => {
                self.endings = Some(session.disposition(hub, disposition)?);
                Ok(())
            }
            Performative::Detach(detach) => session.detached(hub, detach),
            Performative::Open(_) | Performative::Begin(_) | Performative::Close(_) => {
                Err(Breach::connection(condition::NOT_ALLOWED, "the connection is open already"))
            }
        }
    }

    fn begin(&mut self, channel: u16, begin: &Begin) -> Result<(), Breach> {
        if channel >= self.hub.options.channels_max {
            return Err(Breach::connection(condition::FRAMING_ERROR, "a channel is above the highest"));
        }
        if self.sessions.contains_key(&channel) {
            return Err(Breach::connection(condition::NOT_ALLOWED, "a session has begun on this channel"));
        }
        if begin.remote_channel.is_some() {
            return Err(Breach::connection(
                condition::NOT_ALLOWED,
                "the answer is for a session that was never begun",
            ));
        }
        let session = Session::begin(&mut self.hub, channel, begin);
        self.sessions.insert(channel, session);
        Ok(())
    }

    /// Ends what the peer has broken.
    fn punish(&mut self, channel: u16, breach: Breach) {
        let session = self.sessions.get_mut(&channel);
        match (breach, session) {
            (Breach::Link(handle, error), Some(session)) => session.break_link(&mut self.hub, handle, error),
            (Breach::Session(error), Some(session)) => session.end(&mut self.hub, Some(error)),
            (Breach::Link(_, error) | Breach::Session(error) | Breach::Connection(error), _) => {
                self.fail(error)
            }
        }
    }
}
