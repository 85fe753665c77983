//! A repository whose mainline is replayed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::demo::git::change::PathChange;
use crate::demo::git::command::Git;
use crate::demo::git::entry::TreeEntry;
use crate::demo::git::error::GitError;
use crate::demo::git::limits;
use crate::demo::git::log;
use crate::demo::git::tree;

/// A repository with its mainline: the head at the time of opening and its first parents, down to the root.
///
/// Changes and tree are those of that head, whatever is committed meanwhile. Nothing is written, nothing is
/// fetched, and no program that the repository's settings name is run.
#[derive(Debug)]
pub(crate) struct Repository {
    git: Git,
    head: String,
}

impl Repository {
    /// Opens the repository that contains a folder: its work tree, any folder below, or a bare repository.
    ///
    /// # Errors
    ///
    /// When there is no git, no such folder, no repository, no commit, or only the end of a history.
    pub(crate) fn open(path: &Path) -> Result<Repository, GitError> {
        check_folder(path)?;
        let git = Git::new(path);
        match git.line(&["rev-parse", "--is-shallow-repository"])?.as_str() {
            "false" => {}
            "true" => return Err(GitError::Shallow { path: path.into() }),
            // A git older than 2.15 repeats the question.
            other => {
                return Err(GitError::unexpected("true or false; git may be too old", other.as_bytes()));
            }
        }
        let head = git.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let head = head.map_err(|error| match error {
            // Asked quietly, git says nothing when there is no commit, and complains about all else.
            GitError::Silent { path, status } if status.code() == Some(1) => GitError::NoCommits { path },
            other => other,
        })?;
        Ok(Repository { git, head })
    }

    /// The id of the commit at which the mainline ends.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// All changes of all paths on the mainline, from the root to the head.
    ///
    /// Each change of a path continues the previous one: it is checked while reading.
    ///
    /// # Errors
    ///
    /// When git fails, or the history is altered, damaged, or longer than what is held in memory.
    pub(crate) fn changes(&self) -> Result<Vec<PathChange>, GitError> {
        let command = self.git.command(&[
            "log",
            // One line of history; a merge is the change it brought to that line.
            "--first-parent",
            "-m",
            "--reverse",
            // The changes in full, for the root commit as well.
            "--raw",
            "--root",
            "--no-abbrev",
            "-z",
            log::FORMAT,
            // Whatever a setting might add, hide or join.
            "--no-renames",
            "--no-relative",
            "--ignore-submodules=none",
            "--no-show-signature",
            "--no-notes",
            "--no-color",
            "--no-ext-diff",
            "-O/dev/null",
            &self.head,
            "--",
        ]);
        let changes = self.git.run(command, |output| log::read_changes(output, limits::CHANGES_MAX));
        changes.map_err(|error| self.explain_missing(error))
    }

    /// All paths of the head with what they hold: what the replay must end with.
    ///
    /// # Errors
    ///
    /// When git fails, or the tree is larger than what is held in memory.
    pub(crate) fn head_tree(&self) -> Result<BTreeMap<Vec<u8>, TreeEntry>, GitError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", &self.head];
        let tree = self.git.run(self.git.command(&arguments), |output| tree::read_tree(output));
        tree.map_err(|error| self.explain_missing(error))
    }

    /// Tells a clone that left folders at the server from one that lost them.
    fn explain_missing(&self, error: GitError) -> GitError {
        match error {
            GitError::Refused { path, complaint }
                if complaint.contains("unable to read tree") && self.is_partial() =>
            {
                GitError::Partial { path, complaint }
            }
            other => other,
        }
    }

    /// Whether objects were left at a server when this was cloned.
    fn is_partial(&self) -> bool {
        let setting = r"^remote\..*\.promisor$";
        self.git.line(&["config", "--get-regexp", setting]).is_ok()
    }
}

/// Checks that there is a folder, because git's own words for it are about changing into it.
fn check_folder(path: &Path) -> Result<(), GitError> {
    let path = path.to_path_buf();
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(GitError::NotAFolder { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(GitError::PathMissing { path }),
        Err(source) => Err(GitError::PathUnreadable { path, source }),
    }
}

#[cfg(test)]
mod refusals;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod tests;
