//! The hot loop: gather what has come, apply it, write it, commit once, and only then answer.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::engine::clocks::ClockReading;
use crate::engine::clocks::Clocks;
use crate::engine::commits::Commits;
use crate::engine::commits::Release;
use crate::engine::inbox::BackupOrder;
use crate::engine::inbox::Inbox;
use crate::engine::inbox::InboxReceiver;
use crate::engine::inbox::Request;
use crate::engine::letter::LetterHandle;
use crate::engine::lingering::Lingering;
use crate::engine::query;
use crate::engine::query::Query;
use crate::engine::rules::Rules;
use crate::engine::rules::due::NextDue;
use crate::engine::rules::records::Records;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::verbs::Recover;
use crate::engine::store::Job;
use crate::engine::store::Store;
use crate::engine::timers;
use crate::engine::turn::QueuedCommand;
use crate::engine::turn::TurnRules;
use crate::engine::wakeups::Wakeups;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::limits;
use crate::token::LockToken;

/// The one thread that writes, with everything it owns.
pub(crate) struct Writer {
    /// Before the store, so that its thread has let go of the file when the lock of that is.
    pub(crate) commits: Commits,
    pub(crate) store: Store,
    pub(crate) rules: Rules,
    pub(crate) intake: InboxReceiver,
    pub(crate) inbox: Inbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wakeups: Wakeups,
    pub(crate) clocks: Clocks,
    /// When the next lock runs out or the next reminder is due, on each clock.
    pub(crate) next_due: NextDue,
    /// When the disk was last looked at, in the clock's elapsed time.
    pub(crate) looked_at_disk: Duration,
    /// When what was last asked was done, in the clock's elapsed time.
    pub(crate) last_request_at: Duration,
    /// Whether there is more to recover.
    pub(crate) recovers: bool,
    pub(crate) lingering: Lingering,
}

/// What one gathering brought.
#[derive(Default)]
struct RequestBatch {
    commands: Vec<QueuedCommand>,
    looks: Vec<LookRequest>,
    backups: Vec<BackupOrder>,
    closing: Vec<oneshot::Sender<()>>,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
    withdrawn: Vec<LockToken>,
    ends_waits: bool,
    notes_time: bool,
}

/// Something that is looked up and changes nothing.
pub(crate) enum LookRequest {
    Query(Box<Query>),
    TryOut(LetterHandle),
}

impl Writer {
    /// Gives back what was handed out when the file was last closed, before anything else happens.
    pub(crate) fn recover(&mut self) -> Result<(), Fault> {
        loop {
            let some = QueuedCommand::Unattended(Box::new(Command::Recover(Recover {})));
            let (job, release, left) = self.turn(vec![some])?;
            self.commits.commit_now(job, release)?;
            // What is due comes first, and may have filled the turn: nothing was asked in it then.
            if left.is_empty() && !self.recovers {
                return Ok(());
            }
        }
    }

    /// Runs turn after turn until it is closed or a fault stops it.
    ///
    /// # Errors
    /// The fault, of which its client knows as well.
    pub(crate) fn run(mut self) -> Result<(), Fault> {
        loop {
            let mut gathered = self.gather();
            for (until, slot) in gathered.sleepers.drain(..) {
                self.wakeups.sleep_until(until, slot);
            }
            if let Err(fault) = self.serve(gathered.commands, gathered.looks, gathered.backups) {
                match fault {
                    // An everyday thing: the node goes on, and follows.
                    Fault::Deposed | Fault::Replaced => {
                        tracing::info!(%fault, "the engine of a partition ends")
                    }
                    _ => {
                        tracing::error!(%fault, "the engine stops for good; opening its file again is the recovery")
                    }
                }
                self.stop(Unavailable::Stopped(fault.clone()));
                return Err(fault);
            }
            // After the turn: what was asked before it is withdrawn waits now, or has been served.
            for token in gathered.withdrawn {
                for waiter in self.wakeups.withdraw(token) {
                    self.answer_with_nothing(waiter.letter);
                }
            }
            if gathered.ends_waits {
                for waiter in self.wakeups.take_of_queues() {
                    self.answer_with_nothing(waiter.letter);
                }
            }
            if gathered.notes_time || !gathered.closing.is_empty() {
                self.write_time();
            }
            if !gathered.closing.is_empty() {
                self.stop(Unavailable::Closed);
                for slot in gathered.closing {
                    let _ = slot.send(());
                }
                return Ok(());
            }
        }
    }

    /// Serves what has come, and hands its commit over.
    pub(crate) fn serve(
        &mut self,
        commands: Vec<QueuedCommand>,
        looks: Vec<LookRequest>,
        backups: Vec<BackupOrder>,
    ) -> Result<(), Fault> {
        if let Some(fault) = self.commits.failed() {
            self.store.fail(fault);
            return Err(fault.clone());
        }
        self.look_at_disk()?;
        self.clocks.advance(ClockReading::of(&*self.clock));
        self.expire_waiters();
        let has_requests = !commands.is_empty() || !looks.is_empty();
        let has_work = !commands.is_empty() || self.next_due.is_past(self.clocks.now());
        let (mut job, mut release) = match has_work {
            true => self.turns(commands)?,
            false => (None, Release::default()),
        };
        release.backups = backups;
        for look in looks {
            self.look(look, &mut release)?;
        }
        if job.is_none() && release.is_empty() && self.flushes_in() == Some(Duration::ZERO) {
            self.store.mark_committed(self.commits.committed());
            self.store.set_stamp(self.clocks.stamp());
            job = Some(self.store.prepare_flush()?);
        }
        if job.is_some() || !release.is_empty() {
            self.commit(job, release)?;
        }
        if has_requests {
            // Behind its commit: who answers to an answer on a slow disk has not left it idle.
            self.last_request_at = self.clock.elapsed();
        }
        Ok(())
    }

    /// Writes down what the clocks show for whoever goes on elsewhere, who counts from there what has passed.
    fn write_time(&mut self) {
        self.clocks.advance(ClockReading::of(&*self.clock));
        if let Some(job) = self.store.prepare_stamp(self.clocks.stamp())
            && let Err(fault) = self.commit(Some(job), Release::default())
        {
            // Then somebody else has it already, or nobody can.
            tracing::debug!(%fault, "what the clocks of a partition show is not written down");
        }
    }

    fn commit(&mut self, job: Option<Job>, release: Release) -> Result<(), Fault> {
        self.commits.hand_over(job, release).inspect_err(|fault| self.store.fail(fault))
    }

    /// As many turns as it takes. All are committed but the last.
    fn turns(&mut self, mut commands: Vec<QueuedCommand>) -> Result<(Option<Job>, Release), Fault> {
        loop {
            let (job, release, left) = self.turn(commands)?;
            if left.is_empty() {
                return Ok((job, release));
            }
            self.commit(job, release)?;
            commands = left;
        }
    }

    /// One turn: due reminders and locks first, then requests. What it leads to waits for its commit, and
    /// what was too much for it is left over.
    fn turn(
        &mut self,
        commands: Vec<QueuedCommand>,
    ) -> Result<(Option<Job>, Release, Vec<QueuedCommand>), Fault> {
        self.store.mark_committed(self.commits.committed());
        let (now, stamp, elapsed) = (self.clocks.now(), self.clocks.stamp(), self.clock.elapsed());
        let (rules, wakeups) = (&mut self.rules, &mut self.wakeups);
        let (room, bytes_max) = (self.store.room().cloned(), self.store.command_bytes_max());
        let (applied, mut job) = self.store.prepare(|turn| {
            let mut work = TurnRules::new(now, elapsed, rules, wakeups, turn, (room.as_ref(), bytes_max));
            work.apply_due()?;
            work.apply_all(commands)?;
            let applied = work.finish()?;
            turn.stamp(stamp);
            Ok(applied)
        })?;
        self.next_due = applied.next_due;
        self.recovers = applied.more;
        match (&mut job, room) {
            (Some(job), _) => job.promised_bytes = applied.promised_bytes,
            // Nothing of it is written.
            (None, Some(room)) => room.redeem(applied.promised_bytes),
            (None, None) => {}
        }
        let release = Release { answers: applied.answers, events: applied.events, ..Release::default() };
        Ok((job, release, applied.left))
    }

    /// Waits for the first request or the next due instant, then takes what else has come.
    fn gather(&mut self) -> RequestBatch {
        let mut gathered = RequestBatch::default();
        match self.first_request() {
            Ok(request) => gathered.add(request),
            Err(RecvTimeoutError::Timeout) => return gathered,
            Err(RecvTimeoutError::Disconnected) => unreachable!("the writer keeps a handle of its own inbox"),
        }
        for _ in 1..limits::TURN_MAX {
            // A step of a purge is work enough for a turn; what has come behind it is served with the next.
            if gathered.commands.last().is_some_and(QueuedCommand::is_bulk) {
                break;
            }
            match self.intake.take() {
                Some(request) => gathered.add(request),
                None => break,
            }
        }
        self.intake.make_room();
        gathered
    }

    /// Waits for the first request; at most until the next due instant.
    fn first_request(&mut self) -> Result<Request, RecvTimeoutError> {
        let (begun, sleep_time) = (self.clock.elapsed(), self.sleep_time());
        if sleep_time == Some(Duration::ZERO) {
            // A step of something long is due: nobody lingers between two.
            return self.intake.wait(sleep_time);
        }
        if let Some(found) = self.lingering.find(|| self.intake.take()) {
            return Ok(found);
        }
        let first = self.intake.wait(sleep_time);
        if !self.clock.is_manual() {
            self.lingering.note(self.clock.elapsed().saturating_sub(begun));
        }
        first
    }

    /// How long it may wait; `None` until something comes.
    fn sleep_time(&self) -> Option<Duration> {
        let sleep_time =
            timers::sleep_time(&*self.clock, &self.clocks, self.next_due, self.wakeups.first_deadline());
        if !self.store.has_file() || self.clock.is_manual() {
            return sleep_time;
        }
        // A file can go away, and a disk fill up, while nothing is asked.
        let wait = sleep_time.map_or(limits::DISK_LOOK_EVERY, |wait| wait.min(limits::DISK_LOOK_EVERY));
        Some(self.flushes_in().map_or(wait, |flushes_in| wait.min(flushes_in)))
    }

    /// In how long a commit that does nothing but flush is due if nothing is asked; `None` while there is nothing to flush, no
    /// room for it, or a commit under way.
    fn flushes_in(&self) -> Option<Duration> {
        let is_due = self.store.has_file() && !self.clock.is_manual() && self.store.has_idle_work();
        let may =
            is_due && self.commits.is_idle() && self.store.room().is_none_or(|room| !room.view().is_full);
        may.then(|| {
            limits::IDLE_AFTER.saturating_sub(self.clock.elapsed().saturating_sub(self.last_request_at))
        })
    }

    /// Looks at the file and its disk, if it is time again.
    fn look_at_disk(&mut self) -> Result<(), Fault> {
        let elapsed = self.clock.elapsed();
        if elapsed.saturating_sub(self.looked_at_disk) < limits::DISK_LOOK_EVERY {
            return Ok(());
        }
        self.looked_at_disk = elapsed;
        self.store.look_at_disk()
    }

    fn expire_waiters(&mut self) {
        self.wakeups.wake_sleepers(self.clock.elapsed());
        for waiter in self.wakeups.take_expired(self.clock.elapsed()) {
            self.answer_with_nothing(waiter.letter);
        }
    }

    fn answer_with_nothing(&self, letter: LetterHandle) {
        letter.find_nothing();
        letter.publish(&mut |command| self.inbox.give_back(command));
    }

    fn look(&mut self, request: LookRequest, release: &mut Release) -> Result<(), Fault> {
        let (rules, now) = (&mut self.rules, self.clocks.now());
        match request {
            LookRequest::TryOut(letter) => {
                let command = letter.command().expect("what is tried is a command of any kind");
                let reply = self.store.try_out(|turn| rules.try_out(now, command, turn))?;
                assert!(letter.answer(reply), "whatever is replied answers a command of any kind");
                release.answers.push(letter);
            }
            LookRequest::Query(query) => {
                let (look, job) = self.store.prepare(|turn| {
                    if query.is_use()
                        && let Some(name) = query.queue()
                        && let Some(queue) = turn.queue_named(name)?
                        && queue.options.delete_when_idle.is_some()
                    {
                        rules.note_use(queue.id, now.engine);
                    }
                    query::look(*query, turn, rules, now)
                })?;
                assert!(job.is_none(), "a look changes nothing");
                release.looks.push(look);
            }
        }
        Ok(())
    }

    /// Answers everybody who still waits, and closes the file.
    fn stop(mut self, why: Unavailable) {
        self.commits.finish();
        if let Some(fault) = self.commits.failed() {
            // It may have failed just now: nothing more is written.
            self.store.fail(fault);
        }
        self.intake.end(why.clone());
        for waiter in self.wakeups.take_all() {
            waiter.letter.fail(why.clone());
        }
        if let Err(fault) = self.refuse_waiting(&why) {
            tracing::warn!(%fault, "what was given back last counts as a failed attempt");
        }
        self.commits.end_copies();
        // They have the file open as well: whoever gets its lock opens it.
        drop(self.commits);
        // Of the fault that stops it has been told.
        if let Err(fault) = self.store.close()
            && matches!(why, Unavailable::Closed)
        {
            tracing::error!(%fault, "the file could not be closed cleanly");
        }
    }

    /// Refuses what comes too late, and takes back what the last commits have handed out to nobody: it would count as an attempt.
    fn refuse_waiting(&mut self, why: &Unavailable) -> Result<(), Fault> {
        let mut given_back = Vec::new();
        while let Some(request) = self.intake.take() {
            match request {
                Request::GiveBack(command) if matches!(why, Unavailable::Closed) => {
                    given_back.push(QueuedCommand::Unattended(command));
                }
                late => late.refuse(why),
            }
        }
        while !given_back.is_empty() {
            let (job, release, left) = self.turn(given_back)?;
            self.commits.commit_now(job, release)?;
            given_back = left;
        }
        Ok(())
    }
}

impl RequestBatch {
    fn add(&mut self, request: Request) {
        match request {
            Request::Ask(letter) => self.commands.push(QueuedCommand::Letter(letter)),
            Request::TryOut(letter) => self.looks.push(LookRequest::TryOut(letter)),
            Request::Query(query) => self.looks.push(LookRequest::Query(query)),
            Request::Backup(backup) => self.backups.push(*backup),
            Request::GiveBack(command) => self.commands.push(QueuedCommand::Unattended(command)),
            Request::Sleep { until, slot } => self.sleepers.push((until, slot)),
            Request::Withdraw(token) => self.withdrawn.push(token),
            Request::EndWaits => self.ends_waits = true,
            Request::NoteTime => self.notes_time = true,
            Request::Wake => {}
            Request::Close { slot } => self.closing.push(slot),
        }
    }
}

#[cfg(test)]
mod tests;
