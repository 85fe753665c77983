//! A handler that asks one of several children that run on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Pid;
use rustix::process::Signal;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::engine::Output;
use crate::engine::Received;
use crate::handlers::answer;
use crate::handlers::exec::GIVEN_UP;
use crate::handlers::group;
use crate::handlers::group::Group;
use crate::handlers::persistent::board::Asker;
use crate::handlers::persistent::board::Board;
use crate::handlers::persistent::board::LOCK_LOST;
use crate::handlers::persistent::board::Request;
use crate::handlers::persistent::board::Rest;
use crate::handlers::persistent::board::Told;
use crate::handlers::persistent::board::Withdrawn;
use crate::handlers::persistent::keeper::Keeper;
use crate::handlers::program::NotStarted;
use crate::handlers::program::Program;
use crate::handlers::shortage::Shortage;
use crate::handlers::site::Site;
use crate::handlers::trace::trace_in;
use crate::handlers::variables;
use crate::handlers::variables::Variables;
use crate::limits;
use crate::processor::Assignment;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Taker;
use crate::processor::guarded;
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
/// it held has failed, and another takes its place. If it held several messages, nobody knows which of them is to blame: an
/// extra child gets them one by one, and is ended when it has had nothing to do for a while.
///
/// # Dropping
/// The children are killed; [`Persistent::close`] lets them finish.
pub(crate) struct Persistent {
    crew: Arc<Crew>,
    stop: watch::Sender<bool>,
    keepers: Mutex<JoinSet<()>>,
}

/// What the handler and the keepers of its children share.
pub(super) struct Crew {
    program: Program,
    lasting: Variables,
    pub(super) timeout: Duration,
    site: Site,
    shortage: Shortage,
    board: Mutex<Board<Assignment>>,
    /// For each seat.
    bells: Vec<Bells>,
}

/// What a child wrote is kept with an attempt that failed, and with a dead letter that says nothing else.
fn with_output(said: Result<Outcome, Failure>, output: Output) -> Result<Outcome, Failure> {
    match said {
        Ok(Outcome::DeadLetter { reason, description }) if description.is_empty() => {
            Ok(Outcome::DeadLetter { reason, description: output.text })
        }
        Ok(outcome) => Ok(outcome),
        Err(failure) => Err(failure.output(output)),
    }
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
    /// The trace that is to be continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    message: &'a DeliveryEnvelope,
}

impl Asker for Assignment {
    fn is_cancelled(&self) -> bool {
        self.context().is_lost()
    }

    fn is_suspect(&self) -> bool {
        self.context().message().is_suspect()
    }
}

impl Persistent {
    /// Starts the children, on the present tokio runtime.
    pub(crate) fn start(options: PersistentOptions, site: Site) -> Persistent {
        let seats = options.processes.clamp(1, limits::PROCESSES_MAX);
        let crew = Arc::new(Crew {
            lasting: variables::lasting(&site, &options.pass_env, &options.env),
            program: Program { argv: options.argv, cwd: options.cwd },
            timeout: options.timeout,
            site,
            shortage: Shortage::default(),
            board: Mutex::new(Board::new(seats, options.in_flight_max, options.timeout)),
            bells: (0..=seats).map(|_| Bells::default()).collect(),
        });
        let (stop, stopping) = watch::channel(false);
        let mut keepers = JoinSet::new();
        for seat in 0..=seats {
            let keeper = Keeper { crew: crew.clone(), seat, is_extra: seat == seats, stop: stopping.clone() };
            keepers.spawn(keeper.keep());
        }
        Persistent { crew, stop, keepers: Mutex::new(keepers) }
    }

    /// Until when no child can be started because the daemon lacks something for it, and why; none when one is up.
    pub(crate) fn cannot_start_until(&self) -> Option<(Duration, String)> {
        self.crew.with_board(|board| board.shortage())
    }

    /// Takes no more messages, and gives back those no child has begun; the others go on.
    pub(crate) fn turn_away(&self) {
        self.crew.with_board(Board::close);
    }

    /// Takes no more messages, closes the children's inputs, and waits until they have ended.
    pub(crate) async fn close(&self) {
        self.turn_away();
        self.stop.send_replace(true);
        let keepers = std::mem::take(&mut *self.keepers.lock().unwrap_or_else(PoisonError::into_inner));
        keepers.join_all().await;
    }
}

impl Taker for Persistent {
    fn takes(&self, _message: &Received) -> bool {
        true
    }

    fn take(&self, assignments: Vec<Assignment>) {
        let mut requests = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            if assignment.context().message().has_state() {
                tokio::spawn(self.crew.clone().submit_with_state(assignment));
                continue;
            }
            requests.extend(self.crew.request(assignment, None));
        }
        self.crew.submit(requests);
    }

    fn cancel(&self, number: u64) {
        self.crew.withdraw(number, LOCK_LOST, |_| ());
    }

    fn give_up(&self, number: u64) {
        self.crew.give_up(number);
    }

    fn give_up_all(&self) {
        // Nothing may be begun any more, also what is still to come: its state is being looked up.
        let numbers = self.crew.with_board(|board| {
            board.close();
            board.ids()
        });
        if !numbers.is_empty() {
            let (queue, program, messages) = (self.crew.queue(), self.crew.name(), numbers.len());
            tracing::warn!(
                queue,
                program,
                messages,
                "terminating programs that still run: the drain time is over"
            );
        }
        // Their keepers ask them to end, and kill them if they do not.
        numbers.into_iter().for_each(|number| self.crew.withdraw(number, GIVEN_UP, |_| ()));
    }
}

impl Crew {
    /// Does something with the board, and then tells those whom it concerns.
    fn with_board<T>(&self, change: impl FnOnce(&mut Board<Assignment>) -> T) -> T {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut board);
        let told = board.told();
        drop(board);
        for Told { asker, verdict, output } in told {
            let said = verdict.and_then(|envelope| guarded(|| answer::said(&self.site, envelope)));
            asker.end(with_output(said, output));
        }
        changed
    }

    fn now(&self) -> Duration {
        self.site.clock.elapsed()
    }

    /// The queue whose messages it handles, for people.
    pub(super) fn queue(&self) -> &str {
        self.site.queue.as_str()
    }

    /// The program's name, for people.
    pub(super) fn name(&self) -> &str {
        self.program.name()
    }

    pub(super) fn start(&self) -> Result<Group, NotStarted> {
        let started = self.program.start(self.lasting.clone());
        if started.is_ok() {
            self.shortage.note_start();
        }
        started
    }

    /// Notes that the daemon lacks something to start a child; says how long it is not tried again.
    pub(super) fn note_shortage(&self, seat: usize, why: String) -> Duration {
        let now = self.now();
        self.shortage.note(now, (self.queue(), self.name()), &why);
        let until = self.shortage.pauses_until(now).map_or(now + limits::START_PAUSE_MIN, |(until, _)| until);
        self.with_board(|board| board.rest_until(seat, Rest { until, why, is_shortage: true }, now));
        until - now
    }

    /// The request an assignment makes; none if that cannot be written, which ends it.
    fn request(&self, assignment: Assignment, state: Option<&Bytes>) -> Option<Request<Assignment>> {
        match self.line(&assignment, state) {
            Ok(line) => Some(Request { id: assignment.number(), line, asker: assignment }),
            Err(failure) => {
                assignment.end(Err(failure));
                None
            }
        }
    }

    fn line(&self, assignment: &Assignment, state: Option<&Bytes>) -> Result<Vec<u8>, Failure> {
        let context = assignment.context();
        let message =
            DeliveryEnvelope::show(context.queue().name(), context.message(), self.site.by_position);
        let mut message = message.with_state(state);
        message.lock_token = Some(context.lock_token().to_string());
        let mut line = Vec::with_capacity(ENVELOPE_LEN + context.message().body.len());
        let traceparent = trace_in(assignment.span(), context);
        serde_json::to_writer(&mut line, &Line { id: assignment.number(), traceparent, message: &message })?;
        line.push(b'\n');
        Ok(line)
    }

    async fn submit_with_state(self: Arc<Crew>, assignment: Assignment) {
        match assignment.context().state().await {
            Ok(state) => self.submit(self.request(assignment, state.as_ref())),
            Err(error) => assignment.end(Err(error.into())),
        }
    }

    fn submit(&self, requests: impl IntoIterator<Item = Request<Assignment>>) {
        let now = self.now();
        self.with_board(|board| requests.into_iter().for_each(|request| board.submit(request, now)));
        self.bells.iter().for_each(|bells| bells.written.notify_one());
    }

    /// Ends a request, and the child that holds it, at once.
    fn give_up(&self, id: u64) {
        self.withdraw(id, "it was given up", |group| group::signal(group, Signal::KILL));
    }

    /// Forgets a request, or condemns the child that holds it and does something to that one's group.
    fn withdraw(&self, id: u64, why: &str, with_group: impl FnOnce(Pid)) {
        let withdrawn = self.with_board(|board| {
            let withdrawn = board.withdraw(id, why);
            // The board names a group only while its number is its own, and its lock is held.
            if let Withdrawn::Held { group: Some(group), .. } = withdrawn {
                with_group(group);
            }
            withdrawn
        });
        if let Withdrawn::Held { seat, .. } = withdrawn {
            self.bells[seat].condemned.notify_one();
        }
    }

    pub(super) fn up(&self, seat: usize, group: Pid) {
        let now = self.now();
        self.with_board(|board| board.up(seat, group, now));
        self.bells[seat].written.notify_one();
    }

    /// Waits for something to write.
    pub(super) async fn outgoing(&self, seat: usize, into: &mut Vec<u8>) {
        loop {
            let now = self.now();
            self.with_board(|board| board.outgoing(seat, into, now));
            if !into.is_empty() {
                return;
            }
            self.bells[seat].written.notified().await;
        }
    }

    pub(super) fn answered(&self, seat: usize, answers: Vec<OutcomeEnvelope>) -> Result<(), String> {
        let (count, now) = (answers.len() as u64, self.now());
        let answered = self.with_board(|board| board.answered(seat, answers, now));
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
        while !self.with_board(|board| board.is_condemned(seat)) {
            self.bells[seat].condemned.notified().await;
        }
    }

    /// How long the oldest request of a child may still take; none when its time is over.
    pub(super) fn check_time(&self, seat: usize, why: &str) -> Option<Duration> {
        let now = self.now();
        self.with_board(|board| {
            let due = board.check_time(seat, self.timeout, now, why);
            (!board.is_condemned(seat)).then(|| due.saturating_sub(now))
        })
    }

    /// A child is given nothing more.
    pub(super) fn ending(&self, seat: usize) {
        self.with_board(|board| board.ending(seat));
    }

    /// Nobody may signal a child's group any more.
    pub(super) fn untouchable(&self, seat: usize) {
        self.with_board(|board| board.starting(seat));
    }

    /// A child has written a line to its standard error.
    pub(super) fn complained(&self, seat: usize, line: &str) {
        self.with_board(|board| board.complained(seat, line));
    }

    /// Fails all that a child held; says because of what it was ended, if because of one of these.
    pub(super) fn fail_held(&self, seat: usize, why: &str) -> Option<String> {
        self.with_board(|board| board.down(seat, why))
    }

    /// Waits until there is something for the extra child.
    pub(super) async fn suspects(&self, seat: usize) {
        while !self.with_board(|board| board.has_suspects()) {
            self.bells[seat].written.notified().await;
        }
    }

    /// Gives the extra child nothing more, if there is nothing for it; says whether.
    pub(super) fn dismiss_extra(&self, seat: usize) -> bool {
        self.with_board(|board| {
            let is_idle = !board.has_suspects();
            if is_idle {
                board.ending(seat);
            }
            is_idle
        })
    }

    pub(super) fn fail_suspects(&self, why: &str) {
        self.with_board(|board| board.fail_suspects(why));
    }

    pub(super) fn rest(&self, seat: usize, rest: Duration, why: String) {
        let now = self.now();
        let rest = Rest { until: now + rest, why, is_shortage: false };
        self.with_board(|board| board.rest_until(seat, rest, now));
    }

    pub(super) fn starting(&self, seat: usize) {
        self.with_board(|board| board.starting(seat));
    }
}
