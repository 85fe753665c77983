//! The body of a message that carries a change.

use serde::Deserialize;
use serde::Serialize;

use crate::demo::git::entry::TreeEntry;
use crate::demo::git::path_text;

/// The body of the message of one change: which path goes from what to what.
///
/// The workflow ID cannot stand in for the path, because it may be a shortened form of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeBody {
    /// The path in git's bytes; in the body it is text, with `%XX` for every byte that is not UTF-8.
    #[serde(with = "path_text")]
    pub(crate) path: Vec<u8>,
    /// What the path must hold for this change to be next; `None` is absent.
    pub(crate) old: Option<TreeEntry>,
    /// What the path holds afterwards; `None` is absent.
    pub(crate) new: Option<TreeEntry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_readable_json() {
        let body = ChangeBody {
            path: b"src/caf\xe9 100%.rs".to_vec(),
            old: None,
            new: Some(TreeEntry { mode: 0o100644, id: "ab".repeat(20) }),
        };
        let json = serde_json::to_string(&body).unwrap();
        let id = "ab".repeat(20);
        let expected =
            format!(r#"{{"path":"src/caf%E9 100%25.rs","old":null,"new":{{"mode":"100644","id":"{id}"}}}}"#);
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<ChangeBody>(&json).unwrap(), body);
    }

    #[test]
    fn a_body_with_a_broken_path_is_refused() {
        let json = r#"{"path":"100%","old":null,"new":null}"#;
        let error = serde_json::from_str::<ChangeBody>(json).unwrap_err();
        assert!(error.to_string().contains("two hexadecimal digits"), "{error}");
    }
}
