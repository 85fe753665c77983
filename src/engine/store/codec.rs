//! Records as bytes: postcard, pinned by golden bytes in the tests.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record's bytes.
pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    encode_to(record, Vec::new())
}

/// A record's bytes, behind those that are there.
pub(crate) fn encode_to<T: Serialize>(record: &T, bytes: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(record, bytes).expect("records have no part that cannot be encoded")
}

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
