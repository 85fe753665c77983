//! The hot loop: gather what has come, apply it, write it, commit once, and only then answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::inbox::Inbox;
use crate::engine::inbox::Intake;
use crate::engine::inbox::ReplySlot;
use crate::engine::inbox::Request;
use crate::engine::query;
use crate::engine::query::Answer;
use crate::engine::query::Query;
use crate::engine::rules::Rules;
use crate::engine::rules::command::Command;
use crate::engine::rules::effect::Event;
use crate::engine::rules::records::Records;
use crate::engine::store::Store;
use crate::engine::timers;
use crate::engine::turn::Applied;
use crate::engine::turn::Asked;
use crate::engine::turn::TurnRules;
use crate::engine::wakeups::Wakeups;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::limits;

/// The one thread that writes, with everything it owns.
pub(crate) struct Writer {
    pub(crate) store: Store,
    pub(crate) rules: Rules,
    pub(crate) intake: Intake,
    pub(crate) inbox: Inbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wakeups: Wakeups,
    pub(crate) events: broadcast::Sender<Event>,
    /// The engine's time: it never runs backwards.
    pub(crate) time: Timestamp,
    /// The clock's elapsed time of the last turn, by which a jump of the wall clock is told from a long sleep.
    pub(crate) elapsed: Duration,
    /// When the next lock runs out or the next reminder is due.
    pub(crate) next_due: Option<Timestamp>,
}

/// What one gathering brought.
#[derive(Default)]
struct Gathered {
    asked: Vec<Asked>,
    queries: Vec<(Query, oneshot::Sender<Result<Answer, Unavailable>>)>,
    backups: Vec<(PathBuf, oneshot::Sender<Result<u64, Fault>>)>,
    closing: Vec<oneshot::Sender<()>>,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl Writer {
    /// Gives back what was handed out when the file was last closed, before anything else happens.
    pub(crate) fn recover(&mut self) -> Result<(), Fault> {
        (self.time, self.elapsed) = (self.now(), self.clock.elapsed());
        loop {
            let some = (0..limits::SWEEP_MAX).map(|_| Asked::unattended(Command::Recover));
            let applied = self.turn(some.collect())?;
            if !applied.more {
                return Ok(());
            }
        }
    }

    /// Runs turn after turn until it is closed or a fault stops it.
    pub(crate) fn run(mut self) {
        loop {
            let mut gathered = self.gather();
            for (lasts, slot) in gathered.sleepers.drain(..) {
                self.wakeups.put_to_sleep(self.clock.elapsed().saturating_add(lasts), slot);
            }
            if let Err(fault) = self.serve(gathered.asked, gathered.queries, gathered.backups) {
                tracing::error!(%fault, "the engine stops");
                return self.stop(Unavailable::Stopped(fault));
            }
            if !gathered.closing.is_empty() {
                self.stop(Unavailable::Closed);
                for slot in gathered.closing {
                    let _ = slot.send(());
                }
                return;
            }
        }
    }

    fn serve(
        &mut self,
        asked: Vec<Asked>,
        queries: Vec<(Query, oneshot::Sender<Result<Answer, Unavailable>>)>,
        backups: Vec<(PathBuf, oneshot::Sender<Result<u64, Fault>>)>,
    ) -> Result<(), Fault> {
        self.advance_time();
        self.expire_waiters();
        if !asked.is_empty() || self.next_due.is_some_and(|due| due <= self.time) {
            self.turn(asked)?;
        }
        for (query, slot) in queries {
            let answer = self.look(query)?;
            let _ = slot.send(Ok(answer));
        }
        for (target, slot) in backups {
            self.back_up(target, slot);
        }
        Ok(())
    }

    /// One turn: due reminders and locks first, then requests; one commit; then the answers.
    fn turn(&mut self, asked: Vec<Asked>) -> Result<Applied, Fault> {
        let (now, elapsed) = (self.time, self.clock.elapsed());
        let (rules, wakeups) = (&mut self.rules, &mut self.wakeups);
        let applied = self.store.turn(|turn| {
            let mut work = TurnRules::new(now, elapsed, rules, wakeups, turn);
            work.apply_due()?;
            work.apply_asked(asked)?;
            let applied = work.finish()?;
            turn.stamp(now);
            Ok(applied)
        })?;
        self.next_due = applied.next_due;
        Ok(self.release(applied))
    }

    /// Lets events and answers out, now that their changes are on disk: who has an answer can find its events.
    fn release(&mut self, mut applied: Applied) -> Applied {
        for event in applied.events.drain(..) {
            let _ = self.events.send(event);
        }
        for (slot, parcel) in applied.answers.drain(..) {
            let _ = slot.send(Ok(parcel.seal(&self.inbox)));
        }
        applied
    }

    /// Waits for the first request or the next due instant, then takes what else has come.
    fn gather(&mut self) -> Gathered {
        let mut gathered = Gathered::default();
        let first = match self.patience() {
            Some(patience) => self.intake.receiver.recv_timeout(patience),
            None => self.intake.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match first {
            Ok(posted) => gathered.add(posted.request),
            Err(RecvTimeoutError::Timeout) => return gathered,
            Err(RecvTimeoutError::Disconnected) => unreachable!("the writer keeps a handle of its own inbox"),
        }
        for _ in 1..limits::TURN_MAX {
            match self.intake.receiver.try_recv() {
                Ok(posted) => gathered.add(posted.request),
                Err(_) => break,
            }
        }
        gathered
    }

    /// How long it may wait; `None` until something comes.
    fn patience(&self) -> Option<Duration> {
        timers::patience(&*self.clock, self.time, self.next_due, self.wakeups.first_deadline())
    }

    fn now(&self) -> Timestamp {
        self.clock.now().max(self.store.time()).max(self.time)
    }

    fn advance_time(&mut self) {
        let (now, elapsed) = (self.now(), self.clock.elapsed());
        let passed = elapsed.saturating_sub(self.elapsed);
        if now.since(self.time).saturating_sub(passed) > limits::CLOCK_JUMP {
            tracing::warn!(from = %self.time, to = %now, "the wall clock has jumped ahead");
        }
        (self.time, self.elapsed) = (now, elapsed);
    }

    fn expire_waiters(&mut self) {
        self.wakeups.wake_sleepers(self.clock.elapsed());
        for waiter in self.wakeups.take_expired(self.clock.elapsed()) {
            let parcel = Applied::nothing_for(&waiter.command).seal(&self.inbox);
            let _ = waiter.slot.send(Ok(parcel));
        }
    }

    fn look(&mut self, query: Query) -> Result<Answer, Fault> {
        let (rules, now) = (&mut self.rules, self.time);
        self.store.turn(|turn| {
            if query.is_use()
                && let Some(name) = query.queue()
                && let Some(queue) = turn.queue_named(name)?
                && queue.options.delete_when_idle.is_some()
            {
                rules.note_use(queue.id, now);
            }
            query::look(query, turn, rules.locks())
        })
    }

    /// Copies the store on a thread of its own, while turns go on.
    fn back_up(&self, target: PathBuf, slot: oneshot::Sender<Result<u64, Fault>>) {
        let snapshot = match self.store.snapshot() {
            Ok(snapshot) => snapshot,
            Err(fault) => return drop(slot.send(Err(fault))),
        };
        let copy = move || drop(slot.send(snapshot.write_to(&target, &|_| {})));
        let thread = std::thread::Builder::new().name("seriatim-backup".to_owned()).spawn(copy);
        if let Err(error) = thread {
            tracing::error!(%error, "the backup thread could not start");
        }
    }

    /// Answers everybody who still waits, and closes the file.
    fn stop(mut self, why: Unavailable) {
        self.intake.end(why.clone());
        for waiter in self.wakeups.take_all() {
            let _ = waiter.slot.send(Err(why.clone()));
        }
        while let Ok(posted) = self.intake.receiver.try_recv() {
            refuse(posted.request, &why);
        }
        if let Err(fault) = self.store.close() {
            tracing::error!(%fault, "the file could not be closed cleanly");
        }
    }
}

impl Gathered {
    fn add(&mut self, request: Request) {
        match request {
            Request::Command { command, slot, wait } => {
                self.asked.push(Asked { command, slot: Some(slot), wait });
            }
            Request::Query { query, slot } => self.queries.push((query, slot)),
            Request::Backup { target, slot } => self.backups.push((target, slot)),
            Request::GiveBack(command) => self.asked.push(Asked::unattended(command)),
            Request::Sleep { lasts, slot } => self.sleepers.push((lasts, slot)),
            Request::Wake => {}
            Request::Close { slot } => self.closing.push(slot),
        }
    }
}

/// Answers a request that comes too late.
fn refuse(request: Request, why: &Unavailable) {
    match request {
        Request::Command { slot, .. } => refuse_command(slot, why),
        Request::Query { slot, .. } => drop(slot.send(Err(why.clone()))),
        Request::Backup { .. } | Request::GiveBack(_) | Request::Sleep { .. } | Request::Wake => {}
        Request::Close { slot } => {
            let _ = slot.send(());
        }
    }
}

fn refuse_command(slot: ReplySlot, why: &Unavailable) {
    let _ = slot.send(Err(why.clone()));
}
