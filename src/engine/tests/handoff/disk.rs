//! As little of a store as commits need, and what a test knows of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use shuttle::sync::atomic::AtomicBool;
use shuttle::sync::atomic::AtomicU64;

use super::threads::spawn;
use crate::error::Fault;

/// One commit.
pub(crate) struct Job {
    pub(crate) position: u64,
    pub(crate) bytes: u64,
}

impl Job {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Mistakes planted to see that a broken promise is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Planted {
    #[default]
    Nothing,
    /// Answers leave while their commit may still be on its way to the disk.
    EarlyAnswers,
    /// Who commits posts to an inbox that nobody reads.
    LostWakeUps,
}

/// A disk, and what a test knows of it.
#[derive(Default)]
pub(crate) struct Disk {
    /// The position up to which all is on disk.
    durable: AtomicU64,
    /// The commit that fails; none for 0.
    fails_at: u64,
    failed: AtomicBool,
    writing: AtomicBool,
    /// How many workflows are accepted. Not for the threads under test, so nothing is scheduled around it.
    pub(crate) taken: AtomicUsize,
    pub(crate) planted: Planted,
}

impl Disk {
    /// A disk on which this commit fails; none for 0.
    pub(crate) fn new(fails_at: u64, planted: Planted) -> Disk {
        Disk { fails_at, planted, ..Disk::default() }
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

/// What commits to the disk.
#[derive(Clone)]
pub(crate) struct Committer {
    pub(crate) disk: Arc<Disk>,
}

impl Committer {
    /// Turns that may be committed together: fewer than wait, so that they are parted in many ways.
    pub(crate) fn turns_max(&self) -> usize {
        2
    }

    pub(crate) fn commit(&self, jobs: &[Job]) -> Result<(), Fault> {
        let (disk, last) = (self.disk.clone(), jobs.last().expect("a commit has a job").position);
        if disk.planted == Planted::EarlyAnswers {
            let write = move || _ = disk.durable.fetch_max(last, Ordering::SeqCst);
            return spawn("late", write).map(drop).map_err(|error| Fault::File(Arc::new(error)));
        }
        assert!(!disk.writing.swap(true, Ordering::SeqCst), "commits are written one at a time");
        assert!(!disk.has_failed(), "nothing is committed after a failed commit");
        for (job, position) in jobs.iter().zip(disk.durable() + 1..) {
            assert_eq!(job.position, position, "commits are written in order");
        }
        let fails = jobs.iter().any(|job| job.position == disk.fails_at);
        match fails {
            true => disk.failed.store(true, Ordering::SeqCst),
            false => disk.durable.store(last, Ordering::SeqCst),
        }
        disk.writing.store(false, Ordering::SeqCst);
        if fails { Err(Fault::Defect("planted".to_owned())) } else { Ok(()) }
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(Snapshot { position: self.disk.durable() })
    }
}

/// The state at some instant.
pub(crate) struct Snapshot {
    position: u64,
}

impl Snapshot {
    pub(crate) fn back_up_to(
        self,
        _target: &Path,
        progress: &dyn Fn(u64) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        progress(self.position)?;
        Ok(self.position)
    }
}
