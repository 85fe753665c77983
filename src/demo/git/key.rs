//! The workflow ID of a path.

use std::collections::HashMap;

use seriatim::limits::WORKFLOW_ID_CHARS_MAX;
use xxhash_rust::xxh3::xxh3_128;

use crate::demo::git::error::GitError;
use crate::demo::git::path_text;

/// Longest ID in bytes: no text so long has too many characters.
const ID_BYTES_MAX: usize = WORKFLOW_ID_CHARS_MAX;

/// Bytes of `#` and the 32 digits of a hash.
const HASH_SUFFIX_BYTES: usize = 33;

/// The workflow ID of a path: the path itself wherever it is short enough and UTF-8.
///
/// Any other path becomes as much of it as is readable, then `#` and the hash of all its bytes. The form is
/// stable: the same path has the same ID in every run and on every machine.
pub(crate) fn workflow_id(path: &[u8]) -> String {
    match str::from_utf8(path) {
        Ok(text) if (1..=ID_BYTES_MAX).contains(&text.len()) => text.to_owned(),
        _ => shortened(path),
    }
}

/// A readable beginning and a hash that tells apart what the beginning does not.
fn shortened(path: &[u8]) -> String {
    let mut id = String::from_utf8_lossy(path).into_owned();
    let mut cut = id.len().min(ID_BYTES_MAX - HASH_SUFFIX_BYTES);
    while !id.is_char_boundary(cut) {
        cut -= 1;
    }
    id.truncate(cut);
    id.push_str(&format!("#{:032x}", xxh3_128(path)));
    id
}

/// Checks that different paths have different workflow IDs. A path may be given more than once.
///
/// # Errors
///
/// When two paths share one ID: either a file is named like the shortened form of another, or two hashes
/// collide. Both happen only on purpose.
pub(crate) fn check_workflow_ids<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Result<(), GitError> {
    check_distinct(paths, workflow_id)
}

/// The check for any way of naming, so that a test can make two names collide.
fn check_distinct<'a>(
    paths: impl IntoIterator<Item = &'a [u8]>,
    name: impl Fn(&[u8]) -> String,
) -> Result<(), GitError> {
    let mut owners: HashMap<String, &[u8]> = HashMap::new();
    for path in paths {
        let id = name(path);
        let Some(owner) = owners.get(&id).copied() else {
            owners.insert(id, path);
            continue;
        };
        if owner != path {
            return Err(GitError::SameWorkflowId {
                id,
                first: path_text::encode(owner),
                second: path_text::encode(path),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use seriatim::WorkflowId;

    use super::*;

    #[test]
    fn a_short_utf8_path_is_its_own_id() {
        let longest = "d/".repeat(64);
        for path in ["Cargo.toml", "src/gr\u{fc}n.rs", "a\nb", &longest] {
            assert_eq!(workflow_id(path.as_bytes()), path);
        }
    }

    #[test]
    fn a_long_path_is_cut_and_hashed() {
        let path = format!("{}/end", "d/".repeat(64));
        let id = workflow_id(path.as_bytes());
        assert_eq!(id.len(), ID_BYTES_MAX);
        assert!(id.starts_with("d/d/"));
        assert!(id.ends_with(&format!("#{:032x}", xxh3_128(path.as_bytes()))));
    }

    #[test]
    fn a_path_that_is_not_utf8_stays_readable() {
        let id = workflow_id(b"caf\xe9.txt");
        assert!(id.starts_with("caf\u{fffd}.txt#"), "{id}");
    }

    #[test]
    fn ids_of_former_runs_stay_the_same() {
        assert_eq!(workflow_id(b"\xff"), "\u{fffd}#7e5dc90380f0640bd6bcec3c6b29d72e");
    }

    #[test]
    fn two_paths_with_one_id_are_refused() {
        let path = b"caf\xe9".as_slice();
        let twin = workflow_id(path);
        check_workflow_ids([path, b"b", path]).unwrap();
        let error = check_workflow_ids([path, b"b", twin.as_bytes()]).unwrap_err();
        assert!(error.to_string().contains("caf%E9"), "{error}");
        assert!(check_distinct([&b"a"[..], b"b"], |_| "same".to_owned()).is_err());
    }

    proptest! {
        #[test]
        fn every_path_has_a_valid_id(path in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(WorkflowId::new(workflow_id(&path)).is_ok());
        }

        #[test]
        fn every_text_has_a_valid_id(path in "\\PC{0,200}") {
            prop_assert!(WorkflowId::new(workflow_id(path.as_bytes())).is_ok());
        }
    }
}
