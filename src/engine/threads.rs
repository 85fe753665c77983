//! What requests and commits are handed over with: real threads, and what passes between them. The tests hand over the
//! same with threads whose schedule they choose (`handoff`).

use std::io;

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::MutexGuard;
pub(crate) use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::atomic::AtomicU64;
pub(crate) use std::sync::atomic::AtomicUsize;
pub(crate) use std::sync::mpsc;
pub(crate) use std::thread::JoinHandle;

pub(crate) use crate::engine::store::Committer;
pub(crate) use crate::engine::store::Job;
use crate::engine::store::caught;
use crate::engine::store::caught::PanicReport;
pub(crate) use crate::engine::store::snapshot::Snapshot;
use crate::error::Fault;

/// Starts a thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Does something; the defect if it panicked.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    caught::guarded(work).map_err(PanicReport::into_defect)
}
