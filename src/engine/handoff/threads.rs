//! Threads that a test schedules, and around them as little of an engine as commits need.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use shuttle::sync::atomic::AtomicBool;
pub(crate) use shuttle::sync::atomic::AtomicU64;
pub(crate) use shuttle::sync::atomic::AtomicUsize;
pub(crate) use shuttle::sync::mpsc;
pub(crate) use shuttle::thread::JoinHandle;
use tokio::sync::oneshot;

use crate::error::Fault;
use crate::error::Unavailable;

/// Starts a thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    shuttle::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// One commit.
pub(crate) struct Job {
    pub(crate) position: u64,
}

/// A disk, and what a test knows of it.
#[derive(Default)]
pub(crate) struct Disk {
    /// The position up to which all is on disk.
    pub(crate) durable: AtomicU64,
    /// The commit that fails; none for 0.
    pub(crate) fails_at: u64,
    pub(crate) failed: AtomicBool,
    pub(crate) writing: AtomicBool,
    /// The positions of the answers that were let out, in this order.
    pub(crate) let_out: Mutex<Vec<u64>>,
    pub(crate) faults: Planted,
}

/// Faults planted to see that a broken promise is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Planted {
    #[default]
    None,
    /// Commits return before they are on disk.
    LyingDisk,
    /// A failed commit wakes nobody.
    LostWake,
}

impl Disk {
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }
}

#[derive(Clone)]
pub(crate) struct Committer {
    pub(crate) disk: Arc<Disk>,
}

impl Committer {
    pub(crate) fn commit(&self, job: &Job) -> Result<(), Fault> {
        let disk = &self.disk;
        assert!(!disk.writing.swap(true, Ordering::SeqCst), "commits are written one at a time");
        assert!(!disk.failed.load(Ordering::SeqCst), "nothing is committed after a failed commit");
        if disk.faults == Planted::LyingDisk {
            disk.writing.store(false, Ordering::SeqCst);
            return Ok(());
        }
        assert_eq!(disk.durable() + 1, job.position, "commits are written in order");
        shuttle::thread::yield_now();
        let fails = job.position == disk.fails_at;
        if fails {
            disk.failed.store(true, Ordering::SeqCst);
        } else {
            disk.durable.store(job.position, Ordering::SeqCst);
        }
        disk.writing.store(false, Ordering::SeqCst);
        if fails { Err(Fault::Defect("planted".to_owned())) } else { Ok(()) }
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(Snapshot { rows: self.disk.durable() })
    }
}

/// The state at some instant.
pub(crate) struct Snapshot {
    rows: u64,
}

impl Snapshot {
    #[expect(clippy::unnecessary_wraps, reason = "a real one may fail")]
    pub(crate) fn write_to(self, _target: &Path, _progress: &dyn Fn(u64)) -> Result<u64, Fault> {
        Ok(self.rows)
    }
}

/// What is asked of the hot loop.
pub(crate) enum Request {
    Command(ReplySlot),
    Look(super::commits::LookSlot),
    Backup(super::commits::BackupSlot),
    Wake,
    Close,
}

/// The way to the hot loop.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) sender: mpsc::Sender<Request>,
    pub(crate) disk: Arc<Disk>,
}

impl Inbox {
    pub(crate) fn post_at_once(&self, request: Request) {
        let lost = self.disk.faults == Planted::LostWake && matches!(request, Request::Wake);
        if !lost {
            let _ = self.sender.send(request);
        }
    }
}

pub(crate) type ReplySlot = oneshot::Sender<Result<Parcel, Unavailable>>;

/// An answer that follows from the turn with this position.
pub(crate) struct Unsealed {
    pub(crate) position: u64,
}

/// An answer on its way.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) position: u64,
}

impl Unsealed {
    pub(crate) fn seal(self, inbox: &Inbox) -> Parcel {
        let let_out = &mut *inbox.disk.let_out.lock().unwrap();
        assert!(let_out.last().is_none_or(|last| *last <= self.position), "answers leave in order");
        let_out.push(self.position);
        Parcel { position: self.position }
    }
}
