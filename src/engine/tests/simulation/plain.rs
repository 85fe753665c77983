//! An engine without a thread and without a disk: the real rules and the real turns, on plain rows.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::clocks::ClockReading;
use crate::engine::clocks::Clocks;
use crate::engine::inbox::Inbox;
use crate::engine::inbox::InboxReceiver;
use crate::engine::inbox::Request;
use crate::engine::inbox::inbox;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::effect::Event;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Stamp;
use crate::engine::tests::asking;
use crate::engine::tests::asking::AwaitedReply;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::turn::QueuedCommand;
use crate::engine::turn::TurnOutcome;
use crate::engine::turn::TurnRules;
use crate::engine::wakeups::Wakeups;
use crate::id::QueueName;

/// Somebody's command, and how long it may wait for work.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Its number; `None` when nobody waits for the answer.
    pub(crate) number: Option<u64>,
    pub(crate) command: Command,
    pub(crate) wait: Option<Duration>,
    /// Whoever asks will be gone when the answer comes.
    pub(crate) is_gone: bool,
}

/// Somebody who waits for an answer.
struct Waiting {
    number: u64,
    /// What was asked, of one who will be gone.
    left: Option<Command>,
    answer: AwaitedReply,
}

/// What a turn led to.
#[derive(Default)]
pub(crate) struct Played {
    /// The answers, in the order in which they were found.
    pub(crate) answers: Vec<(u64, Reply)>,
    pub(crate) events: Vec<Event>,
    /// How many of the events came before anything was asked.
    pub(crate) events_before: usize,
    /// How many turns were played before, in which nothing was asked.
    pub(crate) turns_before: usize,
    /// What was forgotten in each of them.
    pub(crate) cleared: Vec<Cleared>,
    /// Commands by which the engine takes back what nobody was there to take.
    pub(crate) given_back: Vec<Command>,
}

/// What was forgotten in one turn.
#[derive(Default)]
pub(crate) struct Cleared {
    pub(crate) forgotten: Vec<Forgotten>,
    /// Workflows whose remembered cursors were forgotten.
    pub(crate) lapsed: Vec<(QueueName, WorkflowRef)>,
}

/// A workflow that was forgotten.
pub(crate) struct Forgotten {
    pub(crate) queue: QueueName,
    pub(crate) stream: WorkflowRef,
    /// It was used again in the same turn, and so begins anew.
    pub(crate) is_back: bool,
}

/// What a lost process leaves.
#[derive(Clone, Default)]
pub(crate) struct SurvivingState {
    pub(crate) rows: Rows,
    pub(crate) stamped: Stamp,
    pub(crate) position: u64,
}

/// The engine.
pub(crate) struct Plain {
    pub(crate) rows: Rows,
    pub(crate) rules: Rules,
    pub(crate) wakeups: Wakeups,
    inbox: Inbox,
    intake: InboxReceiver,
    waiting: Vec<Waiting>,
    clocks: Clocks,
    /// What the engine's clocks show.
    pub(crate) now: ClockInstants,
    /// What they showed in the last turn that changed anything.
    pub(crate) stamped: Stamp,
    /// How many turns have changed anything.
    pub(crate) position: u64,
}

impl Plain {
    pub(crate) fn new(at: ClockReading) -> Plain {
        Plain::opened(SurvivingState::default(), at)
    }

    fn opened(kept: SurvivingState, at: ClockReading) -> Plain {
        let (inbox, intake) = inbox();
        let (wakeups, waiting) = (Wakeups::default(), Vec::new());
        let SurvivingState { rows, stamped, position } = kept;
        let clocks = Clocks::open(stamped, at);
        let now = clocks.now();
        let rules = Rules::opened(rows.queues.values().map(|queue| &**queue), now.engine);
        Plain { rows, rules, wakeups, inbox, intake, waiting, clocks, now, stamped, position }
    }

    /// Plays one turn: what is due, then what is asked, then who waits for what that brought.
    pub(crate) fn play(&mut self, at: ClockReading, questions: &[Question]) -> Played {
        self.clocks.advance(at);
        self.now = self.clocks.now();
        let mut played = Played::default();
        self.expire_waiters(at, &mut played);
        while self.has_to_clear_up(at) {
            self.clear_up(at, Vec::new(), &mut played);
        }
        played.events_before = played.events.len();
        let asked = questions.iter().map(|question| self.ask(question)).collect();
        self.turn(at, asked, &mut played);
        played.given_back = std::iter::from_fn(|| self.intake.take()).filter_map(given_back).collect();
        played
    }

    fn ask(&mut self, question: &Question) -> QueuedCommand {
        let Some(number) = question.number else {
            return QueuedCommand::Unattended(Box::new(question.command.clone()));
        };
        let (letter, answer) = asking::ask(question.command.clone(), question.wait, self.inbox.clone());
        let left = question.is_gone.then(|| question.command.clone());
        self.waiting.push(Waiting { number, left, answer });
        QueuedCommand::Letter(letter)
    }

    /// Whether something is due after which nobody could tell what was done before a command and what by it: a turn does
    /// few sweeps and leaves the rest to the next, a workflow that is forgotten may be there again at once, and a queue that
    /// is deleted for being idle may be deleted once more with its topic. So these are done before, and so are several things that are due together, as each may begin a sweep.
    pub(crate) fn has_to_clear_up(&self, at: ClockReading) -> bool {
        let now = self.clocks.at(at);
        let clears_up = |reminder: &Reminder| {
            matches!(reminder.what, Remind::Sweep(_) | Remind::Forget(_) | Remind::Cursors | Remind::Idle)
        };
        self.due(now).any(clears_up) || self.run_out(now.engine) + self.due(now).count() > 1
    }

    /// Whether something is due by now.
    pub(crate) fn has_due(&self) -> bool {
        self.due(self.now).next().is_some()
    }

    /// How many locks have run out.
    fn run_out(&self, now: Timestamp) -> usize {
        let locks = self.rules.locks();
        if locks.first_deadline().is_none_or(|(until, _)| now < until) {
            return 0;
        }
        let has_run_out = |key: &&WorkflowKey| locks.of(key).is_some_and(|(_, lock)| lock.until <= now);
        self.rows.workflows.keys().filter(has_run_out).count()
    }

    fn due(&self, now: ClockInstants) -> impl Iterator<Item = &Reminder> {
        // In their order, those of each clock stand together.
        let is_past = move |reminder: &&Reminder| reminder.due.is_past(now);
        let of_engine = self.rows.reminders.values().take_while(|reminder| !reminder.due.is_of_wall());
        let of_wall = self.rows.reminders_from(Due::FIRST_OF_WALL);
        of_engine.take_while(is_past).chain(of_wall.take_while(is_past))
    }

    /// Plays a turn in which nobody asks anything, and notes which workflows were forgotten in it.
    fn clear_up(&mut self, at: ClockReading, asked: Vec<QueuedCommand>, played: &mut Played) {
        let idle_since =
            |rows: &Rows, key: &WorkflowKey| rows.workflows.get(key).and_then(|known| known.idle_since);
        let cursor_of = |rows: &Rows, key: &WorkflowKey| rows.workflows.get(key).map(|known| known.cursor);
        let has_marks = |rows: &Rows, key: &WorkflowKey| rows.marks.keys().any(|(of, _)| of == key);
        let forgettable = self.due(self.now).filter_map(|reminder| match &reminder.what {
            Remind::Forget(stream) => Some(WorkflowKey { queue: reminder.queue, stream: stream.clone() }),
            _ => None,
        });
        let forgettable: Vec<_> = forgettable
            .map(|key| {
                let places = (cursor_of(&self.rows, &key), has_marks(&self.rows, &key));
                (idle_since(&self.rows, &key), places, key)
            })
            .collect();
        let mut remembered: Vec<WorkflowKey> = self.rows.cursors.keys().cloned().collect();
        self.turn(at, asked, played);
        played.turns_before += 1;
        let mut cleared = Cleared::default();
        let mut begun_anew = Vec::new();
        for (since, (cursor, was_marked), key) in forgettable {
            let is_back = self.rows.workflows.contains_key(&key);
            if let Some(queue) = self.rows.queues.get(&key.queue)
                && since.is_some()
                && idle_since(&self.rows, &key) != since
            {
                let queue = queue.name.clone();
                // One that is back and stands at its beginning, or knows no settled place any more, has met no cursor.
                let is_anew =
                    cursor_of(&self.rows, &key) < cursor || (was_marked && !has_marks(&self.rows, &key));
                match is_back && is_anew {
                    true => begun_anew.push(key.clone()),
                    false => remembered.push(key.clone()),
                }
                cleared.forgotten.push(Forgotten { queue, stream: key.stream, is_back });
            }
        }
        let Rows { queues, workflows, cursors, .. } = &self.rows;
        remembered.retain(|key| !cursors.contains_key(key) && !workflows.contains_key(key));
        let lapsed = remembered.into_iter().chain(begun_anew);
        let lapsed = lapsed.filter_map(|key| Some((queues.get(&key.queue)?, key.stream)));
        cleared.lapsed.extend(lapsed.map(|(queue, stream)| (queue.name.clone(), stream)));
        played.cleared.push(cleared);
    }

    fn turn(&mut self, at: ClockReading, asked: Vec<QueuedCommand>, played: &mut Played) {
        let Plain { rules, wakeups, rows, now, .. } = self;
        let changes = rows.changes;
        let mut work = TurnRules::new(*now, at.elapsed, rules, wakeups, rows, (None, None));
        work.apply_due().expect("plain rows never fail");
        work.apply_all(asked).expect("plain rows never fail");
        let applied = work.finish().expect("plain rows never fail");
        if rows.changes > changes {
            self.stamped = self.clocks.stamp();
            self.position += 1;
        }
        self.publish(applied, played);
    }

    fn expire_waiters(&mut self, at: ClockReading, played: &mut Played) {
        for waiter in self.wakeups.take_expired(at.elapsed) {
            waiter.letter.find_nothing();
            waiter.letter.publish(&mut |command| self.inbox.give_back(command));
            self.record(played);
        }
    }

    /// Lets the answers out one by one, so that their order is known.
    fn publish(&mut self, applied: TurnOutcome, played: &mut Played) {
        for asked in applied.answers {
            asked.publish(&mut |command| self.inbox.give_back(command));
            self.record(played);
        }
        played.events.extend(applied.events);
    }

    fn record(&mut self, played: &mut Played) {
        for at in 0..self.waiting.len() {
            if let Some(reply) = self.waiting[at].answer.try_take() {
                let Waiting { number, left, .. } = self.waiting.remove(at);
                let reply = reply.expect("plain rows never fail");
                if let Some(command) = left {
                    // The answer is on its way to somebody who is not there any more.
                    command.give_back(reply.clone(), &mut |command| self.inbox.give_back(command));
                }
                played.answers.push((number, reply));
                return;
            }
        }
    }

    /// Whoever asked this goes away without waiting for the answer.
    pub(crate) fn walk_away(&mut self, number: u64) {
        self.waiting.retain(|waiting| waiting.number != number);
    }

    /// The numbers of those who still wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|waiting| waiting.number)
    }

    /// What would be left if the process were lost now.
    pub(crate) fn kept(&self) -> SurvivingState {
        SurvivingState { rows: self.rows.clone(), stamped: self.stamped, position: self.position }
    }

    /// Takes everything back that has happened since.
    pub(crate) fn restore(&mut self, kept: SurvivingState, at: ClockReading) {
        *self = Plain::opened(kept, at);
    }

    /// The process is lost, with everything in memory, and what is left is opened again.
    pub(crate) fn reopen(&mut self, at: ClockReading) -> Played {
        let rows = std::mem::take(&mut self.rows);
        *self = Plain::opened(SurvivingState { rows, stamped: self.stamped, position: self.position }, at);
        let mut played = Played::default();
        loop {
            let some = QueuedCommand::Unattended(Box::new(Command::Recover(verbs::Recover {})));
            self.clear_up(at, vec![some], &mut played);
            if self.rows.holdings.is_empty() {
                return played;
            }
        }
    }
}

fn given_back(posted: Request) -> Option<Command> {
    match posted {
        Request::GiveBack(command) => Some(*command),
        _ => None,
    }
}
