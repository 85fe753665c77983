//! What happens inside one turn: due reminders, lost locks, requests, and the receivers that wait for what they bring.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::engine::admission::Admission;
use crate::engine::inbox::ReplySlot;
use crate::engine::inbox::UncommittedAnswer;
use crate::engine::rules::Rules;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::NextDue;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::records::Records;
use crate::engine::store::DiskRoom;
use crate::engine::upcoming::first_reminders;
use crate::engine::upcoming::next_due;
use crate::engine::wakeups::Waiter;
use crate::engine::wakeups::WaitsFor;
use crate::engine::wakeups::Wakeups;
use crate::error::Fault;
use crate::error::ReceiveRefusal;
use crate::id::QueueName;
use crate::limits;

/// A command, with whoever waits for its answer.
pub(crate) struct QueuedCommand {
    pub(crate) command: Command,
    pub(crate) slot: Option<ReplySlot>,
    pub(crate) wait: Option<Duration>,
}

impl QueuedCommand {
    /// A command whose answer nobody waits for.
    pub(crate) fn unattended(command: Command) -> QueuedCommand {
        QueuedCommand { command, slot: None, wait: None }
    }
}

/// What a turn led to. Nothing of it may be published before the commit.
#[derive(Default)]
pub(crate) struct TurnOutcome {
    pub(crate) answers: Vec<(ReplySlot, UncommittedAnswer)>,
    pub(crate) events: Vec<Event>,
    /// When the next lock runs out or the next reminder is due, on each clock.
    pub(crate) next_due: NextDue,
    /// Whether the last command was an internal one with more to do.
    pub(crate) more: bool,
    /// What was promised of the disk to the commands that were asked.
    pub(crate) promised_bytes: u64,
}

impl TurnOutcome {
    /// The answer to a receiver that has waited long enough.
    pub(crate) fn nothing_for(command: &Command) -> UncommittedAnswer {
        let reply = match command {
            Command::Take { .. } => Reply::Take(Ok(None)),
            _ => Reply::Receive(Ok(Vec::new())),
        };
        UncommittedAnswer { reply, queue: None }
    }
}

/// A turn in the making.
pub(crate) struct TurnRules<'a> {
    now: ClockInstants,
    elapsed: Duration,
    rules: &'a mut Rules,
    wakeups: &'a mut Wakeups,
    records: &'a mut dyn Records,
    admission: Admission<'a>,
    applied: TurnOutcome,
    /// Whose receivers may find something now.
    woken: BTreeSet<WaitsFor>,
}

impl<'a> TurnRules<'a> {
    pub(crate) fn new(
        now: ClockInstants,
        elapsed: Duration,
        rules: &'a mut Rules,
        wakeups: &'a mut Wakeups,
        records: &'a mut dyn Records,
        room: Option<&'a DiskRoom>,
    ) -> TurnRules<'a> {
        TurnRules {
            now,
            elapsed,
            rules,
            wakeups,
            records,
            admission: Admission::new(room),
            applied: TurnOutcome::default(),
            woken: BTreeSet::new(),
        }
    }

    pub(crate) fn finish(mut self) -> Result<TurnOutcome, Fault> {
        let more_work = !self.wakeups.later.is_empty();
        self.applied.next_due = match more_work {
            true => NextDue { engine: Some(Due::engine(self.now.engine)), wall: None },
            false => {
                let mut due = next_due(self.records, self.rules.locks())?;
                due.engine = due.engine.into_iter().chain(self.wakeups.first_paced().map(Due::engine)).min();
                due
            }
        };
        self.applied.promised_bytes = self.admission.promised_bytes();
        Ok(self.applied)
    }

    /// Applies what is due: locks that have run out, then reminders, a limited number of both.
    pub(crate) fn apply_due(&mut self) -> Result<(), Fault> {
        for _ in 0..limits::REMINDERS_PER_TURN {
            match self.rules.locks().first_deadline() {
                Some((due, token)) if due <= self.now.engine => {
                    drop(self.apply(Command::ExpireLock { token })?)
                }
                _ => break,
            }
        }
        let mut work = 0;
        while work < limits::REMINDERS_PER_TURN {
            let Some(reminder) = self.next_reminder()? else {
                break;
            };
            // A sweep is many steps in one, and may ask to be called again at once.
            work += if matches!(reminder.what, Remind::Sweep(_)) { limits::SWEEP_MAX } else { 1 };
            self.note_waiting_receivers(&reminder)?;
            self.apply(Command::Remind(reminder))?;
        }
        Ok(())
    }

    /// The reminder that has been due for longest, on its own clock. What is due at the same instant on both goes in the
    /// order of its kinds, as on one clock: what comes back does so before a gap behind it is judged.
    fn next_reminder(&self) -> Result<Option<Reminder>, Fault> {
        let late = |reminder: &Reminder| reminder.due.clock(self.now).since(reminder.due.at());
        let firsts = first_reminders(self.records)?.into_iter().flatten();
        let due = firsts.filter(|reminder| reminder.due.is_past(self.now));
        Ok(due.min_by(|one, other| {
            let kinds = || (one.queue, &one.what).cmp(&(other.queue, &other.what));
            late(other).cmp(&late(one)).then_with(kinds)
        }))
    }

    /// A queue in which somebody waits is not idle.
    fn note_waiting_receivers(&mut self, reminder: &Reminder) -> Result<(), Fault> {
        if reminder.what == Remind::Idle
            && let Some(queue) = self.records.queue(reminder.queue)?
            && self.wakeups.is_waited_for(&WaitsFor::Queue(queue.name.clone()))
        {
            self.rules.note_use(reminder.queue, self.now.engine);
        }
        Ok(())
    }

    /// Applies what was asked, and serves the receivers that wait for what it brought.
    pub(crate) fn apply_all(&mut self, commands: Vec<QueuedCommand>) -> Result<(), Fault> {
        self.woken.append(&mut self.wakeups.later);
        self.woken.append(&mut self.wakeups.take_paced(self.now.engine));
        for queued in commands {
            self.apply_one(queued)?;
        }
        while let Some(waits_for) = self.woken.pop_first() {
            self.serve_waiting(&waits_for)?;
        }
        Ok(())
    }

    fn apply_one(&mut self, queued: QueuedCommand) -> Result<(), Fault> {
        let QueuedCommand { command, slot, wait } = queued;
        if slot.as_ref().is_some_and(ReplySlot::is_closed) && WaitsFor::of(&command).is_some() {
            return Ok(());
        }
        if let Some(reply) = self.admission.refuse(&command, &*self.records)? {
            self.applied.answers.extend(slot.map(|slot| (slot, UncommittedAnswer { reply, queue: None })));
            return Ok(());
        }
        let queue = queue_of(&command);
        let again = wait.filter(|wait| !wait.is_zero()).map(|wait| (wait, command.clone()));
        // So many expired messages stand before what it could have that the turn after this goes on with them.
        let is_put_off = WaitsFor::of(&command).is_some_and(|waits| self.wakeups.later.contains(&waits));
        let reply = match is_put_off {
            true => TurnOutcome::nothing_for(&command).reply,
            false => self.apply(command)?,
        };
        let Some(slot) = slot else {
            self.applied.more = matches!(reply, Reply::Done { more: true });
            return Ok(());
        };
        if let (true, Some((wait, command))) = (found_nothing(&reply), again)
            && let Some(waits_for) = WaitsFor::of(&command)
        {
            let until = self.elapsed.saturating_add(wait);
            self.park(Waiter { command, waits_for, slot, until });
            return Ok(());
        }
        self.applied.answers.push((slot, UncommittedAnswer { reply, queue }));
        Ok(())
    }

    fn park(&mut self, waiter: Waiter) {
        let waiting = self.wakeups.len();
        if waiting < limits::RECEIVERS_MAX {
            self.wakeups.park(waiter);
            return;
        }
        let refusal = ReceiveRefusal::TooManyWaiting(waiting);
        let reply = match waiter.command {
            Command::Take { .. } => Reply::Take(Err(refusal)),
            _ => Reply::Receive(Err(refusal)),
        };
        self.applied.answers.push((waiter.slot, UncommittedAnswer { reply, queue: None }));
    }

    /// Serves receivers in the order in which they came, as long as there is something for them.
    fn serve_waiting(&mut self, waits_for: &WaitsFor) -> Result<(), Fault> {
        while let Some((place, waiter)) = self.wakeups.next(waits_for) {
            let reply = self.apply(waiter.command.clone())?;
            if found_nothing(&reply) {
                self.wakeups.put_back(place, waiter);
                return Ok(());
            }
            let queue = queue_of(&waiter.command);
            self.applied.answers.push((waiter.slot, UncommittedAnswer { reply, queue }));
        }
        Ok(())
    }

    fn apply(&mut self, command: Command) -> Result<Reply, Fault> {
        let outcome = self.rules.apply(self.now, command, self.records)?;
        for effect in outcome.effects {
            match effect {
                Effect::Work(queue) => drop(self.woken.insert(WaitsFor::Queue(queue))),
                Effect::DeadLetters(queue) => drop(self.woken.insert(WaitsFor::DeadLetters(queue))),
                Effect::MoreDeadLetters(queue) => {
                    self.wakeups.later.insert(WaitsFor::DeadLetters(queue));
                }
                Effect::TakenWork(token) => drop(self.woken.insert(WaitsFor::Taken(token))),
                Effect::MoreWork(queue) => drop(self.wakeups.later.insert(WaitsFor::Queue(queue))),
                Effect::Paced { queue, holder, until } => {
                    let waits_for = holder.map_or(WaitsFor::Queue(queue), WaitsFor::Taken);
                    self.wakeups.pace(waits_for, until);
                }
                Effect::LocksFreed => self.woken.extend(self.wakeups.queues().cloned()),
                Effect::Event(event) => {
                    if event.kind == EventKind::QueueDeleted {
                        self.woken.insert(WaitsFor::Queue(event.queue.clone()));
                        self.woken.insert(WaitsFor::DeadLetters(event.queue.clone()));
                    }
                    self.applied.events.push(event);
                }
            }
        }
        Ok(outcome.reply)
    }
}

/// Whether a receive found nothing, so that it may wait.
fn found_nothing(reply: &Reply) -> bool {
    match reply {
        Reply::Receive(Ok(handed)) => handed.is_empty(),
        Reply::Take(Ok(accepted)) => accepted.is_none(),
        _ => false,
    }
}

/// The queue whose messages an answer may carry.
pub(crate) fn queue_of(command: &Command) -> Option<QueueName> {
    match command {
        Command::Receive { queue, .. }
        | Command::ReceiveRun { queue, .. }
        | Command::ReceiveDeferred { queue, .. }
        | Command::ReceiveDeadLetters { queue, .. }
        | Command::ReceiveDeferredDeadLetters { queue, .. }
        | Command::Take { queue, .. }
        | Command::ReceiveTaken { queue, .. }
        | Command::ReceiveTakenDeferred { queue, .. } => Some(queue.clone()),
        _ => None,
    }
}
