//! Small bodies that are sent together, in memory that they share.
//!
//! A body is made by a sender, kept by the thread that writes, and let go of last by a receiver. With memory of its own it was given
//! back by another thread than it was taken by, in pieces, between others that stayed: the slowest way for an allocator, and one that
//! leaves holes. The copy is made where the body was written a moment ago.

use bytes::BytesMut;

use crate::limits;
use crate::message::NewMessage;

/// Lays the small bodies of messages that are sent together side by side.
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::Message;

    fn checked(bodies: &[Bytes]) -> Vec<NewMessage> {
        bodies.iter().map(|body| Message::new(body.clone()).check().unwrap()).collect()
    }

    /// Bodies of which each says which it is.
    fn bodies(count: usize, bytes: usize) -> Vec<Bytes> {
        (0..count).map(|number| Bytes::from(vec![number as u8; bytes])).collect()
    }

    #[test]
    fn bodies_are_what_they_were_whatever_their_lengths() {
        let small = limits::BODY_SMALL_BYTES;
        let lengths = [0, 1, small, small + 1, 0, 7, 3 * small, 40, small];
        let bodies: Vec<_> = (0..12)
            .flat_map(|round| lengths.map(|bytes| Bytes::from(vec![round + (bytes % 251) as u8; bytes])))
            .collect();
        for count in [0, 1, 2, bodies.len()] {
            let mut messages = checked(&bodies[..count]);
            side_by_side(&mut messages);
            let after: Vec<_> = messages.into_iter().map(|message| message.body).collect();
            assert_eq!(after, bodies[..count]);
        }
    }

    #[test]
    fn a_large_body_and_one_that_is_sent_alone_are_not_copied() {
        let large = bodies(2, limits::BODY_SMALL_BYTES + 1);
        let mut messages = checked(&large);
        side_by_side(&mut messages);
        assert!(messages.iter().zip(&large).all(|(message, body)| message.body.as_ptr() == body.as_ptr()));
        let alone = bodies(1, 8);
        let mut messages = checked(&alone);
        side_by_side(&mut messages);
        assert_eq!(messages[0].body.as_ptr(), alone[0].as_ptr());
    }

    #[test]
    fn small_bodies_share_memory_and_the_last_keeps_one_block_of_it() {
        let mut messages = checked(&bodies(200, 256));
        side_by_side(&mut messages);
        let (first, second) = (&messages[0].body, &messages[1].body);
        assert_eq!(first.as_ptr_range().end, second.as_ptr(), "they lie side by side");
        let last = messages.pop().unwrap().body;
        drop(messages);
        let memory = last.try_into_mut().expect("nobody else has it");
        assert!(memory.capacity() <= limits::BODY_BLOCK_BYTES, "the last keeps {} bytes", memory.capacity());
    }
}
