//! What is to be written to the peer.

use bytes::BufMut;
use bytes::BytesMut;

use crate::amqp::attach::Role;
use crate::amqp::error::AmqpError;
use crate::amqp::frame::HEADER_BYTES;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::transfer::Disposition;
use crate::limits::AMQP_IDLE_OUTPUT_BYTES_MAX;

/// Frames in the order in which they are written.
#[derive(Debug)]
pub(crate) struct FrameQueue {
    bytes: BytesMut,
    /// The largest frame that the peer takes.
    pub(crate) frame_bytes_max: usize,
    /// A settlement that the next one may still join, with its channel. It is written before anything else.
    pending: Option<(u16, Disposition)>,
    /// Whether something was written since it was last asked.
    is_touched: bool,
    /// How many bytes were written since nothing waited, messages left out.
    answer_bytes: usize,
    /// The most bytes that have waited since the room for them was given up.
    most: usize,
}

impl FrameQueue {
    pub(crate) fn new(frame_bytes_max: usize) -> FrameQueue {
        FrameQueue {
            bytes: BytesMut::new(),
            frame_bytes_max,
            pending: None,
            is_touched: false,
            answer_bytes: 0,
            most: 0,
        }
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes that are no messages were written since nothing waited: at least as many as wait.
    pub(crate) fn answer_len(&self) -> usize {
        if self.bytes.is_empty() { 0 } else { self.answer_bytes }
    }

    /// Gives up the room of what was written, if nothing waits.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.is_empty() && self.most > AMQP_IDLE_OUTPUT_BYTES_MAX {
            (self.bytes, self.most) = (BytesMut::new(), 0);
        }
    }

    /// Everything that waits, the settlement that could still have grown included.
    pub(crate) fn bytes(&mut self) -> &mut BytesMut {
        self.write_pending();
        &mut self.bytes
    }

    /// Whether something was written since this was last asked.
    pub(crate) fn was_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    pub(crate) fn protocol_header(&mut self, header: [u8; 8]) {
        self.is_touched = true;
        self.bytes.put_slice(&header);
    }

    pub(crate) fn heartbeat(&mut self) {
        self.frame(0, |_| {});
    }

    /// Writes a frame of SASL. There is no limit to keep yet but the least one, and none is near it.
    pub(crate) fn sasl(&mut self, write: impl FnOnce(&mut BytesMut)) {
        self.put(1, 0, write);
    }

    /// Writes a frame, unless it is larger than the peer takes: then nothing is written.
    pub(crate) fn frame(&mut self, channel: u16, write: impl FnOnce(&mut BytesMut)) -> bool {
        self.write_pending();
        let from = self.bytes.len();
        self.put(0, channel, write);
        let fits = self.bytes.len() - from <= self.frame_bytes_max;
        if !fits {
            self.take_back(from);
        }
        fits
    }

    /// Takes back the last frame, which begins there.
    fn take_back(&mut self, from: usize) {
        self.answer_bytes -= self.bytes.len() - from;
        self.bytes.truncate(from);
    }

    fn put(&mut self, kind: u8, channel: u16, write: impl FnOnce(&mut BytesMut)) {
        self.is_touched = true;
        let from = self.bytes.len();
        self.answer_bytes = self.answer_len();
        self.bytes.put_slice(&[0, 0, 0, 0, 2, kind]);
        self.bytes.put_u16(channel);
        write(&mut self.bytes);
        let size = u32::try_from(self.bytes.len() - from).expect("frames stay below their limit");
        self.bytes[from..from + 4].copy_from_slice(&size.to_be_bytes());
        self.answer_bytes += size as usize;
        self.most = self.most.max(self.bytes.len());
    }

    /// Writes a frame with an error, whose description is cut if it must be.
    pub(crate) fn with_error(
        &mut self,
        channel: u16,
        error: Option<AmqpError>,
        write: impl Fn(&mut BytesMut, Option<AmqpError>),
    ) {
        if self.frame(channel, |out| write(out, error.clone())) {
            return;
        }
        let shorter = error.as_ref().map(AmqpError::shortened);
        if !self.frame(channel, |out| write(out, shorter)) {
            self.frame(channel, |out| write(out, None));
        }
    }

    /// Writes a part of a delivery: what goes before the payload, and as much of the payload as a frame holds. Says how
    /// much that was.
    pub(crate) fn transfer(
        &mut self,
        channel: u16,
        payload: &[u8],
        is_last: bool,
        write: impl FnOnce(&mut BytesMut),
    ) -> usize {
        self.write_pending();
        let (room, mut written) = (self.frame_bytes_max, 0);
        let answer_bytes = self.answer_len();
        self.put(0, channel, |out| {
            let from = out.len() - HEADER_BYTES;
            write(out);
            let room = room.saturating_sub(out.len() - from);
            // A frame that is not the last leaves a byte for the last, so that this is never empty.
            written = if is_last { payload.len() } else { room.min(payload.len().saturating_sub(1)) };
            out.put_slice(&payload[..written]);
        });
        self.answer_bytes = answer_bytes;
        written
    }

    /// Settles a delivery, in one frame with those before it if they ended in the same way.
    pub(crate) fn settle(&mut self, channel: u16, role: Role, delivery: u32, outcome: DeliveryOutcome) {
        if let Some((its_channel, pending)) = &mut self.pending {
            let last = pending.last.unwrap_or(pending.first);
            let is_next = last.wrapping_add(1) == delivery;
            let is_plain = matches!(outcome, DeliveryOutcome::Accepted | DeliveryOutcome::Released);
            let is_same = *its_channel == channel && pending.role == role;
            if is_next && is_plain && is_same && pending.state.as_ref() == Some(&outcome) {
                pending.last = Some(delivery);
                return;
            }
        }
        self.write_pending();
        let state = Some(outcome);
        self.pending = Some((
            channel,
            Disposition { role, first: delivery, last: None, settled: true, state, transaction: None },
        ));
    }

    fn write_pending(&mut self) {
        let Some((channel, disposition)) = self.pending.take() else {
            return;
        };
        let from = self.bytes.len();
        self.put(0, channel, |out| disposition.write(out));
        if self.bytes.len() - from > self.frame_bytes_max {
            self.take_back(from);
            let shorter = Disposition { state: disposition.state.map(plain), ..disposition };
            self.put(0, channel, |out| shorter.write(out));
        }
    }
}

/// The same outcome without what a peer can do without.
fn plain(outcome: DeliveryOutcome) -> DeliveryOutcome {
    match outcome {
        DeliveryOutcome::Rejected(Some(error)) => DeliveryOutcome::Rejected(Some(error.shortened())),
        DeliveryOutcome::Modified { delivery_failed, undeliverable_here, .. } => {
            DeliveryOutcome::Modified { delivery_failed, undeliverable_here, annotations: Vec::new() }
        }
        other => other,
    }
}
