//! What a path holds in a tree.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;

use crate::demo::git::error::GitError;

/// What a path holds: a file, an executable, a symbolic link or the commit of a submodule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeEntry {
    /// The kind and the permissions, as git counts them: `0o100644`, `0o100755`, `0o120000` or `0o160000`.
    /// It is part of the entry because a path may change it and keep its content.
    #[serde(serialize_with = "serialize_mode", deserialize_with = "deserialize_mode")]
    pub(crate) mode: u32,
    /// The hexadecimal id of the content: 40 digits with SHA-1, 64 with SHA-256.
    pub(crate) id: String,
}

impl TreeEntry {
    /// Reads mode and id as git prints them; `None` is a path that is absent.
    pub(crate) fn parse(mode: &[u8], id: &[u8]) -> Result<Option<TreeEntry>, GitError> {
        let digits = str::from_utf8(mode).map_err(|_| GitError::unexpected("a mode", mode))?;
        let mode = parse_mode(digits).ok_or_else(|| GitError::unexpected("a mode", mode))?;
        if !matches!(id.len(), 40 | 64) || !id.iter().all(u8::is_ascii_hexdigit) {
            return Err(GitError::unexpected("an object id", id));
        }
        if mode == 0 {
            return Ok(None);
        }
        let id = String::from_utf8_lossy(id).into_owned();
        Ok(Some(TreeEntry { mode, id }))
    }
}

/// The text of git's own listings: the mode in octal, then the id.
impl fmt::Display for TreeEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06o} {}", self.mode, self.id)
    }
}

/// Reads six octal digits. A sign or a space, which the integer parser might let pass, is refused.
fn parse_mode(digits: &str) -> Option<u32> {
    let is_octal = |digit: u8| matches!(digit, b'0'..=b'7');
    if digits.len() != 6 || !digits.bytes().all(is_octal) {
        return None;
    }
    u32::from_str_radix(digits, 8).ok()
}

/// Writes the mode as everybody knows it, in octal digits.
fn serialize_mode<S: Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:06o}"))
}

/// Reads the mode from octal digits.
fn deserialize_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let digits = String::deserialize(deserializer)?;
    parse_mode(&digits).ok_or_else(|| D::Error::custom("a mode has six octal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_both_hashes_are_read() {
        for id in ["a1".repeat(20), "b2".repeat(32)] {
            let entry = TreeEntry::parse(b"100755", id.as_bytes()).unwrap().unwrap();
            assert_eq!(entry, TreeEntry { mode: 0o100755, id });
        }
    }

    #[test]
    fn mode_zero_is_an_absent_path() {
        assert_eq!(TreeEntry::parse(b"000000", "0".repeat(40).as_bytes()).unwrap(), None);
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        let id = "a".repeat(40);
        for mode in ["", "100", "+00644", "10064x", "1006444", "100 44"] {
            assert!(TreeEntry::parse(mode.as_bytes(), id.as_bytes()).is_err(), "{mode:?}");
        }
        for id in ["", "abc", &"g".repeat(40), &"a".repeat(41)] {
            assert!(TreeEntry::parse(b"100644", id.as_bytes()).is_err(), "{id:?}");
        }
        assert!(TreeEntry::parse(b"10\xff644", id.as_bytes()).is_err());
    }

    #[test]
    fn a_mode_is_octal_in_json() {
        let entry = TreeEntry { mode: 0o120000, id: "c3".repeat(20) };
        let json = serde_json::to_string(&entry).unwrap();
        assert_eq!(json, format!(r#"{{"mode":"120000","id":"{}"}}"#, entry.id));
        assert_eq!(serde_json::from_str::<TreeEntry>(&json).unwrap(), entry);
        assert!(serde_json::from_str::<TreeEntry>(r#"{"mode":"9","id":""}"#).is_err());
    }
}
