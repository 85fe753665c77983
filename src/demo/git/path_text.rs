//! A path as text that loses nothing: UTF-8 stays as it is, every other byte and `%` itself become `%XX`.

use serde::Deserialize;
use serde::Deserializer;
use serde::Serializer;
use serde::de::Error as _;

/// A text in which a `%` is not followed by two hexadecimal digits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read a path: each % must be followed by two hexadecimal digits")]
pub(crate) struct NotAPathText;

/// Writes any bytes as text; [`decode`] gives the same bytes back.
pub(crate) fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Reads bytes from the text that [`encode`] wrote.
///
/// # Errors
///
/// When a `%` is not followed by two hexadecimal digits.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, NotAPathText> {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let (digits, after) = rest.split_first_chunk().ok_or(NotAPathText)?;
        path.push(hexadecimal(digits).ok_or(NotAPathText)?);
        rest = after;
    }
    Ok(path)
}

/// The value of two hexadecimal digits.
fn hexadecimal(digits: &[u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

/// Lets a field of bytes be text in a body: `#[serde(with = "path_text")]`.
pub(crate) fn serialize<S: Serializer>(path: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(path))
}

/// Lets a field of text be bytes in memory: `#[serde(with = "path_text")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    decode(&text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_ordinary_path_is_itself() {
        assert_eq!(encode(b"src/a b\n.rs"), "src/a b\n.rs");
        assert_eq!(encode("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
    }

    #[test]
    fn other_bytes_and_percent_are_escaped() {
        assert_eq!(encode(b"\xff/50%\xe9"), "%FF/50%25%E9");
    }

    #[test]
    fn a_broken_escape_is_refused() {
        for text in ["%", "%4", "a%G1", "%+1", "%\u{fc}"] {
            assert_eq!(decode(text), Err(NotAPathText), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(path in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(decode(&encode(&path)), Ok(path));
        }

        #[test]
        fn no_character_is_lost(text in "\\PC{0,32}|[%0-9A-F]{0,16}") {
            prop_assert_eq!(decode(&encode(text.as_bytes())), Ok(text.into_bytes()));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[%0-9a-z\u{fc}]{0,16}") {
            let _ = decode(&text);
        }
    }
}
