//! Records as bytes: postcard, pinned by golden bytes in the tests.

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record's bytes.
pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_to(record, &mut bytes);
    bytes
}

/// Puts a record's bytes behind those that are there.
pub(crate) fn encode_to<T: Serialize>(record: &T, bytes: &mut Vec<u8>) {
    // Most records fit, so that no byte of them has to look for room.
    bytes.reserve(RECORD_BYTES);
    postcard::serialize_with_flavor(record, Behind(bytes))
        .expect("records have no part that cannot be encoded");
}

/// About how many bytes a record has that is no message's content.
const RECORD_BYTES: usize = 64;

/// As many bytes as nearly all numbers have at most: to put them down one by one is quicker than to copy them.
const FEW_BYTES: usize = 8;

/// Puts bytes behind others.
struct Behind<'b>(&'b mut Vec<u8>);

impl Flavor for Behind<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        match bytes.len() {
            0..=FEW_BYTES => bytes.iter().for_each(|byte| self.0.push(*byte)),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
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
