//! The history of a git repository as messages that arrive out of order and must be applied in order.
//!
//! Each change of a path on the first-parent mainline is one message, the path is the workflow, the n-th change
//! of the path is the position, and messages arrive in the order in which people wrote them. After everything
//! was applied, the state of all workflows must equal the tree of the mainline's head.

mod arrival;
mod body;
mod change;
mod command;
mod entry;
mod error;
mod history;
mod key;
mod limits;
mod log;
mod path_text;
#[cfg(test)]
mod scratch;
mod tokens;
mod tree;

pub(crate) use crate::demo::git::arrival::arrival_order;
pub(crate) use crate::demo::git::arrival::count_early;
pub(crate) use crate::demo::git::body::ChangeBody;
pub(crate) use crate::demo::git::change::PathChange;
pub(crate) use crate::demo::git::entry::TreeEntry;
pub(crate) use crate::demo::git::error::GitError;
pub(crate) use crate::demo::git::history::Repository;
pub(crate) use crate::demo::git::key::check_workflow_ids;
pub(crate) use crate::demo::git::key::workflow_id;
