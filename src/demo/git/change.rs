//! One change of one path.

use crate::demo::git::body::ChangeBody;
use crate::demo::git::entry::TreeEntry;

/// One change of one path on the mainline: what becomes one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathChange {
    /// The path from the root of the repository, in the bytes git stores; mostly UTF-8, never guaranteed.
    pub(crate) path: Vec<u8>,
    /// Counts the changes of this path from 1, and goes on counting when a deleted path comes back.
    pub(crate) position: u64,
    /// What the path held before; `None` is a path that was absent.
    pub(crate) old: Option<TreeEntry>,
    /// What the path holds afterwards; `None` is a path that was deleted.
    pub(crate) new: Option<TreeEntry>,
    /// When the author wrote the commit, in seconds since 1970.
    pub(crate) author_time: i64,
    /// The commit's place on the mainline, counted from 0 at the root.
    pub(crate) mainline: usize,
}

impl PathChange {
    /// The part of the change that its message carries; workflow and position travel beside it.
    pub(crate) fn body(&self) -> ChangeBody {
        ChangeBody { path: self.path.clone(), old: self.old.clone(), new: self.new.clone() }
    }
}
