//! The bytes on disk. Knows rows, no rule.
//!
//! A turn changes rows on shelves (`shelf`, `change`), its commit appends them to the journal (`journal`), and a fold
//! takes what has come to rest to its tables (`fold`, paced by `window`). Opening reads the journal again (`replay`).

pub(crate) mod base;
mod change;
pub(crate) mod codec;
#[cfg(test)]
mod content;
mod create;
mod fold;
mod folded;
mod gate;
pub(crate) mod inspect;
pub(crate) mod job;
pub(crate) mod journal;
pub(crate) mod key;
mod lock_file;
pub(crate) mod merged;
pub(crate) mod meta;
mod neighbours;
mod open;
mod records;
mod replay;
mod rows;
pub(crate) mod schema;
mod seal;
mod shelf;
mod snapshot;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod store;
mod turn;
mod window;
pub(crate) mod words;
mod write;
mod written;

pub(crate) use crate::engine::store::job::Committer;
pub(crate) use crate::engine::store::job::Job;
pub(crate) use crate::engine::store::open::StoreOptions;
pub(crate) use crate::engine::store::store::Store;
