//! Programs that run on: one JSON line in for each message, one out.

mod child_pool;
mod child_supervisor;
mod lines;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod persistent;
mod process_pool;
mod window;

pub(crate) use crate::handlers::persistent::child_pool::PersistentOptions;
pub(crate) use crate::handlers::persistent::persistent::Persistent;
