//! A hot loop as `writer.rs` has it, without rules: it gathers, makes a commit of what it has, and hands it over.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shuttle::rand::RngCore;
use tokio::sync::broadcast;
use tokio::sync::oneshot;

use super::commits::BackupSlot;
use super::commits::Commits;
use super::commits::LookSlot;
use super::commits::Release;
use super::disk::Committer;
use super::disk::Disk;
use super::disk::Job;
use super::disk::Planted;
use super::inbox::Inbox;
use super::inbox::InboxReceiver;
use super::inbox::ReplySlot;
use super::inbox::Request;
use super::inbox::UncommittedAnswer;
use super::inbox::inbox;
use super::threads::JoinHandle;
use super::threads::spawn;
use crate::clock::SystemClock;
use crate::clock::Timestamp;
use crate::engine::meter::CommitMeter;
use crate::engine::query::QueryAnswer;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;

/// Requests one turn takes, so that few askers need several turns.
const TURN_MAX: usize = 2;

/// Events kept for a listener: more than one story has.
const EVENTS_KEPT: usize = 64;

/// A hot loop at work.
pub(crate) struct HotLoop {
    pub(crate) inbox: Inbox,
    pub(crate) disk: Arc<Disk>,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) thread: JoinHandle<()>,
}

impl HotLoop {
    pub(crate) fn new(disk: Disk) -> HotLoop {
        let disk = Arc::new(disk);
        let (inbox, intake) = inbox();
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let posts_to = match disk.planted {
            Planted::LostWakeUps => super::inbox::inbox().0,
            _ => inbox.clone(),
        };
        let committer = Committer { disk: disk.clone() };
        let meter = CommitMeter::new(Arc::new(SystemClock::default()));
        let commits = Commits::start(committer, posts_to, events.clone(), meter).unwrap();
        let writer = Writer { intake, _inbox: inbox.clone(), commits, position: 0, disk: disk.clone() };
        let thread = spawn("writer", move || writer.run()).unwrap();
        HotLoop { inbox, disk, events, thread }
    }
}

/// What one gathering brought.
#[derive(Default)]
struct Gathered {
    commands: Vec<(Command, Option<ReplySlot>)>,
    looks: Vec<LookSlot>,
    backups: Vec<(PathBuf, BackupSlot)>,
    closing: Vec<oneshot::Sender<()>>,
}

struct Writer {
    intake: InboxReceiver,
    /// As the real one does, it keeps a handle of its own inbox, which therefore never disconnects.
    _inbox: Inbox,
    commits: Commits,
    position: u64,
    disk: Arc<Disk>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let mut gathered = self.gather();
            if let Some(fault) = self.commits.failed().cloned() {
                return self.stop(&Unavailable::Stopped(fault));
            }
            let closing = std::mem::take(&mut gathered.closing);
            let (job, release) = self.turn(gathered);
            if job.is_some() || !release.is_empty() {
                let more = self.intake.has_more();
                if let Err(fault) = self.commits.hand_over(job, release, more) {
                    return self.stop(&Unavailable::Stopped(fault));
                }
            }
            if !closing.is_empty() {
                self.stop(&Unavailable::Closed);
                return closing.into_iter().for_each(|slot| _ = slot.send(()));
            }
        }
    }

    fn gather(&mut self) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.add(self.intake.wait(None).expect("it keeps a handle of its own inbox").request);
        for _ in 1..TURN_MAX {
            match self.intake.take() {
                Some(posted) => gathered.add(posted.request),
                None => break,
            }
        }
        gathered
    }

    /// Commands change something; looks see what they have changed.
    fn turn(&mut self, gathered: Gathered) -> (Option<Job>, Release) {
        assert!(self.commits.committed() <= self.position);
        let changes = !gathered.commands.is_empty();
        self.position += u64::from(changes);
        let mut release = Release { backups: gathered.backups, ..Release::default() };
        for (command, slot) in gathered.commands {
            let (reply, queue) = self.apply(command);
            release.events.push(self.event());
            release.answers.extend(slot.map(|slot| (slot, UncommittedAnswer { reply, queue })));
        }
        for slot in gathered.looks {
            release.looks.push((slot, QueryAnswer::NextDue(Some(Timestamp::from_millis(self.position)))));
        }
        // Turns of both kinds: those that a commit is shared for, and those that are committed alongside the next.
        let large = shuttle::rand::thread_rng().next_u32().is_multiple_of(2);
        let bytes = if large { limits::COMMIT_ALONGSIDE_BYTES } else { 0 };
        (changes.then_some(Job { position: self.position, bytes }), release)
    }

    fn apply(&self, command: Command) -> (Reply, Option<QueueName>) {
        match command {
            Command::Take { queue, token, .. } => {
                self.disk.taken.fetch_add(1, Ordering::Relaxed);
                let locked_until = Timestamp::from_millis(self.position);
                let stream = WorkflowRef::Single(SequenceNumber::new(self.position));
                (
                    Reply::Take(Ok(Some(WorkflowGrant { token, locked_until, stream, state: None }))),
                    Some(queue),
                )
            }
            Command::CloseTaken { .. } => {
                self.disk.taken.fetch_sub(1, Ordering::Relaxed);
                (Reply::Done { more: false }, None)
            }
            _ => (Reply::Send(Ok(vec![Receipt::Accepted(SequenceNumber::new(self.position))])), None),
        }
    }

    fn event(&self) -> Event {
        Event {
            at: Timestamp::default(),
            queue: QueueName::new("q").unwrap(),
            workflow: None,
            sequence_number: Some(SequenceNumber::new(self.position)),
            kind: EventKind::Resumed,
        }
    }

    fn stop(mut self, why: &Unavailable) {
        self.commits.finish();
        self.intake.end(why.clone());
        while let Some(posted) = self.intake.take() {
            refuse(posted.request, why);
        }
    }
}

impl Gathered {
    fn add(&mut self, request: Request) {
        match request {
            Request::Command { command, slot, .. } => self.commands.push((command, Some(slot))),
            Request::Query { slot, .. } => self.looks.push(slot),
            Request::Backup { target, slot } => self.backups.push((target, slot)),
            Request::GiveBack(command) => self.commands.push((command, None)),
            Request::Close { slot } => self.closing.push(slot),
            Request::Wake | Request::Sleep { .. } | Request::Withdraw(_) => {}
        }
    }
}

/// Answers a request that comes too late; who is not answered notices that the slot is gone.
fn refuse(request: Request, why: &Unavailable) {
    match request {
        Request::Command { slot, .. } => drop(slot.send(Err(why.clone()))),
        Request::Query { slot, .. } => drop(slot.send(Err(why.clone()))),
        Request::Close { slot } => _ = slot.send(()),
        Request::Backup { .. }
        | Request::GiveBack(_)
        | Request::Sleep { .. }
        | Request::Withdraw(_)
        | Request::Wake => {}
    }
}
