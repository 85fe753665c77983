//! A hot loop as `writer.rs` has it, without rules: it gathers, makes a commit of what it has, and hands it over.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::oneshot;

use super::commits::Commits;
use super::commits::Release;
use super::threads::Committer;
use super::threads::Disk;
use super::threads::Inbox;
use super::threads::Job;
use super::threads::JoinHandle;
use super::threads::Planted;
use super::threads::Request;
use super::threads::Unsealed;
use super::threads::mpsc;
use super::threads::spawn;
use crate::clock::Timestamp;
use crate::engine::query::Answer;
use crate::error::Unavailable;

/// Requests one turn takes, so that few askers need several turns.
const TURN_MAX: usize = 2;

/// A hot loop at work.
pub(crate) struct House {
    pub(crate) inbox: Inbox,
    pub(crate) thread: JoinHandle<()>,
}

impl House {
    pub(crate) fn new(fails_at: u64, faults: Planted) -> House {
        let disk = Arc::new(Disk { fails_at, faults, ..Disk::default() });
        let (sender, receiver) = mpsc::channel();
        let inbox = Inbox { sender, disk: disk.clone() };
        let (events, _) = broadcast::channel(1);
        let commits = Commits::start(Committer { disk }, inbox.clone(), events).unwrap();
        let writer = Writer { receiver, next: None, _inbox: inbox.clone(), commits, position: 0 };
        House { inbox, thread: spawn("writer", move || writer.run()).unwrap() }
    }
}

struct Writer {
    receiver: mpsc::Receiver<Request>,
    next: Option<Request>,
    /// As the real one does, it keeps a handle of its own inbox, which therefore never disconnects.
    _inbox: Inbox,
    commits: Commits,
    position: u64,
}

impl Writer {
    fn run(mut self) {
        loop {
            let Some(gathered) = self.gather() else { return self.stop(&Unavailable::Closed) };
            if let Some(fault) = self.commits.failed() {
                let why = Unavailable::Stopped(fault.clone());
                gathered.into_iter().for_each(|request| refuse(request, &why));
                return self.stop(&why);
            }
            let (job, release) = self.turn(gathered);
            if job.is_none() && release.is_empty() {
                continue;
            }
            let more = self.has_more();
            if let Err(fault) = self.commits.hand_over(job, release, more) {
                return self.stop(&Unavailable::Stopped(fault));
            }
        }
    }

    /// Waits for the first request, and takes what else has come; `None` when it is to end.
    fn gather(&mut self) -> Option<Vec<Request>> {
        let mut gathered = Vec::new();
        while gathered.len() < TURN_MAX {
            let request = match gathered.is_empty() && self.next.is_none() {
                true => self.receiver.recv().ok(),
                false => self.take(),
            };
            match request {
                Some(Request::Close) => return None,
                Some(request) => gathered.push(request),
                None => break,
            }
        }
        Some(gathered)
    }

    fn take(&mut self) -> Option<Request> {
        self.next.take().or_else(|| self.receiver.try_recv().ok())
    }

    fn has_more(&mut self) -> bool {
        self.next = self.take();
        self.next.is_some()
    }

    /// Commands change something, looks see what they have changed.
    fn turn(&mut self, gathered: Vec<Request>) -> (Option<Job>, Release) {
        assert!(self.commits.committed() <= self.position);
        let mut release = Release::default();
        let changes = gathered.iter().any(|request| matches!(request, Request::Command(_)));
        self.position += u64::from(changes);
        let position = self.position;
        for request in gathered {
            match request {
                Request::Command(slot) => release.answers.push((slot, Unsealed { position })),
                Request::Look(slot) => {
                    let seen = Answer::NextDue(Some(Timestamp::from_millis(position)));
                    release.looks.push((slot, seen));
                }
                Request::Backup(slot) => release.backups.push((PathBuf::new(), slot)),
                Request::Wake | Request::Close => {}
            }
        }
        (changes.then_some(Job { position }), release)
    }

    fn stop(mut self, why: &Unavailable) {
        self.commits.finish();
        while let Some(request) = self.take() {
            refuse(request, why);
        }
    }
}

/// Answers a request that comes too late; who is not answered notices that the slot is gone.
fn refuse(request: Request, why: &Unavailable) {
    match request {
        Request::Command(slot) => drop(slot.send(Err(why.clone()))),
        Request::Look(slot) => drop(slot.send(Err(why.clone()))),
        Request::Backup(_) | Request::Wake | Request::Close => {}
    }
}

/// Asks, and waits for the answer: the position it speaks of, unless there is none.
pub(crate) fn ask_command(inbox: &Inbox) -> Option<u64> {
    let (slot, answer) = oneshot::channel();
    inbox.sender.send(Request::Command(slot)).ok()?;
    let parcel = shuttle::future::block_on(answer).ok()?.ok()?;
    Some(parcel.position)
}

/// Looks, and waits for what is seen.
pub(crate) fn ask_look(inbox: &Inbox) -> Option<u64> {
    let (slot, answer) = oneshot::channel();
    inbox.sender.send(Request::Look(slot)).ok()?;
    match shuttle::future::block_on(answer).ok()?.ok()? {
        Answer::NextDue(Some(seen)) => Some(seen.as_millis()),
        other => panic!("another answer: {other:?}"),
    }
}

/// Asks for a backup, and waits for how far it goes.
pub(crate) fn ask_backup(inbox: &Inbox) -> Option<u64> {
    let (slot, answer) = oneshot::channel();
    inbox.sender.send(Request::Backup(slot)).ok()?;
    shuttle::future::block_on(answer).ok()?.ok()
}
