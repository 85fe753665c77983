//! The bytes on disk. Knows rows, no rule.

mod codec;
mod create;
mod gate;
mod key;
mod lock_file;
mod open;
mod records;
mod schema;
mod seal;
mod shelf;
mod snapshot;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod store;
mod turn;
mod write;

pub(crate) use crate::engine::store::open::StoreOptions;
pub(crate) use crate::engine::store::store::Store;
