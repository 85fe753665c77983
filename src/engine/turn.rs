//! What happens inside one turn: due reminders, lost locks, requests, and the receivers that wait for what they bring.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::engine::admission::Admission;
use crate::engine::letter::LetterHandle;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::NextDue;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::record;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::verbs::ExpireLock;
use crate::engine::rules::verbs::Remind;
use crate::engine::rules::waits_for::WaitsFor;
use crate::engine::store::DiskRoom;
use crate::engine::upcoming::first_reminders;
use crate::engine::upcoming::next_due;
use crate::engine::wakeups::Waiter;
use crate::engine::wakeups::Wakeups;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::limits;

/// Rows that count as one step of what is due: about as many as change when one message comes back. What forgets hundreds of
/// entries in one step takes as much of the turn as hundreds of messages.
const CHANGES_OF_A_STEP: usize = 4;

/// Something to do in a turn.
pub(crate) enum QueuedCommand {
    /// Somebody waits for its answer.
    Letter(LetterHandle),
    /// Nobody does.
    Unattended(Box<Command>),
}

impl QueuedCommand {
    /// Whether it moves as many messages as one turn should.
    pub(crate) fn is_bulk(&self) -> bool {
        match self {
            QueuedCommand::Letter(letter) => letter.is_bulk(),
            QueuedCommand::Unattended(command) => command.is_bulk(),
        }
    }
}

/// What a turn led to. Nothing of it may be published before the commit.
#[derive(Default)]
pub(crate) struct TurnOutcome {
    /// Whose answers are in their letters.
    pub(crate) answers: Vec<LetterHandle>,
    pub(crate) events: Vec<Event>,
    /// When the next lock runs out or the next reminder is due, on each clock.
    pub(crate) next_due: NextDue,
    /// Whether the last command was an internal one with more to do.
    pub(crate) more: bool,
    /// What was promised of the disk to the commands that were asked.
    pub(crate) promised_bytes: u64,
    /// What was asked and is left to the next turn, because this one has written enough.
    pub(crate) left: Vec<QueuedCommand>,
}

/// A turn in the making.
pub(crate) struct TurnRules<'a> {
    now: ClockInstants,
    elapsed: Duration,
    rules: &'a mut Rules,
    wakeups: &'a mut Wakeups,
    records: &'a mut dyn MutableRecords,
    admission: Admission<'a>,
    /// Most bytes of one command, if they are bounded.
    bytes_max: Option<usize>,
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
        records: &'a mut dyn MutableRecords,
        (room, bytes_max): (Option<&'a DiskRoom>, Option<usize>),
    ) -> TurnRules<'a> {
        TurnRules {
            now,
            elapsed,
            rules,
            wakeups,
            records,
            admission: Admission::new(room),
            bytes_max,
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
        let mut work = 0;
        while work < limits::REMINDERS_PER_TURN && !self.records.is_half_full() {
            match self.rules.locks().first_deadline() {
                Some((due, token)) if due <= self.now.engine => work += self.run(ExpireLock { token })?,
                _ => break,
            }
        }
        let mut work = 0;
        while work < limits::REMINDERS_PER_TURN && !self.records.is_half_full() {
            let Some(reminder) = self.next_reminder()? else {
                break;
            };
            // A sweep is many steps in one, also where it changes little, and may ask to be called again at once.
            let least = if matches!(reminder.what, record::Remind::Sweep(_)) { limits::SWEEP_MAX } else { 1 };
            self.note_waiting_receivers(&reminder)?;
            work += self.run(Remind { reminder })?.max(least);
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
        if reminder.what == record::Remind::Idle
            && let Some(queue) = self.records.queue(reminder.queue)?
            && [WaitsFor::Queue(queue.name.clone()), WaitsFor::DeadLetters(queue.name.clone())]
                .iter()
                .any(|waits| self.wakeups.is_waited_for(waits))
        {
            self.rules.note_use(reminder.queue, self.now.engine);
        }
        Ok(())
    }

    /// Applies what was asked, and serves the receivers that wait for what it brought.
    pub(crate) fn apply_all(&mut self, commands: Vec<QueuedCommand>) -> Result<(), Fault> {
        self.woken.append(&mut self.wakeups.later);
        let mut paced = self.wakeups.take_paced(self.now.engine).into_iter();
        let mut commands = commands.into_iter();
        while !self.records.is_full()
            && let Some(command) = commands.next()
        {
            match command {
                QueuedCommand::Letter(letter) => self.apply_one(letter)?,
                QueuedCommand::Unattended(command) => {
                    let outcome = self.rules.apply(self.now, *command, self.records)?;
                    self.note(outcome.effects);
                    self.applied.more = matches!(outcome.reply, Reply::Done { more: true });
                }
            }
        }
        self.applied.left = commands.collect();
        // Before the others, of whom some wait for the same rate.
        while !self.records.is_full()
            && let Some(waits_for) = paced.next()
        {
            self.serve_waiting(&waits_for)?;
        }
        self.wakeups.later.extend(paced);
        while !self.records.is_full()
            && let Some(waits_for) = self.woken.pop_first()
        {
            self.serve_waiting(&waits_for)?;
        }
        self.wakeups.later.append(&mut self.woken);
        // Who does not wait, and was kept for what this turn could still find, is told with it.
        for waiter in self.wakeups.take_expired(self.elapsed) {
            waiter.letter.find_nothing();
            self.applied.answers.push(waiter.letter);
        }
        Ok(())
    }

    fn apply_one(&mut self, letter: LetterHandle) -> Result<(), Fault> {
        let waits_for = letter.waits_for();
        if waits_for.is_some() && letter.is_left() {
            return Ok(());
        }
        // Only then, because all messages of a batch are walked over for it.
        if let Some(bytes_max) = self.bytes_max
            && let bytes = letter.log_weight(&*self.records)?
            && bytes > bytes_max
        {
            letter.fail(Unavailable::TooLarge { bytes, bytes_max });
            return Ok(());
        }
        if !self.admission.admits(&letter, &*self.records)? {
            self.applied.answers.push(letter);
            return Ok(());
        }
        // Who does not wait is kept, too, while so many expired messages stand before what it could have that the turn after this
        // goes on with them.
        let is_later =
            |turn: &TurnRules<'_>| waits_for.is_some_and(|waits_for| turn.wakeups.later.contains(waits_for));
        if !is_later(self) && !self.found_nothing(&letter)? {
            self.applied.answers.push(letter);
            return Ok(());
        }
        // With what stands behind expired messages of a workflow that is taken whole, this turn goes on.
        let goes_on = waits_for.is_some_and(|waits_for| {
            matches!(waits_for, WaitsFor::AcceptedWorkflow(_)) && self.woken.contains(waits_for)
        });
        match is_later(self) || goes_on || !letter.wait().is_zero() {
            true => self.park(letter),
            false => self.applied.answers.push(letter),
        }
        Ok(())
    }

    fn park(&mut self, letter: LetterHandle) {
        self.wakeups.sweep();
        let waiting = self.wakeups.len();
        // Who does not wait is gone with the next turns: no more of them than the inbox had.
        if waiting < limits::RECEIVERS_MAX || letter.wait().is_zero() {
            let until = self.elapsed.saturating_add(letter.wait());
            self.wakeups.park(Waiter { letter, until });
            return;
        }
        letter.refuse_to_wait(waiting);
        self.applied.answers.push(letter);
    }

    /// Serves receivers in the order in which they came, as long as there is something for them.
    fn serve_waiting(&mut self, waits_for: &WaitsFor) -> Result<(), Fault> {
        while let Some((place, waiter)) = self.wakeups.next(waits_for) {
            let is_full = self.records.is_full();
            if is_full || self.found_nothing(&waiter.letter)? {
                if !is_full && waiter.letter.is_left() {
                    // It has gone just now, and what there is goes to the next.
                    continue;
                }
                self.wakeups.put_back(place, waiter);
                // There may be more behind the expired messages that were in the way: a turn does so many, and the next goes on.
                if self.woken.remove(waits_for) || is_full {
                    self.wakeups.later.insert(waits_for.clone());
                }
                return Ok(());
            }
            self.applied.answers.push(waiter.letter);
        }
        Ok(())
    }

    /// Does what is asked; whether that was to find work, and there is none.
    fn found_nothing(&mut self, letter: &LetterHandle) -> Result<bool, Fault> {
        let outcome = letter.apply(self.rules, self.now, self.records)?;
        self.note(outcome.effects);
        Ok(outcome.found_nothing)
    }

    /// Does what is due; as how many steps it counts, which is one for most.
    fn run(&mut self, verb: impl EngineVerb) -> Result<usize, Fault> {
        let outcome = self.rules.run(self.now, verb, self.records)?;
        self.note(outcome.effects);
        Ok((outcome.changes / CHANGES_OF_A_STEP).max(1))
    }

    fn note(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Work(queue) => drop(self.woken.insert(WaitsFor::Queue(queue))),
                Effect::DeadLetters(queue) => drop(self.woken.insert(WaitsFor::DeadLetters(queue))),
                Effect::MoreDeadLetters(queue) => {
                    self.wakeups.later.insert(WaitsFor::DeadLetters(queue));
                }
                Effect::AcceptedWork(token) => drop(self.woken.insert(WaitsFor::AcceptedWorkflow(token))),
                Effect::MoreWork(queue) => drop(self.wakeups.later.insert(WaitsFor::Queue(queue))),
                Effect::Paced { queue, holder, until } => {
                    let waits_for = holder.map_or(WaitsFor::Queue(queue), WaitsFor::AcceptedWorkflow);
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
    }
}
