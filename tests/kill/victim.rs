//! A file whose processes are killed again and again, with the ledger of all they said.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::kill::ledger::Ledger;
use crate::kill::output_lines::Role;
use crate::kill::output_lines::Task;
use crate::kill::process::Heard;
use crate::kill::process::Process;
use crate::kill::reliability::Measured;
use crate::kill::report::Report;
use crate::random::Random;

/// Lines a process says at most, beyond what it has found, before it is killed.
const LINES_MAX: u64 = 180;

/// Time a process lives on after these lines, or without any.
const MICROS_MAX: u64 = 3_000;

/// When a process is killed.
enum Moment {
    /// After so many lines beyond what it has found, and so long after the last.
    Lines(u64, Duration),
    /// So long after its start, perhaps before it has opened the file.
    Start(Duration),
}

/// A file whose processes are killed, and the ledger of what they said.
#[derive(Clone)]
pub(crate) struct Victim {
    pub(crate) file: PathBuf,
    pub(crate) ledger: Ledger,
    random: Random,
    starts: u64,
}

impl Victim {
    pub(crate) fn new(folder: &Path, seed: u64) -> Victim {
        let file = folder.join("victim.redb");
        Victim { file, ledger: Ledger::new(seed), random: Random::new(seed), starts: 0 }
    }

    /// Fails the test when the ledger has found anything.
    pub(crate) fn must_be_innocent(&self) {
        let Ledger { seed, findings, .. } = &self.ledger;
        assert_eq!(findings.total(), 0, "SERIATIM_SEED={seed}: {findings}");
    }

    /// One life of a process, from its start to its kill.
    pub(crate) fn live(&mut self, role: Role) {
        let moment = self.draw();
        let mut process = self.start(role);
        match moment {
            Moment::Start(after) => self.follow_for(&mut process, after),
            Moment::Lines(lines, after) => {
                let mut left = lines;
                while left > 0 {
                    let said = process.hear().unwrap_or_else(|| self.ended_by_itself());
                    left -= u64::from(!matches!(said, Report::Found(..)));
                    self.hear(&mut process, said);
                }
                self.follow_for(&mut process, after);
            }
        }
        process.kill();
        self.hear_the_rest(&mut process);
    }

    /// One life of a process whose disk fails: until it says that its engine has stopped, and why. `fail` is called
    /// once, after some lines.
    pub(crate) fn live_until_stopped(&mut self, role: Role, mut fail: impl FnMut()) -> String {
        let lines = 1 + self.random.below(LINES_MAX);
        let mut process = self.start(role);
        let (mut heard, mut has_failed, mut stopped) = (0, false, None);
        while let Some(said) = process.hear() {
            heard += u64::from(!matches!(said, Report::Found(..)));
            if heard == lines && !has_failed {
                has_failed = true;
                fail();
            }
            match said {
                Report::Stopped(why) => stopped = Some(why),
                said => self.hear(&mut process, said),
            }
        }
        assert!(process.has_ended_well(), "an engine that stops does not take its process down");
        self.ledger.process_ended();
        stopped.expect("it says why its engine has stopped")
    }

    fn ended_by_itself(&self) -> ! {
        let Ledger { seed, findings, .. } = &self.ledger;
        panic!("SERIATIM_SEED={seed}: a process ended before it was killed: {findings}")
    }

    fn hear_the_rest(&mut self, process: &mut Process) {
        while let Some(said) = process.hear() {
            self.hear(process, said);
        }
        self.ledger.process_ended();
    }

    fn draw(&mut self) -> Moment {
        let after = Duration::from_micros(self.random.below(MICROS_MAX));
        match self.random.below(10) {
            0..=1 => Moment::Start(after * 10),
            _ => Moment::Lines(self.random.below(LINES_MAX), after),
        }
    }

    fn start(&mut self, role: Role) -> Process {
        self.starts += 1;
        Process::start(&Task { role, file: self.file.clone(), seed: self.ledger.seed, start: self.starts })
    }

    /// Follows a process for a time.
    fn follow_for(&mut self, process: &mut Process, lasts: Duration) {
        let measured = Measured::begin("life");
        while let Some(left) = lasts.checked_sub(measured.elapsed()) {
            match process.hear_within(left) {
                Heard::Report(said) => self.hear(process, said),
                Heard::Nothing => return,
                Heard::End => self.ended_by_itself(),
            }
        }
    }

    fn hear(&mut self, process: &mut Process, said: Report) {
        let has_looked = matches!(said, Report::Looked);
        self.ledger.hear(said);
        if has_looked {
            process.tell(&self.ledger.plan(&mut self.random));
        }
    }

    /// Lets a process handle all that is left, and end in good order.
    pub(crate) fn drain(&mut self) {
        let mut process = self.start(Role::Drainer);
        self.hear_the_rest(&mut process);
        assert!(process.has_ended_well(), "it has handled everything");
    }

    pub(crate) fn verify(&self) {
        let found = seriatim::store::verify(&self.file, |_| {}).expect("the file can be looked at");
        assert!(found.is_sound(), "SERIATIM_SEED={}: {:?}", self.ledger.seed, found.damages);
    }
}
