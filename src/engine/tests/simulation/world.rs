//! One simulation: step after step, a turn of the engine and a look at everything that was promised.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::Xxh3;

use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::listing::Listing;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::engine::tests::simulation::clock::Clock;
use crate::engine::tests::simulation::clock::Shown;
use crate::engine::tests::simulation::dead_letters::DeadLetters;
use crate::engine::tests::simulation::invariants;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::plain::Plain;
use crate::engine::tests::simulation::plain::Played;
use crate::engine::tests::simulation::plain::Question;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::stored::Stored;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::engine::upcoming::first_reminders;
use crate::id::QueueName;

/// Steps of one simulation.
pub(crate) const STEPS: usize = 200;
/// After so many steps, everything is looked at; after the others, only what costs little.
const THOROUGH_EVERY: usize = 20;

/// One simulation.
pub(crate) struct World {
    pub(crate) clients: Clients,
    pub(crate) clock: Clock,
    pub(crate) plain: Plain,
    /// The same on a disk, in some simulations.
    pub(crate) stored: Option<Stored>,
    pub(crate) ledger: Ledger,
    pub(crate) reference: Reference,
    pub(crate) dead_letters: DeadLetters,
    /// What was asked and is not answered yet.
    pub(crate) asked: BTreeMap<u64, Command>,
    next_number: u64,
    pub(crate) epoch: u32,
    /// What the engine takes back by itself in the next turn.
    pub(crate) given_back: Vec<Command>,
    step: usize,
    /// The first reminders that the last turn has left.
    due: Vec<Reminder>,
    /// What the clocks have shown to this process.
    pub(crate) shown: Shown,
    /// What has happened, if somebody wants to read it.
    pub(crate) story: Option<Vec<String>>,
    /// The number of what has happened, if somebody wants to compare it.
    pub(crate) digest: Option<Xxh3>,
}

impl World {
    /// A simulation on plain rows, perhaps on a disk as well.
    pub(crate) fn new(seed: u64, is_stored: bool) -> World {
        let clock = Clock::new();
        let at = clock.at;
        let stored = is_stored.then(|| Stored::new(seed, at));
        let clients = Clients::new(seed);
        let reference = Reference { is_blind: clients.is_bulky, ..Reference::default() };
        World {
            clients,
            clock,
            plain: Plain::new(at),
            stored,
            ledger: Ledger::default(),
            reference,
            dead_letters: DeadLetters::default(),
            asked: BTreeMap::new(),
            next_number: 0,
            epoch: 1,
            given_back: Vec::new(),
            step: 0,
            due: Vec::new(),
            shown: Shown::new(at),
            story: None,
            digest: None,
        }
    }

    /// Plays all steps, and looks after each of them.
    pub(crate) fn run(&mut self) -> Finding {
        let queues = self.clients.open();
        self.ask_all(queues)?;
        for step in 1..=STEPS {
            self.step = step;
            self.advance();
            match self.clients.random.below(1000) {
                0..6 => self.lose_process()?,
                6..12 => self.lose_process_in_a_turn()?,
                _ => {
                    let questions = self.questions();
                    self.turn(questions)?;
                }
            }
        }
        self.settle_everything()?;
        match &mut self.stored {
            Some(stored) => stored.finish(&self.plain),
            None => Ok(()),
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, millis: u64) {
        self.clock.pass(millis);
    }

    /// Asks all of this in one turn.
    pub(crate) fn ask_all(&mut self, commands: Vec<Command>) -> Finding {
        let questions = commands.into_iter().map(|command| self.question(command)).collect();
        self.turn(questions)
    }

    /// Asks all of this in a turn that is a step of its own.
    pub(crate) fn step_on(&mut self, commands: Vec<Command>) -> Finding {
        self.step += 1;
        self.ask_all(commands)
    }

    fn question(&mut self, command: Command) -> Question {
        self.next_number += 1;
        Question { number: Some(self.next_number), command, wait: None, is_gone: false }
    }

    pub(crate) fn questions(&mut self) -> Vec<Question> {
        let count = self.clients.random.pick(&[1, 1, 1, 1, 2, 3]);
        let mut questions: Vec<Question> = Vec::new();
        for command in std::mem::take(&mut self.given_back) {
            questions.push(self.question(command));
        }
        for _ in 0..count {
            self.next_number += 1;
            questions.push(self.clients.ask(
                self.next_number,
                &self.plain.rows,
                &self.ledger,
                self.plain.now.wall,
            ));
        }
        questions
    }

    /// Moves the clocks, mostly to an instant at which something is due.
    fn advance(&mut self) {
        let lock = self.plain.rules.locks().first_deadline().map(|(due, _)| Due::engine(due));
        let by_wall = self.plain.rows.reminders_from(Due::FIRST_OF_WALL).take(2);
        let first = self.plain.rows.reminders.values().take(4);
        let reminders = first.chain(by_wall).map(|reminder| reminder.due);
        let due: Vec<Due> = lock.into_iter().chain(lock).chain(reminders).collect();
        self.clock.advance(&mut self.clients.random, self.plain.now, &due);
        let leaves = self.clients.random.chance(1);
        let first = self.plain.waiting().next().filter(|_| leaves);
        if let Some(number) = first {
            self.plain.walk_away(number);
            self.asked.remove(&number);
            if let Some(stored) = &mut self.stored {
                stored.walk_away(number);
            }
        }
    }

    pub(crate) fn turn(&mut self, questions: Vec<Question>) -> Finding {
        let before = self.plain.now;
        self.shown.add(self.clock.at);
        let played = self.plain.play(self.clock.at, &questions);
        if let Some(stored) = &mut self.stored {
            let more = self.clients.random.chance(20);
            stored.expect(&played);
            let is_done = stored.play(self.clock.at, played.turns_before, &questions, more);
            expect(is_done, || "the disk is healthy, and the engine stopped".to_owned())?;
            if self.step.is_multiple_of(THOROUGH_EVERY) {
                stored.compare_rows(&self.plain)?;
            } else if !more {
                stored.compare(&self.plain)?;
            }
        }
        self.record(&questions, played, true)?;
        self.look(before)
    }

    pub(crate) fn record(&mut self, questions: &[Question], played: Played, is_answered: bool) -> Finding {
        self.ledger.advance(self.plain.now);
        self.dead_letters.is_sure = questions.len() == 1;
        self.reference.advance(self.plain.now, played.turns_before > 0);
        played.cleared.iter().try_for_each(|cleared| self.reference.clear_up(cleared))?;
        let is_done = |number: u64| {
            let mut answers = played.answers.iter();
            answers.any(|(of, reply)| {
                *of == number && matches!(reply, Reply::Queue(Ok(true)) | Reply::Topic(Ok(true)))
            })
        };
        // Whoever deletes a queue hears of it from the answer, at its place among the others.
        let is_deleted = |queue: &QueueName| {
            let deletes = |question: &Question| match question.command.asked() {
                Command::DeleteQueue(verbs::DeleteQueue { name }) => name == queue,
                Command::ChangeTopic(verbs::ChangeTopic { name, change: TopicChange::Delete }) => {
                    queue.subscription().is_some_and(|(topic, _)| topic == *name)
                }
                _ => false,
            };
            questions.iter().any(|question| deletes(question) && question.number.is_some_and(is_done))
        };
        for (index, event) in played.events.iter().enumerate() {
            self.ledger.event_listener.record(event);
            let is_told = index >= played.events_before && is_deleted(&event.queue);
            if event.kind != EventKind::QueueDeleted || !is_told {
                self.record_event(event);
            }
        }
        for question in questions {
            self.log(|| format!("{:?} asks {:?}", question.number, question.command));
            if let Some(number) = question.number {
                self.asked.insert(number, question.command.clone());
            }
        }
        let is_gone =
            |number| questions.iter().any(|question| question.number == Some(number) && question.is_gone);
        for (number, reply) in &played.answers {
            self.log(|| format!("  {number} is answered {reply:?}"));
            let command = self.asked.remove(number).expect("only what was asked is answered");
            self.ledger.record_on_record(&command, reply);
            let command = command.asked();
            let is_new = questions.iter().any(|question| question.number == Some(*number));
            if self.dead_letters.is_about(command) {
                self.record_dead_letters(command, reply)?;
            } else {
                self.ledger.record(command, reply);
                if is_new || !is_nothing(reply) {
                    self.reference.record(command, reply)?;
                }
            }
            if is_answered && !is_gone(*number) {
                self.clients.record(command, reply);
            }
        }
        if let ([question], [(_, Reply::Purge(Ok(purged)))]) = (questions, played.answers.as_slice()) {
            invariants::is_purged(&self.plain.rows, question.command.asked(), purged)?;
        }
        self.given_back.extend(played.given_back);
        self.dead_letters.end_turn(&self.plain.rows, self.plain.rules.locks());
        self.reference.check_waiting(self.asked.values())
    }

    /// Hears of dead letters that are handed out and settled; one that is completed has come to its end.
    fn record_dead_letters(&mut self, command: &Command, reply: &Reply) -> Finding {
        let now = self.plain.now.engine;
        let handed = match reply {
            Reply::Receive(Ok(handed)) => handed.as_slice(),
            _ => &[],
        };
        handed.iter().for_each(|handed| self.reference.note_dead_letter(handed.sequence));
        let completed = self.dead_letters.record(command, reply, &self.ledger, now)?;
        let (Some(sequence), Command::Settle(verbs::Settle { queue, .. })) = (completed, command) else {
            return Ok(());
        };
        self.ledger.end(sequence, End::Completed);
        if let Some(sums) = self.ledger.sums(queue) {
            sums.completed += 1;
        }
        self.reference.complete_dead_letter(queue, sequence);
        Ok(())
    }

    pub(crate) fn record_event(&mut self, event: &Event) {
        self.ledger.record_event(event);
        if let (EventKind::Redriven { in_place: true }, Some(sequence)) = (&event.kind, event.sequence_number)
        {
            self.dead_letters.put_back(sequence);
        }
        if event.kind == EventKind::QueueDeleted {
            self.reference.delete(&event.queue);
        }
    }

    pub(crate) fn look(&mut self, before: ClockInstants) -> Finding {
        let facts = std::mem::take(&mut self.ledger.facts);
        let due = std::mem::take(&mut self.due);
        invariants::after_every_turn(&self.view(before, due, &facts))?;
        let first = first_reminders(&self.plain.rows).expect("plain rows never fail");
        self.due = first.into_iter().flatten().collect();
        // Whoever reads the story wants to know in which step it went wrong.
        let is_logged = self.story.is_some();
        if self.step.is_multiple_of(THOROUGH_EVERY) || self.ledger.has_purged || is_logged {
            self.look_thoroughly()?;
        }
        Ok(())
    }

    /// Walks over all rows, and compares them with what is known from answers alone.
    pub(crate) fn look_thoroughly(&mut self) -> Finding {
        let view = self.view(self.plain.now, Vec::new(), &[]);
        invariants::thoroughly(&view)?;
        let gone = invariants::gone(&view);
        self.reference.compare(&self.plain.rows)?;
        self.dead_letters.compare(&self.plain.rows)?;
        self.ledger.note_gone(gone);
        Ok(())
    }

    fn view<'a>(&'a self, before: ClockInstants, due: Vec<Reminder>, facts: &'a [Fact]) -> View<'a> {
        let World { shown, plain, ledger, .. } = self;
        View { now: plain.now, before, shown, due, plain, ledger, facts }
    }

    pub(crate) fn log(&mut self, line: impl FnOnce() -> String) {
        if self.story.is_none() && self.digest.is_none() {
            return;
        }
        let ClockInstants { engine, wall } = self.plain.now;
        let line = format!("{:3} {engine}, {wall} by the wall: {}", self.step, line());
        if let Some(digest) = &mut self.digest {
            digest.update(line.as_bytes());
        }
        if let Some(story) = &mut self.story {
            story.push(line);
        }
    }

    /// The numbers of what has happened and of all rows; the rows are used up by it.
    pub(crate) fn digests(&mut self) -> (u64, u64) {
        let rows = Listing::number(&mut self.plain.rows).expect("plain rows never fail");
        (self.digest.as_ref().map_or(0, Xxh3::digest), rows)
    }
}

/// Whether somebody was told that there is nothing; who has waited long enough is told so before anything else happens.
fn is_nothing(reply: &Reply) -> bool {
    match reply {
        Reply::Receive(Ok(handed)) => handed.is_empty(),
        Reply::AcceptWorkflow(Ok(taken)) => taken.is_none(),
        _ => false,
    }
}
