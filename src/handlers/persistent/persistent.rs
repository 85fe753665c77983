//! A handler that asks one of several children that run on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Pid;
use rustix::process::Signal;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::handlers::answer;
use crate::handlers::group;
use crate::handlers::group::Group;
use crate::handlers::persistent::board::Board;
use crate::handlers::persistent::board::Request;
use crate::handlers::persistent::board::Withdrawn;
use crate::handlers::persistent::keeper::Keeper;
use crate::handlers::program::Program;
use crate::handlers::site::Site;
use crate::handlers::variables;
use crate::handlers::variables::Variables;
use crate::limits;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;
use crate::wire::DeliveryEnvelope;
use crate::wire::OutcomeEnvelope;

/// What runs on, and how.
#[derive(Clone, Debug)]
pub(crate) struct PersistentOptions {
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// The folder it runs in.
    pub(crate) cwd: PathBuf,
    /// Variables it gets.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables of the daemon it gets.
    pub(crate) pass_env: Vec<String>,
    /// How many children there are.
    pub(crate) processes: usize,
    /// How many messages one child may hold.
    pub(crate) in_flight_max: usize,
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
}

/// Children that run on, each of which takes requests in lines of JSON and answers them in any order.
///
/// A child that dies, answers garbage, or must not go on with one of its messages is ended with its whole group; what
/// it held has failed, and another takes its place.
///
/// # Dropping
/// The children are killed; [`Persistent::close`] lets them finish.
pub(crate) struct Persistent {
    crew: Arc<Crew>,
    site: Site,
    stop: watch::Sender<bool>,
    keepers: Mutex<JoinSet<()>>,
}

/// What the handler and the keepers of its children share.
pub(super) struct Crew {
    program: Program,
    lasting: Variables,
    pub(super) timeout: Duration,
    site: Site,
    next_id: AtomicU64,
    board: Mutex<Board>,
    /// For each seat.
    bells: Vec<Bells>,
}

/// What wakes the keeper of one child.
#[derive(Default)]
struct Bells {
    written: Notify,
    condemned: Notify,
    answers: AtomicU64,
}

/// Bytes of most lines beside the body.
const ENVELOPE_LEN: usize = 512;

/// A line for a child.
#[derive(Serialize)]
struct Line<'a> {
    id: u64,
    message: &'a DeliveryEnvelope,
}

/// A request that somebody waits for. Dropped unanswered, it ends the child that holds it, at once.
struct Asked<'a> {
    crew: &'a Crew,
    id: u64,
    is_answered: bool,
}

impl Persistent {
    /// Starts the children, on the present tokio runtime.
    pub(crate) fn start(options: PersistentOptions, site: Site) -> Persistent {
        let seats = options.processes.clamp(1, limits::PROCESSES_MAX);
        let crew = Arc::new(Crew {
            lasting: variables::lasting(&site, &options.pass_env, &options.env),
            program: Program { argv: options.argv, cwd: options.cwd },
            timeout: options.timeout,
            site: site.clone(),
            next_id: AtomicU64::new(1),
            board: Mutex::new(Board::new(seats, options.in_flight_max, options.timeout)),
            bells: (0..seats).map(|_| Bells::default()).collect(),
        });
        let (stop, stopping) = watch::channel(false);
        let mut keepers = JoinSet::new();
        for seat in 0..seats {
            keepers.spawn(Keeper { crew: crew.clone(), seat, stop: stopping.clone() }.keep());
        }
        Persistent { crew, site, stop, keepers: Mutex::new(keepers) }
    }

    /// Takes no more messages, and gives back those no child has begun; the others go on.
    pub(crate) fn turn_away(&self) {
        self.crew.board().close();
    }

    /// Takes no more messages, closes the children's inputs, and waits until they have ended.
    pub(crate) async fn close(&self) {
        self.turn_away();
        self.stop.send_replace(true);
        let keepers = std::mem::take(&mut *self.keepers.lock().unwrap_or_else(PoisonError::into_inner));
        keepers.join_all().await;
    }

    async fn ask(&self, context: &Context) -> Result<OutcomeEnvelope, Failure> {
        let id = self.crew.next_id.fetch_add(1, Ordering::Relaxed);
        let state = context.state().await?;
        let line = self.line(id, context, state.as_ref())?;
        let (reply, mut verdict) = oneshot::channel();
        let mut asked = Asked { crew: &self.crew, id, is_answered: false };
        self.crew.submit(Request { id, line, reply });
        let told = tokio::select! {
            biased;
            told = &mut verdict => told,
            () = context.cancelled() => {
                self.crew.withdraw(id, "its lock was lost");
                verdict.await
            }
        };
        asked.is_answered = true;
        told.unwrap_or_else(|_| Err(Failure::new("the handler is closed")))
    }

    fn line(&self, id: u64, context: &Context, state: Option<&Bytes>) -> Result<Vec<u8>, Failure> {
        let message =
            DeliveryEnvelope::show(context.queue().name(), context.message(), self.site.by_position);
        let mut message = message.with_state(state);
        message.lock_token = Some(context.lock_token().to_string());
        let mut line = Vec::with_capacity(ENVELOPE_LEN + context.message().body.len());
        serde_json::to_writer(&mut line, &Line { id, message: &message })?;
        line.push(b'\n');
        Ok(line)
    }
}

impl Handler<Raw> for Persistent {
    async fn handle(&self, context: Context, _body: Raw) -> Result<Outcome, Failure> {
        let envelope = self.ask(&context).await?;
        answer::said(&self.site, envelope)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let mut board = self.crew.board();
        if let Withdrawn::Held { seat, group } = board.withdraw(self.id, "it was given up") {
            self.crew.bells[seat].condemned.notify_one();
            // The board names a group only while its number is its own, and its lock is held.
            if let Some(group) = group {
                group::signal(group, Signal::KILL);
            }
        }
    }
}

impl Crew {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.site.clock.elapsed()
    }

    /// The program's name, for people.
    pub(super) fn name(&self) -> &str {
        self.program.argv.first().map(String::as_str).unwrap_or_default()
    }

    pub(super) fn start(&self) -> Result<Group, String> {
        self.program.start(self.lasting.clone())
    }

    fn submit(&self, request: Request) {
        let seat = self.board().submit(request, self.now());
        if let Some(seat) = seat {
            self.bells[seat].written.notify_one();
        }
    }

    fn withdraw(&self, id: u64, why: &str) {
        if let Withdrawn::Held { seat, .. } = self.board().withdraw(id, why) {
            self.bells[seat].condemned.notify_one();
        }
    }

    pub(super) fn up(&self, seat: usize, group: Pid) {
        self.board().up(seat, group, self.now());
        self.bells[seat].written.notify_one();
    }

    /// Waits for something to write.
    pub(super) async fn outgoing(&self, seat: usize, into: &mut Vec<u8>) {
        loop {
            self.board().outgoing(seat, into, self.now());
            if !into.is_empty() {
                return;
            }
            self.bells[seat].written.notified().await;
        }
    }

    pub(super) fn answered(&self, seat: usize, answers: Vec<OutcomeEnvelope>) -> Result<(), String> {
        let count = answers.len() as u64;
        let answered = self.board().answered(seat, answers, self.now());
        self.bells[seat].answers.fetch_add(count, Ordering::Relaxed);
        self.bells[seat].written.notify_one();
        answered
    }

    /// How often a seat's children have answered.
    pub(super) fn answers(&self, seat: usize) -> u64 {
        self.bells[seat].answers.load(Ordering::Relaxed)
    }

    /// Waits until a child must not go on.
    pub(super) async fn condemned(&self, seat: usize) {
        while self.board().condemned(seat).is_none() {
            self.bells[seat].condemned.notified().await;
        }
    }

    /// How long the oldest request of a child may still take; none when its time is over.
    pub(super) fn check_time(&self, seat: usize, why: &str) -> Option<Duration> {
        let (mut board, now) = (self.board(), self.now());
        let due = board.check_time(seat, self.timeout, now, why);
        board.condemned(seat).is_none().then(|| due.saturating_sub(now))
    }

    /// A child is given nothing more.
    pub(super) fn ending(&self, seat: usize) {
        self.board().ending(seat);
    }

    /// Nobody may signal a child's group any more.
    pub(super) fn untouchable(&self, seat: usize) {
        self.board().starting(seat);
    }

    /// Fails all that a child held: the one it was ended for, and the others that go with it.
    pub(super) fn fail_held(&self, seat: usize, why: &str) {
        let mut board = self.board();
        let condemned = board.condemned(seat);
        for (id, reply) in board.down(seat) {
            let failure = match &condemned {
                Some(condemned) if condemned.id == id => Failure::new(&condemned.why),
                Some(condemned) => {
                    Failure::new(format!("{why}, because of another message: {}", condemned.why))
                }
                None => Failure::new(why),
            };
            let _ = reply.send(Err(failure));
        }
    }

    pub(super) fn rest(&self, seat: usize, rest: Duration, why: String) {
        let now = self.now();
        self.board().rest_until(seat, now + rest, why, now);
    }

    pub(super) fn starting(&self, seat: usize) {
        self.board().starting(seat);
    }
}
