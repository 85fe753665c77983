//! What is kept of workflows that were forgotten: the rows of a queue's remembered cursors.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;

/// Where a forgotten workflow stood. The ranges that it passed without completing them stay as its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// The next position to settle.
    pub(crate) next: u64,
    /// The highest position that was completed.
    pub(crate) done: u64,
    /// When the workflow was forgotten, in engine time: its age is counted from then.
    pub(crate) since: Timestamp,
}

/// How many cursors a queue remembers, and how much it ever forgot because there was too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CursorCount {
    pub(crate) kept: u64,
    /// How many were ever forgotten before their time, because there were too many.
    pub(crate) cut: u64,
    /// The instant of the pending reminder to forget the oldest.
    pub(crate) check: Option<Timestamp>,
    /// How many settled links of after-ordered workflows were ever forgotten, because a workflow had too many.
    pub(crate) links_cut: u64,
}
