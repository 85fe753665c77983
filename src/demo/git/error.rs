//! What can be wrong with a repository, in words its owner understands.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::demo::git::limits;

/// Why the history of a repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    /// There is no `git` program.
    #[error("cannot run git: there is no such program; install git or put it on the PATH")]
    NotInstalled,

    /// The program exists and could not be run, or its output could not be read.
    #[error("cannot run git: {0}")]
    NotRun(#[source] io::Error),

    /// The path names nothing.
    #[error("cannot open {}: it does not exist", path.display())]
    PathMissing { path: PathBuf },

    /// The path names a file.
    #[error("cannot open {}: it is not a folder", path.display())]
    NotAFolder { path: PathBuf },

    /// The operating system does not let the path be looked at.
    #[error("cannot open {}: {source}", path.display())]
    PathUnreadable { path: PathBuf, source: io::Error },

    /// The path is a folder outside of any repository.
    #[error("cannot open {}: neither it nor a folder above it is a git repository", path.display())]
    NotARepository { path: PathBuf },

    /// The repository belongs to somebody else, and git refuses to trust it.
    #[error("cannot open {}: git does not trust it because another user owns it; git says: {complaint}", path.display())]
    NotTrusted { path: PathBuf, complaint: String },

    /// The clone was cut off, so first changes of its paths are missing.
    #[error(
        "cannot replay {0}: it is a shallow clone, so the beginning of its history is missing; \
         get it with: git -C {0} fetch --unshallow",
        path.display()
    )]
    Shallow { path: PathBuf },

    /// The clone left objects at the server, and reading must not go to the network for each of them.
    #[error(
        "cannot replay {}: it is a partial clone without the folders of old commits; \
         clone it again without --filter, or with --filter=blob:none; git says: {complaint}",
        path.display()
    )]
    Partial { path: PathBuf, complaint: String },

    /// There is no first commit yet, or HEAD names a branch that does not exist.
    #[error(
        "cannot replay {}: its HEAD names no commit; either nothing was committed yet, \
         or HEAD names a branch that does not exist",
        path.display()
    )]
    NoCommits { path: PathBuf },

    /// Git ended with a complaint that has no words of its own here.
    #[error("cannot read {}: git says: {complaint}", path.display())]
    Refused { path: PathBuf, complaint: String },

    /// Git ended with a failure and no complaint; it may have been killed.
    #[error("cannot read {}: git ended without a word ({status})", path.display())]
    Silent { path: PathBuf, status: ExitStatus },

    /// The history is larger than what is held in memory.
    #[error("cannot replay so long a history: at most {} changes are read", max)]
    TooManyChanges { max: usize },

    /// The tree is larger than what is held in memory.
    #[error("cannot read so large a tree: at most {} paths are read", limits::PATHS_MAX)]
    TooManyPaths,

    /// A path, or what should be one, is longer than git's own limits.
    #[error("cannot read git's output: a piece is longer than {} bytes", limits::TOKEN_BYTES_MAX)]
    TokenTooLong,

    /// The output ended in the middle of a record.
    #[error("cannot read git's output: it ends in the middle of a record")]
    CutShort,

    /// The output is not what this program asked for.
    #[error("cannot read git's output: expected {expected}, found {found:?}")]
    Unexpected { expected: &'static str, found: String },

    /// A change does not continue where the previous change of its path ended.
    #[error(
        "cannot follow {path} at commit {commit}: change {position} starts from {found} although the path was at \
         {expected}; the history is altered (grafts) or damaged"
    )]
    BrokenChain { path: String, commit: String, position: u64, expected: String, found: String },

    /// Two paths have the same workflow ID, so their changes would be mixed.
    #[error("cannot name the workflows: the paths {first} and {second} both become {id}")]
    SameWorkflowId { id: String, first: String, second: String },
}

impl GitError {
    /// Says what was expected and what came instead, in readable form.
    pub(crate) fn unexpected(expected: &'static str, found: &[u8]) -> GitError {
        let shown = &found[..found.len().min(limits::QUOTED_BYTES_MAX)];
        let found = String::from_utf8_lossy(shown).into_owned();
        GitError::Unexpected { expected, found }
    }
}
