//! The history as `git log --raw -z` prints it, read change by change.
//!
//! The output is a row of pieces that each end with a zero byte. A piece that begins with `commit` opens a commit;
//! a piece that begins with `:` describes a change and is followed by one piece which is the path. Line feeds
//! between them are decoration. A path may look like either kind and is never mistaken for it, because it only
//! stands where a path is due.

use std::collections::HashMap;
use std::collections::hash_map;
use std::io::BufRead;

use crate::demo::git::change::PathChange;
use crate::demo::git::entry::TreeEntry;
use crate::demo::git::error::GitError;
use crate::demo::git::path_text;
use crate::demo::git::tokens::Tokens;

/// What `git log` must print for each commit: its id, when it was written, and when it was committed.
pub(crate) const FORMAT: &str = "--format=commit %H %at %ct";

/// Reads a history from its root, and at most so many changes.
pub(crate) fn read_changes(source: impl BufRead, changes_max: usize) -> Result<Vec<PathChange>, GitError> {
    let mut tokens = Tokens::new(source);
    let mut mainline = Mainline::default();
    while let Some(token) = tokens.next()? {
        let token = token.strip_prefix(b"\n").unwrap_or(token);
        if let Some(words) = token.strip_prefix(b"commit ") {
            mainline.open_commit(words)?;
        } else if let Some(words) = token.strip_prefix(b":") {
            let (old, new) = parse_entries(words)?;
            let path = tokens.next()?.ok_or(GitError::CutShort)?.to_vec();
            if mainline.changes.len() == changes_max {
                return Err(GitError::TooManyChanges { max: changes_max });
            }
            mainline.add(path, old, new)?;
        } else if !token.is_empty() {
            return Err(GitError::unexpected("a commit or a change", token));
        }
    }
    Ok(mainline.changes)
}

/// The mainline as far as it was read.
#[derive(Default)]
struct Mainline {
    changes: Vec<PathChange>,
    commits: usize,
    /// The commit whose changes are being read.
    commit: LogCommit,
    tips: HashMap<Vec<u8>, Tip>,
}

/// What the log says of a commit besides its changes.
#[derive(Default)]
struct LogCommit {
    id: String,
    author_time: i64,
}

/// Where the changes of one path have led so far.
#[derive(Default)]
struct Tip {
    position: u64,
    entry: Option<TreeEntry>,
}

impl Mainline {
    /// Begins the next commit; `words` are its id and its two times.
    fn open_commit(&mut self, words: &[u8]) -> Result<(), GitError> {
        let text = str::from_utf8(words).map_err(|_| GitError::unexpected("a commit", words))?;
        let mut words = text.split(' ');
        let id = words.next().unwrap_or_default().to_owned();
        // Some commits of old tools have no readable author line. The committer's time is the next best, and it
        // only matters for the order of arrival, never for the result.
        let author_time = words.find_map(|word| word.parse().ok()).unwrap_or_default();
        self.commit = LogCommit { id, author_time };
        self.commits += 1;
        Ok(())
    }

    /// Adds a change of the open commit, after checking that it continues the path's previous change.
    fn add(&mut self, path: Vec<u8>, old: Option<TreeEntry>, new: Option<TreeEntry>) -> Result<(), GitError> {
        let mainline = self.commits.checked_sub(1);
        let mainline = mainline.ok_or_else(|| GitError::unexpected("a commit before its changes", &path))?;
        let tip = match self.tips.entry(path.clone()) {
            hash_map::Entry::Occupied(tip) => tip.into_mut(),
            hash_map::Entry::Vacant(slot) => slot.insert(Tip::default()),
        };
        let position = tip.position + 1;
        if tip.entry != old {
            return Err(GitError::BrokenChain {
                path: path_text::encode(&path),
                commit: self.commit.id.clone(),
                position,
                expected: describe(&tip.entry),
                found: describe(&old),
            });
        }
        *tip = Tip { position, entry: new.clone() };
        self.changes.push(PathChange {
            path,
            position,
            old,
            new,
            author_time: self.commit.author_time,
            mainline,
        });
        Ok(())
    }
}

/// What a path holds, in words.
fn describe(entry: &Option<TreeEntry>) -> String {
    match entry {
        Some(entry) => entry.to_string(),
        None => "absent".to_owned(),
    }
}

/// Reads `old-mode new-mode old-id new-id status`. The status is implied by the rest, except that it must be one
/// which is followed by a single path.
fn parse_entries(words: &[u8]) -> Result<(Option<TreeEntry>, Option<TreeEntry>), GitError> {
    let parts: Vec<&[u8]> = words.split(|byte| *byte == b' ').collect();
    let [old_mode, new_mode, old_id, new_id, b"A" | b"D" | b"M" | b"T"] = parts[..] else {
        return Err(GitError::unexpected("a change", words));
    };
    Ok((TreeEntry::parse(old_mode, old_id)?, TreeEntry::parse(new_mode, new_id)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHANGES_MAX: usize = 100;
    const ID: [&str; 3] = [
        "0000000000000000000000000000000000000000",
        "1111111111111111111111111111111111111111",
        "2222222222222222222222222222222222222222",
    ];

    fn read(text: &str) -> Result<Vec<PathChange>, GitError> {
        read_changes(text.as_bytes(), CHANGES_MAX)
    }

    fn added(path: &str) -> String {
        format!(":000000 100644 {} {} A\0{path}\0", ID[0], ID[1])
    }

    fn modified(path: &str) -> String {
        format!(":100644 100644 {} {} M\0{path}\0", ID[1], ID[2])
    }

    #[test]
    fn a_path_that_looks_like_a_commit_or_a_change_is_a_path() {
        let text = format!(
            "commit a 7 8\0\n{}{}commit b 9 9\0\n{}",
            added("commit x 1 1"),
            added(":000000"),
            added("\n")
        );
        let changes = read(&text).unwrap();
        let paths: Vec<&[u8]> = changes.iter().map(|change| &change.path[..]).collect();
        assert_eq!(paths, [&b"commit x 1 1"[..], b":000000", b"\n"]);
        assert_eq!(changes[2].mainline, 1);
        assert_eq!(changes[2].author_time, 9);
    }

    #[test]
    fn a_commit_without_a_readable_author_time_has_its_committer_time() {
        let text = format!("commit a  8\0\n{}commit b  \0\n{}", added("x"), added("y"));
        let times: Vec<i64> = read(&text).unwrap().iter().map(|change| change.author_time).collect();
        assert_eq!(times, [8, 0]);
    }

    #[test]
    fn a_change_that_does_not_continue_the_previous_one_is_refused() {
        let text = format!("commit a 1 1\0\n{}commit b 2 2\0\n{}", added("x%"), added("x%"));
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("follow x%25 at commit b: change 2"), "{error}");
        assert!(error.contains("starts from absent although the path was at 100644 1111"), "{error}");
        assert!(read(&format!("commit a 1 1\0\n{}", modified("x"))).is_err());
    }

    #[test]
    fn a_history_may_have_as_many_changes_as_are_allowed_and_no_more() {
        let mut text = "commit a 1 1\0\n".to_owned();
        for number in 0..CHANGES_MAX {
            text.push_str(&added(&number.to_string()));
        }
        assert_eq!(read(&text).unwrap().len(), CHANGES_MAX);
        text.push_str(&added("one more"));
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("at most 100 changes"), "{error}");
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let renamed = format!("commit a 1 1\0:100644 100644 {} {} R100\0x\0y\0", ID[1], ID[1]);
        let two_parents = format!("commit a 1 1\0::100644 100644 100644 {0} {0} {0} MM\0x\0", ID[1]);
        for text in ["fatal\0", &added("x"), "commit a 1 1\0:0 0\0x\0", &renamed, &two_parents] {
            let error = read(text).unwrap_err();
            assert!(matches!(error, GitError::Unexpected { .. }), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_log_cut_anywhere_is_read_or_refused_as_cut_short() {
        let text = format!("commit a 1 1\0\n{}commit b 2 2\0\n{}", added("x"), modified("x"));
        for end in 0..text.len() {
            match read(&text[..end]) {
                Ok(changes) => assert!(text.as_bytes()[..end].ends_with(b"\0") || end == 0, "{changes:?}"),
                Err(error) => assert!(matches!(error, GitError::CutShort), "{end}: {error}"),
            }
        }
    }

    proptest! {
        #[test]
        fn any_output_is_read_or_refused(text in "(commit |:|\n|\0|0{40}|1{40}|000000|100644| |A|M|x){0,40}") {
            let _ = read(&text);
        }
    }
}
