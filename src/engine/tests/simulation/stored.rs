//! The real writer and the real store on a disk in memory, which does what the plain engine does, or is found out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::clocks::ClockReading;
use crate::engine::inbox::Request;
use crate::engine::open::Engine;
use crate::engine::open::begin;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::tests::asking;
use crate::engine::tests::asking::AwaitedReply;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::play;
use crate::engine::tests::crash::play::Model;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::simulation::plain::Plain;
use crate::engine::tests::simulation::plain::Played;
use crate::engine::tests::simulation::plain::Question;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::engine::turn::QueuedCommand;
use crate::engine::verify::verify::verify;
use crate::engine::writer::Writer;
use crate::mutex::Mutex;

/// A clock that shows what it is told.
#[derive(Clone)]
struct Shown(Arc<Mutex<ClockReading>>);

impl Shown {
    fn at(&self) -> ClockReading {
        *self.0.lock()
    }
}

impl Clock for Shown {
    fn now(&self) -> Timestamp {
        self.at().wall
    }

    fn elapsed(&self) -> Duration {
        self.at().elapsed
    }

    fn is_manual(&self) -> bool {
        true
    }

    fn on_change(&self, _wake: Box<dyn Fn() + Send + Sync>) {}
}

type Answers = BTreeMap<u64, String>;

/// The engine.
pub(crate) struct Stored {
    writer: Writer,
    /// Its client, which keeps it open.
    _engine: Engine,
    clock: Shown,
    disk: Disk,
    setting: Setting,
    waiting: BTreeMap<u64, AwaitedReply>,
    /// What was answered and not compared yet.
    answers: Answers,
    /// What should be answered.
    expected: Answers,
    /// What the last trial was answered, and the number of the question it tried.
    tried: Option<(u64, String)>,
}

impl Stored {
    pub(crate) fn new(seed: u64, at: ClockReading) -> Stored {
        let setting = Setting { strict: seed % 8 == 1, cramped: seed % 8 == 2 };
        let disk = Disk::new(Image::default());
        let store = Store::with_backend(disk.clone(), setting.options()).expect("a healthy disk");
        Stored::begin(store, disk, setting, at)
    }

    fn begin(store: Store, disk: Disk, setting: Setting, at: ClockReading) -> Stored {
        let clock = Shown(Arc::new(Mutex::new(at)));
        let (engine, writer) = begin(store, Arc::new(clock.clone())).expect("a healthy disk");
        let (waiting, answers, expected) = (BTreeMap::new(), Answers::new(), Answers::new());
        Stored { writer, _engine: engine, clock, disk, setting, waiting, answers, expected, tried: None }
    }

    /// Plays the turn that the plain engine has played; false when the disk failed. With `more` to come it does not
    /// wait for the commit.
    pub(crate) fn play(
        &mut self,
        at: ClockReading,
        sweeps: usize,
        questions: &[Question],
        more: bool,
    ) -> bool {
        *self.clock.0.lock() = at;
        let mut is_done = true;
        for _ in 0..sweeps {
            is_done &= self.writer.serve(Vec::new(), Vec::new(), Vec::new()).is_ok();
        }
        if let [question, ..] = questions {
            self.try_out(question, at);
        }
        let asked: Vec<QueuedCommand> = questions.iter().map(|question| self.ask(question)).collect();
        if more {
            self.writer.inbox.post_at_once(Request::Wake);
        }
        is_done &= self.writer.serve(asked, Vec::new(), Vec::new()).is_ok();
        while self.writer.intake.take().is_some() {}
        self.record();
        is_done
    }

    /// Tries an operator's command before it is asked. Whatever that leaves behind is found by the comparisons; where nothing
    /// is due before it, the command is answered as the trial was.
    fn try_out(&mut self, question: &Question, at: ClockReading) {
        let command = question.command.asked().clone();
        if !command.can_be_tried() || self.writer.commits.failed().is_some() {
            return;
        }
        let now = self.writer.clocks.at(at);
        let rules = &mut self.writer.rules;
        // A disk that has failed is found out by the turn.
        let Ok(tried) = self.writer.store.try_out(|turn| rules.try_out(now, command, turn)) else { return };
        let is_first = !self.writer.next_due.is_past(now);
        if let (Some(number), true, Command::Operate(_) | Command::Redrive(_) | Command::Purge(_)) =
            (question.number, is_first, &question.command)
        {
            self.tried = Some((number, format!("{tried:?}")));
        }
    }

    fn ask(&mut self, question: &Question) -> QueuedCommand {
        let inbox = self.writer.inbox.clone();
        let (letter, answer) = asking::ask(question.command.clone(), question.wait, inbox);
        self.waiting.extend(question.number.map(|number| (number, answer)));
        QueuedCommand::Letter(letter)
    }

    fn record(&mut self) {
        let mut received = Vec::new();
        for (number, answer) in &mut self.waiting {
            if let Some(reply) = answer.try_take() {
                self.answers.extend(reply.map(|reply| (*number, format!("{reply:?}"))));
                received.push(*number);
            }
        }
        received.iter().for_each(|number| drop(self.waiting.remove(number)));
    }

    /// Notes what should be answered.
    pub(crate) fn expect(&mut self, played: &Played) {
        self.expected.extend(played.answers.iter().map(|(number, reply)| (*number, format!("{reply:?}"))));
    }

    pub(crate) fn walk_away(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// What was answered although it is not on disk. That nothing was found may be said at any time.
    pub(crate) fn answered_rashly(&mut self) -> Option<(u64, String)> {
        self.record();
        self.answers.retain(|_, answer| answer != "Receive(Ok([]))" && answer != "AcceptWorkflow(Ok(None))");
        self.answers.pop_first()
    }

    /// Waits for the commits under way.
    fn settle(&mut self) {
        while !self.writer.commits.is_idle() {
            std::thread::yield_now();
        }
        self.record();
    }

    /// Its answers are those of the plain engine, and its time.
    pub(crate) fn compare(&mut self, plain: &Plain) -> Finding {
        self.settle();
        let tried = self.tried.take();
        for (number, expected) in std::mem::take(&mut self.expected) {
            let answer = self.answers.remove(&number);
            if let Some((_, trial)) = tried.as_ref().filter(|(of, _)| *of == number) {
                expect(answer.as_ref() == Some(trial), || {
                    format!("a dry run of {number} is answered {trial}, the command {answer:?}")
                })?;
            }
            expect(answer.as_ref() == Some(&expected), || {
                format!(
                    "I13 the store answers as plain rows do: {number} was answered {answer:?}, not {expected}"
                )
            })?;
        }
        let more = self.answers.pop_first();
        expect(more.is_none(), || {
            format!("I13 the store answers as plain rows do: it also answered {more:?}")
        })?;
        let (now, position) = (self.writer.clocks.now(), self.writer.store.place().0);
        expect(now == plain.now, || format!("I14 time: {now:?}, not {:?}", plain.now))?;
        expect(position == plain.position, || {
            format!("I13 its position is {position}, not {}", plain.position)
        })
    }

    /// What can be looked up without a change is what the plain rows show.
    pub(crate) fn compare_rows(&mut self, plain: &Plain) -> Finding {
        self.compare(plain)?;
        let found = play::surface_of(&mut self.writer.store).expect("a healthy disk");
        let model = Model { rows: plain.rows.clone(), position: plain.position };
        let expected = model.surface();
        expect(found == expected, || "I12 the store shows other rows than the plain ones".to_owned())
    }

    /// Cuts the power after so many operations of the disk.
    pub(crate) fn cut_after(&mut self, ops: usize) {
        self.settle();
        self.disk.cut_after(ops);
    }

    /// The power is cut, and what is left on disk is looked at: its position.
    pub(crate) fn reopen(&mut self, keeps_unsynced: bool) -> u64 {
        self.settle();
        let image = if keeps_unsynced { self.disk.image() } else { self.disk.synced() };
        self.disk = Disk::new(image.clone());
        self.opened(Disk::new(image)).place().0
    }

    /// The engine begins anew on what was left, under an epoch that no token has.
    pub(crate) fn begin_again(&mut self, at: ClockReading) -> Finding {
        let (before, store) = (self.writer.store.epoch(), self.opened(self.disk.clone()));
        let epoch = store.epoch();
        *self = Stored::begin(store, self.disk.clone(), self.setting, at);
        expect(epoch > before, || format!("I3 epoch {epoch} follows {before}"))
    }

    fn opened(&self, disk: Disk) -> Store {
        Store::open_backend(disk, self.setting.options()).expect("what a power cut leaves can be opened")
    }

    /// I12, I13: all rows of what is on disk are those of the plain engine.
    pub(crate) fn compare_disk(&mut self, plain: &Plain) -> Finding {
        self.settle();
        let image = self.disk.synced();
        let model = Model { rows: plain.rows.clone(), position: plain.position };
        let mut store = self.opened(Disk::new(image.clone()));
        if play::state_of(&mut store).expect("a healthy disk") == model.clone().number() {
            return Ok(());
        }
        let (expected, mut store) = (model.lines(), self.opened(Disk::new(image)));
        let found = play::lines_of(&mut store).expect("a healthy disk");
        let missing = expected.iter().find(|line| !found.contains(line));
        let excess = found.iter().find(|line| !expected.contains(line));
        Err(format!("I13 on disk there should be {missing:?} and not {excess:?}"))
    }

    /// The end: everything is on disk, and its file is sound.
    pub(crate) fn finish(&mut self, plain: &Plain) -> Finding {
        self.compare_rows(plain)?;
        self.compare_disk(plain)?;
        let image = self.disk.synced();
        let mut bytes = vec![0; image.len()];
        image.read(0, &mut bytes).expect("all of it");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("simulated.redb");
        std::fs::write(&path, bytes).expect("there is room");
        let found = verify(&path, |_| {}).map_err(|error| format!("I5 the file can be verified: {error}"))?;
        expect(found.is_sound(), || format!("I5 the file is sound: {:?}", found.damages))
    }
}
