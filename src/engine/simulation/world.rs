//! One simulation: step after step, a turn of the engine and a look at everything that was promised.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::record::Reminder;
use crate::engine::simulation::client::crowd::Crowd;
use crate::engine::simulation::clock::Clock;
use crate::engine::simulation::invariants;
use crate::engine::simulation::ledger::Ledger;
use crate::engine::simulation::plain::Plain;
use crate::engine::simulation::plain::Played;
use crate::engine::simulation::plain::Question;
use crate::engine::simulation::view::Finding;
use crate::engine::simulation::view::View;
use crate::id::QueueName;

/// Steps of one simulation.
pub(crate) const STEPS: usize = 200;
/// After so many steps, everything is looked at; after the others, only what costs little.
const THOROUGH_EVERY: usize = 20;

/// One simulation.
pub(crate) struct World {
    pub(crate) crowd: Crowd,
    clock: Clock,
    pub(crate) plain: Plain,
    ledger: Ledger,
    /// What was asked and is not answered yet.
    asked: BTreeMap<u64, Command>,
    next_number: u64,
    epoch: u32,
    /// What the engine takes back by itself in the next turn.
    given_back: Vec<Command>,
    step: usize,
    /// The first reminder that the last turn has left.
    due: Option<Reminder>,
    /// What has happened, if somebody wants to read it.
    pub(crate) story: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        World {
            crowd: Crowd::new(seed),
            clock: Clock::new(),
            plain: Plain::new(),
            ledger: Ledger::default(),
            asked: BTreeMap::new(),
            next_number: 0,
            epoch: 1,
            given_back: Vec::new(),
            step: 0,
            due: None,
            story: None,
        }
    }

    /// Plays all steps, and looks after each of them.
    pub(crate) fn run(&mut self) -> Finding {
        let queues = self.crowd.open();
        self.ask_all(queues)?;
        for step in 1..=STEPS {
            self.step = step;
            self.advance();
            match self.crowd.random.below(1000) {
                0..6 => self.crash(),
                6..12 => self.crash_in_a_turn()?,
                _ => {
                    let questions = self.questions();
                    self.turn(questions)?;
                }
            }
        }
        self.settle_everything()
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, millis: u64) {
        self.clock.go(self.plain.time.as_millis() + millis, self.plain.time);
    }

    /// Asks all of this in one turn.
    pub(crate) fn ask_all(&mut self, commands: Vec<Command>) -> Finding {
        let questions = commands.into_iter().map(|command| self.question(command)).collect();
        self.turn(questions)
    }

    fn question(&mut self, command: Command) -> Question {
        self.next_number += 1;
        Question { number: Some(self.next_number), command, wait: None, is_gone: false }
    }

    fn questions(&mut self) -> Vec<Question> {
        let count = self.crowd.random.pick(&[1, 1, 1, 1, 2, 3]);
        let mut questions: Vec<Question> = Vec::new();
        for command in std::mem::take(&mut self.given_back) {
            questions.push(self.question(command));
        }
        for _ in 0..count {
            self.next_number += 1;
            questions.push(self.crowd.ask(self.next_number, &self.plain.rows, &self.ledger, self.plain.time));
        }
        questions
    }

    /// Moves the clocks, mostly to an instant at which something is due.
    fn advance(&mut self) {
        let lock = self.plain.rules.locks().first_deadline().map(|(due, _)| due);
        let reminders = self.plain.rows.reminders.values().take(4).map(|reminder| reminder.due);
        let due: Vec<Timestamp> = lock.into_iter().chain(lock).chain(reminders).collect();
        self.clock.advance(&mut self.crowd.random, self.plain.time, &due);
        let leaves = self.crowd.random.chance(1);
        let first = self.plain.waiting().next().filter(|_| leaves);
        if let Some(number) = first {
            self.plain.walk_away(number);
            self.asked.remove(&number);
        }
    }

    fn turn(&mut self, questions: Vec<Question>) -> Finding {
        let before = self.plain.time;
        let played = self.plain.play(self.clock.at, &questions);
        self.hear(&questions, played, true);
        self.look(before)
    }

    fn hear(&mut self, questions: &[Question], played: Played, is_answered: bool) {
        self.ledger.advance(self.plain.time);
        let is_done = |number: u64| {
            let mut answers = played.answers.iter();
            answers.any(|(of, reply)| *of == number && matches!(reply, Reply::Queue(Ok(true))))
        };
        // Whoever deletes a queue hears of it from the answer, at its place among the others.
        let is_deleted = |queue: &QueueName| {
            let deletes = |question: &Question| matches!(&question.command, Command::DeleteQueue { name } if name == queue);
            questions.iter().any(|question| deletes(question) && question.number.is_some_and(is_done))
        };
        let is_news = |event: &&Event| event.kind != EventKind::QueueDeleted || !is_deleted(&event.queue);
        played.events.iter().filter(is_news).for_each(|event| self.ledger.hear_event(event));
        for question in questions {
            self.tell(|| format!("{:?} asks {:?}", question.number, question.command));
            if let Some(number) = question.number {
                self.asked.insert(number, question.command.clone());
            }
        }
        for (number, reply) in &played.answers {
            self.tell(|| format!("  {number} is answered {reply:?}"));
            let command = self.asked.remove(number).expect("only what was asked is answered");
            self.ledger.hear(&command, reply);
            let is_gone =
                questions.iter().any(|question| question.number == Some(*number) && question.is_gone);
            if is_answered && !is_gone {
                self.crowd.hear(&command, reply);
            }
        }
        self.given_back.extend(played.given_back);
    }

    fn look(&mut self, before: Timestamp) -> Finding {
        let facts = std::mem::take(&mut self.ledger.facts);
        let view = View {
            now: self.plain.time,
            before,
            due: self.due.take(),
            plain: &self.plain,
            ledger: &self.ledger,
            facts: &facts,
        };
        invariants::after_every_turn(&view)?;
        self.due = self.plain.rows.reminders.values().next().cloned();
        if self.step.is_multiple_of(THOROUGH_EVERY) || self.ledger.has_purged {
            invariants::thoroughly(&view)?;
            let gone = invariants::gone(&view);
            self.ledger.note_gone(gone);
        }
        Ok(())
    }

    /// The process is lost between two turns.
    fn crash(&mut self) {
        self.tell(|| "the process is lost".to_owned());
        self.reopen(Vec::new());
    }

    /// The process is lost in a turn whose answers nobody gets; perhaps the turn was written, perhaps not.
    fn crash_in_a_turn(&mut self) -> Finding {
        let questions = self.questions();
        let commands: Vec<Command> = questions.iter().map(|question| question.command.clone()).collect();
        if self.crowd.random.chance(50) {
            self.tell(|| format!("the process is lost, and with it {commands:?}"));
            self.reopen(commands);
            return Ok(());
        }
        let before = self.plain.time;
        let played = self.plain.play(self.clock.at, &questions);
        self.hear(&questions, played, false);
        self.look(before)?;
        self.tell(|| "the process is lost before it could answer that".to_owned());
        self.reopen(commands);
        Ok(())
    }

    fn reopen(&mut self, unanswered: Vec<Command>) {
        self.epoch += 1;
        self.asked.clear();
        self.given_back.clear();
        self.ledger.lose(|_| true);
        let events = self.plain.crash(self.clock.at);
        self.ledger.advance(self.plain.time);
        events.iter().for_each(|event| self.ledger.hear_event(event));
        self.crowd.hear_of_crash(unanswered, self.epoch);
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let (time, step) = (self.plain.time, self.step);
        if let Some(story) = &mut self.story {
            story.push(format!("{step:3} {time}: {}", line()));
        }
    }
}
