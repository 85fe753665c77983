//! How a connection begins: protocol headers, who the peer is, and what both can take.

use bytes::Buf;
use bytes::Bytes;

use crate::amqp::connection::Connection;
use crate::amqp::connection::ConnectionPhase;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::opening::Open;
use crate::amqp::sasl;
use crate::limits::AMQP_FRAME_BYTES_MIN;
use crate::limits::AMQP_PEER_IDLE_MS_MIN;

const AMQP_HEADER: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
const SASL_HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";

impl Connection {
    /// Takes a protocol header. One that is not understood is answered with one that is, as the standard wants.
    pub(crate) fn take_header(&mut self) -> bool {
        let Some(header) = self.input.first_chunk::<8>().copied() else {
            return self.take_wrong_beginning();
        };
        self.input.advance(header.len());
        match (header, self.phase) {
            (SASL_HEADER, ConnectionPhase::Header) => {
                self.hub.outbox.protocol_header(SASL_HEADER);
                let mechanisms = &self.hub.options.mechanisms;
                self.hub.outbox.sasl(|out| sasl::write_mechanisms(out, mechanisms));
                self.phase = ConnectionPhase::Mechanism;
            }
            (AMQP_HEADER, phase)
                if phase == ConnectionPhase::SecondHeader || self.hub.options.may_skip_sasl =>
            {
                self.hub.outbox.protocol_header(AMQP_HEADER);
                self.phase = ConnectionPhase::Opening;
            }
            _ => self.refuse_header(),
        }
        true
    }

    /// Whether a header can be refused before all of it is there: who speaks another protocol may wait for an answer.
    fn take_wrong_beginning(&mut self) -> bool {
        let known = self.input.len().min(4);
        let is_wrong = self.input[..known] != AMQP_HEADER[..known];
        if is_wrong {
            self.refuse_header();
        }
        is_wrong
    }

    fn refuse_header(&mut self) {
        self.hub.outbox.protocol_header(SASL_HEADER);
        self.fail(AmqpError::new(condition::NOT_IMPLEMENTED, "this protocol, or version, is not spoken"));
    }

    /// Takes the mechanism that the peer has chosen.
    pub(crate) fn take_mechanism(&mut self, body: &Bytes) {
        match sasl::Init::read(body) {
            Ok(init) if self.hub.options.mechanisms.iter().any(|known| init.mechanism == *known) => {
                self.phase = ConnectionPhase::Verdict;
                let sasl::Init { mechanism, response } = init;
                self.hub.events.push_back(AmqpEvent::Sasl { mechanism, response });
            }
            Ok(_) => {
                self.phase = ConnectionPhase::Verdict;
                self.answer_sasl(false);
            }
            Err(malformed) => self.fail(AmqpError::new(condition::DECODE_ERROR, malformed.to_string())),
        }
    }

    /// Answers [`AmqpEvent::Sasl`]. A peer that is not welcome is told so, and the connection is over.
    pub fn answer_sasl(&mut self, is_welcome: bool) {
        if self.phase != ConnectionPhase::Verdict {
            return;
        }
        self.hub.outbox.sasl(|out| sasl::write_outcome(out, is_welcome));
        if is_welcome {
            self.phase = ConnectionPhase::SecondHeader;
        } else {
            self.fail(AmqpError::new(condition::UNAUTHORIZED_ACCESS, "who the peer says it is was refused"));
        }
    }

    /// Opens, as the peer does.
    pub(crate) fn open(&mut self, open: Box<Open>) {
        let options = &self.hub.options;
        let answer = Open {
            container_id: options.container_id.clone(),
            hostname: None,
            max_frame_size: Some(options.frame_bytes_max),
            channel_max: Some(options.channels_max.saturating_sub(1)),
            idle_time_out: options.idle_ms,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: options.properties.clone(),
        };
        self.hub.outbox.frame(0, |out| answer.write(out));
        self.phase = ConnectionPhase::Open;
        self.pulse.stage_ends_ms = None;
        if let Some(idle_ms) = open.idle_time_out.filter(|idle_ms| *idle_ms > 0) {
            if idle_ms < AMQP_PEER_IDLE_MS_MIN {
                return self.fail(AmqpError::new(condition::NOT_ALLOWED, "the idle time-out is too short"));
            }
            self.pulse.beat_for(idle_ms);
        }
        let frame_bytes_max = open.max_frame_size.unwrap_or(u32::MAX);
        if frame_bytes_max < AMQP_FRAME_BYTES_MIN {
            return self.fail(AmqpError::new(condition::INVALID_FIELD, "a frame must hold 512 bytes"));
        }
        self.hub.outbox.frame_bytes_max = self.hub.options.frame_bytes_max.min(frame_bytes_max) as usize;
        self.hub.events.push_back(AmqpEvent::Opened(open));
    }
}
