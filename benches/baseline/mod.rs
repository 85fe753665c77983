//! What the engine is measured against: the same queue on SQLite, tuned for this work and for nothing else.
//!
//! One thread writes and commits all that waits as one transaction. What can be found again in the tables is kept in
//! memory: which workflows are ready, which are locked. What is acknowledged, counted or settled is on disk.

mod lanes;
mod sqlite;
mod tables;
mod writer;

pub(crate) use crate::baseline::sqlite::Sqlite;
