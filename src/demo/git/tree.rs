//! The tree of one commit, as `git ls-tree -r -z` lists it.

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::demo::git::entry::TreeEntry;
use crate::demo::git::error::GitError;
use crate::demo::git::limits;
use crate::demo::git::tokens::Tokens;

/// Reads all paths of a tree with what they hold. A submodule is listed with its commit.
pub(crate) fn read_tree(source: impl BufRead) -> Result<BTreeMap<Vec<u8>, TreeEntry>, GitError> {
    let mut tokens = Tokens::new(source);
    let mut tree = BTreeMap::new();
    while let Some(token) = tokens.next()? {
        if tree.len() == limits::PATHS_MAX {
            return Err(GitError::TooManyPaths);
        }
        let (path, mode, id) = split(token).ok_or_else(|| unexpected(token))?;
        let entry = TreeEntry::parse(mode, id)?.ok_or_else(|| unexpected(token))?;
        tree.insert(path.to_vec(), entry);
    }
    Ok(tree)
}

/// The path, mode and id of `mode kind id TAB path`. The path is whatever follows the first tab, further tabs
/// included.
fn split(token: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let tab = token.iter().position(|byte| *byte == b'\t')?;
    let mut words = token[..tab].split(|byte| *byte == b' ');
    let (mode, _kind, id) = (words.next()?, words.next()?, words.next()?);
    Some((&token[tab + 1..], mode, id))
}

/// Says that a line is none.
fn unexpected(token: &[u8]) -> GitError {
    GitError::unexpected("a line of ls-tree", token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_may_be_part_of_a_path() {
        let id = "a".repeat(40);
        let tree = read_tree(format!("100644 blob {id}\ta\tb\0").as_bytes()).unwrap();
        assert_eq!(tree.keys().collect::<Vec<_>>(), [b"a\tb"]);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let zeros = "0".repeat(40);
        let absent = format!("000000 blob {zeros}\ta\0");
        for text in ["\0", "100644 blob\ta\0", "100644 blob xyz\ta\0", &absent] {
            let error = read_tree(text.as_bytes()).unwrap_err();
            assert!(matches!(error, GitError::Unexpected { .. }), "{text:?}: {error}");
        }
    }
}
