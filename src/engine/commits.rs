//! Commits under way: while one is written by a thread of its own, the hot loop prepares the next turns, which are written together.
//!
//! What follows from a turn is published with its commit, never before, and in order: answers, events, looks at
//! what the turn has changed, and backups. A small turn beside no other is committed by the hot loop itself, so that it waits
//! for no other thread.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use tokio::sync::broadcast;

// Named from here, because the tests compile this file among other threads (`handoff`).
use super::inbox::BackupOrder;
use super::inbox::BackupSlot;
use super::inbox::Inbox;
use super::inbox::Request;
use super::letter::LetterHandle;
use super::threads::AtomicBool;
use super::threads::AtomicU64;
use super::threads::AtomicUsize;
use super::threads::Committer;
use super::threads::Job;
use super::threads::JoinHandle;
use super::threads::Snapshot;
use super::threads::guarded;
use super::threads::mpsc;
use super::threads::spawn;
use crate::engine::meter::CommitMeter;
use crate::engine::query::Look;
use crate::engine::rules::effect::Event;
use crate::engine::store::copy_room::CopyRoom;
use crate::error::Fault;
use crate::error::OperateError;
use crate::error::OperateRefusal;
use crate::error::Unavailable;
use crate::limits;

/// What is published once a turn is on disk.
#[derive(Default)]
pub(crate) struct Release {
    pub(crate) answers: Vec<LetterHandle>,
    pub(crate) events: Vec<Event>,
    pub(crate) looks: Vec<Look>,
    pub(crate) backups: Vec<BackupOrder>,
}

impl Release {
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.events.is_empty() && self.looks.is_empty() && self.backups.is_empty()
    }

    /// Adds what is published once the turn behind it is on disk as well.
    fn append(&mut self, mut later: Release) {
        self.answers.append(&mut later.answers);
        self.events.append(&mut later.events);
        self.looks.append(&mut later.looks);
        self.backups.append(&mut later.backups);
    }
}

/// What is committed together: turns that follow each other.
struct CommitGroup {
    jobs: Vec<Job>,
    release: Release,
    turns: usize,
}

impl CommitGroup {
    fn new(job: Option<Job>, release: Release) -> CommitGroup {
        CommitGroup { jobs: Vec::from_iter(job), release, turns: 1 }
    }

    /// Adds turns that wait, until there are so many.
    fn take_waiting(&mut self, waiting: &mpsc::Receiver<(Option<Job>, Release)>, turns_max: usize) {
        while self.turns < turns_max
            && let Ok((job, release)) = waiting.try_recv()
        {
            self.jobs.extend(job);
            self.release.append(release);
            self.turns += 1;
        }
    }
}

/// The commits under way, as the hot loop sees them.
pub(crate) struct Commits {
    commit_worker: CommitWorker,
    sender: Option<mpsc::SyncSender<(Option<Job>, Release)>>,
    thread: Option<JoinHandle<()>>,
    /// Ends once there is no copy under way, and none can begin.
    copies: mpsc::Receiver<()>,
}

/// Whoever commits, on whichever thread.
#[derive(Clone)]
struct CommitWorker {
    committer: Committer,
    inbox: Inbox,
    events: broadcast::Sender<Event>,
    meter: CommitMeter,
    progress: Arc<CommitProgress>,
    /// Each copy under way has one like it; `None` once none may begin.
    copying: Option<mpsc::Sender<()>>,
}

/// How far commits have come.
#[derive(Default)]
struct CommitProgress {
    under_way: AtomicUsize,
    committed: AtomicU64,
    failed: OnceLock<Fault>,
    /// Whether copies are to end, because the file is to be closed.
    ends_copies: AtomicBool,
}

impl Commits {
    /// Starts the thread.
    pub(crate) fn start(
        committer: Committer,
        inbox: Inbox,
        events: broadcast::Sender<Event>,
        meter: CommitMeter,
    ) -> Result<Commits, Fault> {
        let (copying, copies) = mpsc::channel();
        let (progress, copying) = (Arc::default(), Some(copying));
        let commit_worker = CommitWorker { committer, inbox, events, meter, progress, copying };
        let turns_max = commit_worker.committer.turns_max();
        let (sender, waiting) = mpsc::sync_channel::<(Option<Job>, Release)>(turns_max);
        let own_commit_worker = commit_worker.clone();
        let work = move || {
            while let Ok((job, release)) = waiting.recv() {
                let mut group = CommitGroup::new(job, release);
                group.take_waiting(&waiting, turns_max);
                let turns = group.turns;
                // A failed commit is noted with the commits, which refuse all that follow.
                let _ = own_commit_worker.commit(group);
                own_commit_worker.progress.under_way.fetch_sub(turns, Ordering::Release);
            }
        };
        let thread = spawn("seriatim-commits", work).map_err(|error| Fault::File(Arc::new(error)))?;
        Ok(Commits { commit_worker, sender: Some(sender), thread: Some(thread), copies })
    }

    /// Commits a turn, and lets out what follows from it. The hot loop does not wait for that, unless the turn is so small that
    /// what comes meanwhile had better share one commit.
    ///
    /// # Errors
    /// The fault of this commit or of one before it.
    pub(crate) fn hand_over(&self, job: Option<Job>, release: Release) -> Result<(), Fault> {
        let is_small = job.as_ref().is_none_or(|job| job.bytes() < limits::COMMIT_ALONGSIDE_BYTES);
        if is_small && self.is_idle() {
            return self.commit_now(job, release);
        }
        let release = self.commit_worker.unless_failed(release)?;
        self.commit_worker.progress.under_way.fetch_add(1, Ordering::Relaxed);
        let sender = self.sender.as_ref().expect("the thread is there until the engine ends");
        let sent = sender.send((job, release));
        sent.map_err(|_| Fault::Defect("the thread that commits has ended".to_owned()))
    }

    /// Commits a turn before it returns, when nothing is under way.
    ///
    /// # Errors
    /// The fault of this commit or of one before it.
    pub(crate) fn commit_now(&self, job: Option<Job>, release: Release) -> Result<(), Fault> {
        assert!(self.is_idle(), "commits are made in the order of their turns");
        self.commit_worker.commit(CommitGroup::new(job, release))
    }

    /// The position up to which all is committed.
    pub(crate) fn committed(&self) -> u64 {
        self.commit_worker.progress.committed.load(Ordering::Acquire)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.commit_worker.progress.under_way.load(Ordering::Acquire) == 0
    }

    /// The fault of a commit, if one has failed.
    pub(crate) fn failed(&self) -> Option<&Fault> {
        self.commit_worker.progress.failed.get()
    }

    /// Waits until nothing is under way, but for copies, and the thread has let go of the file.
    pub(crate) fn finish(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was caught and noted as a fault.
            let _ = thread.join();
        }
    }

    /// Ends copies: the file could not be opened again as long as one reads it. One whose disk does not answer is left behind.
    pub(crate) fn end_copies(&mut self) {
        self.commit_worker.progress.ends_copies.store(true, Ordering::Release);
        self.commit_worker.copying = None;
        if let Err(mpsc::RecvTimeoutError::Timeout) = self.copies.recv_timeout(limits::COPY_END) {
            tracing::warn!("a backup does not end: the file cannot be opened again before it does");
        }
    }
}

impl Drop for Commits {
    /// Whoever opens the file next, at once perhaps, finds it closed. Who unwinds waits for nobody.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.finish();
        }
    }
}

impl CommitWorker {
    /// Whoever waits hears of a panic, too: what it has dropped is answered with the fault.
    fn commit(&self, group: CommitGroup) -> Result<(), Fault> {
        guarded(|| self.commit_unguarded(group))
            .unwrap_or_else(|defect| Err(self.fail(defect, Release::default())))
    }

    fn commit_unguarded(&self, CommitGroup { jobs, release, .. }: CommitGroup) -> Result<(), Fault> {
        let release = self.unless_failed(release)?;
        if let Some(last) = jobs.last() {
            let committed = self.meter.measure(release.answers.len(), || self.committer.commit(&jobs));
            if let Err(fault) = committed {
                return Err(self.fail(fault, release));
            }
            self.progress.committed.store(last.position, Ordering::Release);
        }
        self.publish(release);
        Ok(())
    }

    /// What is to be let out, unless a commit has failed: then it is refused.
    fn unless_failed(&self, release: Release) -> Result<Release, Fault> {
        match self.progress.failed.get() {
            None => Ok(release),
            Some(fault) => {
                self.refuse(release, fault);
                Err(fault.clone())
            }
        }
    }

    /// Notes that a commit has failed, and refuses what was to follow from it; the first fault of all.
    fn fail(&self, fault: Fault, release: Release) -> Fault {
        let fault = self.progress.failed.get_or_init(|| fault);
        // Who hears of the fault and asks how the engine is must not be told that it is well.
        self.inbox.end(Unavailable::Stopped(fault.clone()));
        self.refuse(release, fault);
        // The hot loop may be waiting for something to do.
        self.inbox.post_at_once(Request::Wake);
        fault.clone()
    }

    /// Lets events and answers out, now that their changes are on disk: who has an answer can find its events.
    fn publish(&self, release: Release) {
        for event in release.events {
            let _ = self.events.send(event);
        }
        for letter in release.answers {
            letter.publish(&mut |command| self.inbox.give_back(command));
        }
        for look in release.looks {
            look(Ok(()));
        }
        for backup in release.backups {
            self.back_up(backup);
        }
    }

    fn refuse(&self, release: Release, fault: &Fault) {
        let why = Unavailable::Stopped(fault.clone());
        for letter in release.answers {
            letter.fail(why.clone());
        }
        for look in release.looks {
            look(Err(why.clone()));
        }
        for backup in release.backups {
            let _ = backup.slot.send(Err(why.clone().into()));
        }
    }

    /// Copies the store on a thread of its own, while turns go on.
    fn back_up(&self, BackupOrder { target, room, slot }: BackupOrder) {
        let snapshot = match self.committer.snapshot() {
            Ok(snapshot) => snapshot,
            Err(fault) => return drop(slot.send(Err(failed_backup(&fault)))),
        };
        // The thread gets the slot once it is there, so that who waits can be told if it cannot start.
        let (sender, given) = mpsc::sync_channel::<BackupSlot>(1);
        let (progress, copying) = (self.progress.clone(), self.copying.clone());
        let copy = move || {
            let copied = copy_to(&target, snapshot, room.as_ref(), &progress.ends_copies);
            drop((room, copying));
            if let (Ok(slot), Some(copied)) = (given.recv(), copied) {
                let _ = slot.send(copied);
            }
        };
        match spawn("seriatim-backup", copy) {
            Ok(_) => drop(sender.send(slot)),
            Err(error) => {
                drop(slot.send(Err(failed_backup(&Fault::File(Arc::new(error))))));
            }
        }
    }
}

/// Copies the store; `None` when it was ended, as its file is to be closed. Then whoever asked hears why that is.
fn copy_to(
    target: &Path,
    snapshot: Snapshot,
    room: Option<&CopyRoom>,
    ends: &AtomicBool,
) -> Option<Result<u64, OperateError>> {
    let (refusal, is_over) = (Cell::new(None), || ends.load(Ordering::Acquire));
    let goes_on = |_| {
        let refused = room.and_then(|room| room.check().err());
        let goes_on = refused.is_none() && !is_over();
        refusal.set(refused);
        match goes_on {
            true => Ok(()),
            false => Err(Fault::File(Arc::new(io::Error::other("the copy was ended")))),
        }
    };
    match snapshot.back_up_to(target, &goes_on) {
        Ok(rows) => Some(Ok(rows)),
        Err(_) if is_over() => None,
        Err(fault) => Some(Err(match refusal.take() {
            Some(refusal) => OperateError::Refused(refusal),
            None => failed_backup(&fault),
        })),
    }
}

/// A fault of the copy, which is none of the engine.
fn failed_backup(fault: &Fault) -> OperateError {
    OperateError::Refused(OperateRefusal::BackupFailed(fault.to_string()))
}
