//! Records as bytes: postcard, pinned by golden bytes in the tests.

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record's bytes.
pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    encode_to(record, Vec::new())
}

/// A record's bytes, behind those that are there.
pub(crate) fn encode_to<T: Serialize>(record: &T, mut bytes: Vec<u8>) -> Vec<u8> {
    // Most records fit, so that no byte of them has to look for room.
    bytes.reserve(RECORD_BYTES);
    postcard::serialize_with_flavor(record, Behind(bytes))
        .expect("records have no part that cannot be encoded")
}

/// About how many bytes a record has that is no message's content.
const RECORD_BYTES: usize = 64;

/// Puts bytes behind others, as many at once as are given.
struct Behind(Vec<u8>);

impl Flavor for Behind {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
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
