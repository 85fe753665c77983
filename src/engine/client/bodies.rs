//! Small bodies that are sent together, in memory that they share.

use bytes::BytesMut;

use crate::limits;
use crate::message::NewMessage;

/// Lays the small bodies of messages that are sent together side by side. Who receives one of them then needs no room to share it with
/// the engine, and whoever lets go of it last gives back many at once.
pub(crate) fn side_by_side(messages: &mut [NewMessage]) {
    if messages.len() < 2 {
        return;
    }
    let mut left: usize = messages.iter().map(small_bytes).sum();
    let mut block = BytesMut::new();
    for message in messages {
        let bytes = small_bytes(message);
        if bytes == 0 {
            continue;
        }
        if block.capacity() < bytes {
            block = BytesMut::with_capacity(left.min(limits::BODY_BLOCK_BYTES));
        }
        block.extend_from_slice(&message.body);
        message.body = block.split().freeze();
        left -= bytes;
    }
}

/// How many bytes a body has that is small.
fn small_bytes(message: &NewMessage) -> usize {
    Some(message.body.len()).filter(|bytes| *bytes <= limits::BODY_SMALL_BYTES).unwrap_or_default()
}
