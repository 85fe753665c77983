//! A hot loop as `writer.rs` has it, without rules: it gathers, makes a commit of what it has, and hands it over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shuttle::rand::RngCore;
use tokio::sync::broadcast;
use tokio::sync::oneshot;

use super::commits::Commits;
use super::commits::Release;
use super::disk::Committer;
use super::disk::Disk;
use super::disk::Job;
use super::disk::Planted;
use super::inbox::BackupOrder;
use super::inbox::Inbox;
use super::inbox::InboxReceiver;
use super::inbox::Request;
use super::inbox::inbox;
use super::letter::LetterHandle;
use super::threads::JoinHandle;
use super::threads::spawn;
use crate::clock::SystemClock;
use crate::clock::Timestamp;
use crate::engine::meter::CommitMeter;
use crate::engine::query::LookSlot;
use crate::engine::query::Query;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
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
    asked: Vec<LetterHandle>,
    given_back: Vec<Command>,
    looks: Vec<LookSlot<Option<Timestamp>>>,
    backups: Vec<BackupOrder>,
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
            if (job.is_some() || !release.is_empty())
                && let Err(fault) = self.commits.hand_over(job, release)
            {
                return self.stop(&Unavailable::Stopped(fault));
            }
            if !closing.is_empty() {
                self.stop(&Unavailable::Closed);
                return closing.into_iter().for_each(|slot| _ = slot.send(()));
            }
        }
    }

    fn gather(&mut self) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.add(self.intake.wait(None).expect("it keeps a handle of its own inbox"));
        for _ in 1..TURN_MAX {
            match self.intake.take() {
                Some(request) => gathered.add(request),
                None => break,
            }
        }
        self.intake.make_room();
        gathered
    }

    /// Commands change something; looks see what they have changed.
    fn turn(&mut self, gathered: Gathered) -> (Option<Job>, Release) {
        assert!(self.commits.committed() <= self.position);
        let changes = !gathered.asked.is_empty() || !gathered.given_back.is_empty();
        self.position += u64::from(changes);
        let mut release = Release { backups: gathered.backups, ..Release::default() };
        let now = ClockInstants::same(Timestamp::from_millis(self.position));
        for asked in gathered.asked {
            asked.apply(&mut Rules::default(), now, &mut Rows::default()).expect("plain rows never fail");
            release.events.push(self.event());
            release.answers.push(asked);
        }
        for command in gathered.given_back {
            assert!(
                matches!(command, Command::CloseWorkflow(_)),
                "only what was taken is given back: {command:?}"
            );
            self.disk.taken.fetch_sub(1, Ordering::Relaxed);
            release.events.push(self.event());
        }
        for slot in gathered.looks {
            release.looks.push(slot.found(Some(now.engine)));
        }
        // Turns of both kinds: those that a commit is shared for, and those that are committed alongside the next.
        let large = shuttle::rand::thread_rng().next_u32().is_multiple_of(2);
        let bytes = if large { limits::COMMIT_ALONGSIDE_BYTES } else { 0 };
        (changes.then_some(Job { position: self.position, bytes }), release)
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
        while let Some(request) = self.intake.take() {
            request.refuse(why);
        }
        self.commits.end_copies();
    }
}

impl Gathered {
    fn add(&mut self, request: Request) {
        match request {
            Request::Ask(asked) => self.asked.push(asked),
            Request::Query(query) => match *query {
                Query::NextDue { slot } => self.looks.push(slot),
                _ => unreachable!("nothing else is looked for here"),
            },
            Request::Backup(backup) => self.backups.push(*backup),
            Request::GiveBack(command) => self.given_back.push(*command),
            Request::Close { slot } => self.closing.push(slot),
            Request::TryOut(_)
            | Request::Wake
            | Request::NoteTime
            | Request::Sleep { .. }
            | Request::Withdraw(_)
            | Request::EndWaits => {}
        }
    }
}
