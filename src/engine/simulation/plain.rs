//! An engine without a thread and without a disk: the real rules and the real turns, on plain rows.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::Timestamp;
use crate::engine::crash::rows::Rows;
use crate::engine::inbox::Inbox;
use crate::engine::inbox::Intake;
use crate::engine::inbox::Parcel;
use crate::engine::inbox::Posted;
use crate::engine::inbox::Request;
use crate::engine::inbox::Unsealed;
use crate::engine::inbox::inbox;
use crate::engine::rules::Rules;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::effect::Event;
use crate::engine::rules::record::Remind;
use crate::engine::simulation::clock::Instant;
use crate::engine::turn::Applied;
use crate::engine::turn::Asked;
use crate::engine::turn::TurnRules;
use crate::engine::turn::queue_of;
use crate::engine::wakeups::Wakeups;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;

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
    queue: Option<QueueName>,
    is_gone: bool,
    answer: oneshot::Receiver<Result<Parcel, Unavailable>>,
}

/// What a turn led to.
#[derive(Default)]
pub(crate) struct Played {
    /// The answers, in the order in which they were found.
    pub(crate) answers: Vec<(u64, Reply)>,
    pub(crate) events: Vec<Event>,
    /// Commands by which the engine takes back what nobody was there to take.
    pub(crate) given_back: Vec<Command>,
}

/// The engine.
pub(crate) struct Plain {
    pub(crate) rows: Rows,
    pub(crate) rules: Rules,
    pub(crate) wakeups: Wakeups,
    inbox: Inbox,
    intake: Intake,
    waiting: Vec<Waiting>,
    /// The engine's time.
    pub(crate) time: Timestamp,
    /// The instant of the last turn that changed anything.
    pub(crate) stamped: Timestamp,
}

impl Plain {
    pub(crate) fn new() -> Plain {
        Plain::opened(Rows::default(), Timestamp::default())
    }

    fn opened(rows: Rows, stamped: Timestamp) -> Plain {
        let (inbox, intake) = inbox();
        let (rules, wakeups) = (Rules::default(), Wakeups::default());
        Plain { rows, rules, wakeups, inbox, intake, waiting: Vec::new(), time: stamped, stamped }
    }

    /// Plays one turn: what is due, then what is asked, then who waits for what that brought.
    pub(crate) fn play(&mut self, at: Instant, questions: &[Question]) -> Played {
        self.time = self.time.max(self.stamped).max(at.wall);
        let mut played = Played::default();
        self.expire_waiters(at, &mut played);
        while self.has_to_sweep() {
            self.turn(at, Vec::new(), &mut played);
        }
        let asked = questions.iter().map(|question| self.ask(question)).collect();
        self.turn(at, asked, &mut played);
        played.given_back = std::iter::from_fn(|| self.intake.take()).filter_map(given_back).collect();
        played
    }

    fn ask(&mut self, question: &Question) -> Asked {
        let Some(number) = question.number else { return Asked::unattended(question.command.clone()) };
        let (slot, answer) = oneshot::channel();
        let queue = question.is_gone.then(|| queue_of(&question.command)).flatten();
        self.waiting.push(Waiting { number, queue, is_gone: question.is_gone, answer });
        Asked { command: question.command.clone(), slot: Some(slot), wait: question.wait }
    }

    /// Whether there is a sweep to do. A turn does few of them, and leaves the rest to the next; so that it is known what
    /// is done when a command is applied, they are done before.
    fn has_to_sweep(&self) -> bool {
        let due = self.rows.reminders.values().take_while(|reminder| reminder.due <= self.time);
        due.into_iter().any(|reminder| matches!(reminder.what, Remind::Sweep(_)))
    }

    fn turn(&mut self, at: Instant, asked: Vec<Asked>, played: &mut Played) {
        let Plain { rules, wakeups, rows, time, .. } = self;
        let changes = rows.changes;
        let mut work = TurnRules::new(*time, at.elapsed, rules, wakeups, rows);
        work.apply_due().expect("plain rows never fail");
        work.apply_asked(asked).expect("plain rows never fail");
        let applied = work.finish().expect("plain rows never fail");
        if rows.changes > changes {
            self.stamped = self.time;
        }
        self.let_out(applied, played);
    }

    fn expire_waiters(&mut self, at: Instant, played: &mut Played) {
        for waiter in self.wakeups.take_expired(at.elapsed) {
            let parcel = Applied::nothing_for(&waiter.command).seal(&self.inbox);
            let _ = waiter.slot.send(Ok(parcel));
            self.hear(played);
        }
    }

    /// Lets the answers out one by one, so that their order is known.
    fn let_out(&mut self, applied: Applied, played: &mut Played) {
        for (slot, unsealed) in applied.answers {
            let _ = slot.send(Ok(unsealed.seal(&self.inbox)));
            self.hear(played);
        }
        played.events.extend(applied.events);
    }

    fn hear(&mut self, played: &mut Played) {
        for at in 0..self.waiting.len() {
            if let Ok(parcel) = self.waiting[at].answer.try_recv() {
                let Waiting { number, queue, is_gone, .. } = self.waiting.remove(at);
                let reply = parcel.expect("plain rows never fail").open();
                if is_gone {
                    // The answer is on its way to somebody who is not there any more.
                    drop(Unsealed { reply: reply.clone(), queue }.seal(&self.inbox));
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

    /// The process is lost, with everything in memory, and the file is opened again.
    pub(crate) fn crash(&mut self, at: Instant) -> Vec<Event> {
        let rows = std::mem::take(&mut self.rows);
        *self = Plain::opened(rows, self.stamped);
        let some = Question { number: None, command: Command::Recover, wait: None, is_gone: false };
        let mut events = self.play(at, &vec![some.clone(); limits::SWEEP_MAX]).events;
        while !self.rows.holdings.is_empty() {
            events.extend(self.play(at, &vec![some.clone(); limits::SWEEP_MAX]).events);
        }
        events
    }
}

fn given_back(posted: Posted) -> Option<Command> {
    match posted.request {
        Request::GiveBack(command) => Some(command),
        _ => None,
    }
}
