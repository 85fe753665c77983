//! Records as bytes: postcard, pinned by golden bytes in the tests.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::store::encoder::Encoder;

/// A record's bytes.
pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_to(record, &mut bytes);
    bytes
}

/// Puts a record's bytes behind those that are there.
#[inline]
pub(crate) fn encode_to<T: Serialize>(record: &T, bytes: &mut Vec<u8>) {
    // Most records fit, so that no byte of them has to look for room.
    bytes.reserve(RECORD_BYTES);
    record.serialize(&mut Encoder(bytes)).expect("records have no part that cannot be encoded");
}

/// About how many bytes a record has that is no message's content.
const RECORD_BYTES: usize = 64;

/// A record from its bytes; `None` when they make no sense.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match decode_first(bytes) {
        Some((record, [])) => Some(record),
        _ => None,
    }
}

/// A record from the beginning of bytes, and what follows.
pub(crate) fn decode_first<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    postcard::take_from_bytes(bytes).ok()
}
