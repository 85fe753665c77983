//! Records as bytes: postcard, pinned by golden bytes in the tests.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record's bytes.
pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    postcard::to_stdvec(record).expect("records have no part that cannot be encoded")
}

/// A record from its bytes; `None` when they make no sense.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((record, [])) => Some(record),
        _ => None,
    }
}
