//! Cuts the stream of bytes into frames.

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;

/// A frame's header in bytes.
pub(crate) const HEADER_BYTES: usize = 8;

/// What a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Amqp,
    Sasl,
}

/// One frame without its header; an empty one is a heartbeat.
#[derive(Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) channel: u16,
    pub(crate) body: Bytes,
}

/// Takes the next frame from the input, once it is all there.
///
/// # Errors
/// What comes is no frame, or a larger one than was agreed: nothing after it can be found either.
pub(crate) fn take(input: &mut BytesMut, bytes_max: usize) -> Result<Option<Frame>, &'static str> {
    let Some(size) = input.first_chunk().map(|size| u32::from_be_bytes(*size) as usize) else {
        return Ok(None);
    };
    if size < HEADER_BYTES {
        return Err("a frame is shorter than its header");
    }
    if size > bytes_max {
        return Err("a frame is larger than was agreed");
    }
    if input.len() < size {
        return Ok(None);
    }
    let mut frame = input.split_to(size).freeze();
    let body_at = usize::from(frame[4]) * 4;
    let kind = match frame[5] {
        0 => FrameKind::Amqp,
        1 => FrameKind::Sasl,
        _ => return Err("a frame is of an unknown type"),
    };
    if body_at < HEADER_BYTES || body_at > size {
        return Err("the body of a frame begins outside of it");
    }
    let channel = u16::from_be_bytes([frame[6], frame[7]]);
    frame.advance(body_at);
    Ok(Some(Frame { kind, channel, body: frame }))
}
