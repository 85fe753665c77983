//! kill -9 at random moments: the process is started again on the same file, and the ledger compares.
//!
//! `SERIATIM_SEED=n` draws the same loads and the same moments, as far as the machine's timing allows;
//! `SERIATIM_KILLS=n` sets how often it is killed.

use std::path::PathBuf;
use std::time::Duration;

use crate::kill::ledger::Ledger;
use crate::kill::process::Heard;
use crate::kill::process::Process;
use crate::kill::reliability::Measured;
use crate::kill::reliability::number;
use crate::kill::reliability::seed;
use crate::kill::said::Said;
use crate::kill::verdict::Verdict;
use crate::kill::voice::Role;
use crate::kill::voice::Task;
use crate::random::Random;

const KILLS: u64 = 300;

/// A process that lies is killed at most so often before its lie must be seen.
const KILLS_OF_A_LIAR_MAX: u64 = 100;

/// How often the file is verified between two processes.
const VERIFIED_EVERY: u64 = 50;

/// Lines a process says at most, beyond what it has found, before it is killed.
const LINES_MAX: u64 = 300;

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
struct Victim {
    _folder: tempfile::TempDir,
    file: PathBuf,
    ledger: Ledger,
    random: Random,
    starts: u64,
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_overtaken_by_kill_9() {
    let measured = Measured::begin("kill");
    let (seed, kills) = (seed(), number("SERIATIM_KILLS").unwrap_or(KILLS));
    let mut victim = Victim::new(seed);
    for kill in 1..=kills {
        victim.live(Role::Worker);
        if kill % VERIFIED_EVERY == 0 {
            victim.verify();
        }
        if kill % 1_000 == 0 {
            println!("{kill} kills in {:?}: {:?}", measured.elapsed(), victim.ledger.tallies);
        }
        assert_eq!(victim.ledger.findings.total(), 0, "SERIATIM_SEED={seed}: {}", victim.ledger.findings);
    }
    victim.drain();
    victim.verify();
    println!("{kills} kills: {:?}", victim.ledger.tallies);
    measured.end(kills, victim.ledger.findings.total());
    assert_eq!(victim.ledger.findings.total(), 0, "SERIATIM_SEED={seed}: {}", victim.ledger.findings);
}

#[test]
fn a_send_acknowledged_before_its_commit_is_found_lost() {
    let kills = kill_until(Role::HastySender, Verdict::Lost);
    println!("LOST after {kills} kill(s)");
}

#[test]
fn a_settle_acknowledged_before_its_commit_is_found_doubled() {
    let kills = kill_until(Role::HastySettler, Verdict::Doubled);
    println!("DOUBLED after {kills} kill(s)");
}

/// Kills a lying process again and again until the ledger has seen through it.
fn kill_until(role: Role, verdict: Verdict) -> u64 {
    let seed = seed();
    let mut victim = Victim::new(seed);
    for kill in 1..=KILLS_OF_A_LIAR_MAX {
        victim.live(role);
        if victim.ledger.findings.has(verdict) {
            return kill;
        }
    }
    panic!(
        "SERIATIM_SEED={seed}: {role:?} was killed {KILLS_OF_A_LIAR_MAX} times: {}",
        victim.ledger.findings
    )
}

impl Victim {
    fn new(seed: u64) -> Victim {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("victim.redb");
        Victim { _folder: folder, file, ledger: Ledger::new(seed), random: Random::new(seed), starts: 0 }
    }

    /// One life of a process, from its start to its kill.
    fn live(&mut self, role: Role) {
        let moment = self.draw();
        let mut process = self.start(role);
        match moment {
            Moment::Start(after) => self.follow_for(&mut process, after),
            Moment::Lines(lines, after) => {
                let mut left = lines;
                while left > 0 {
                    let said = process.hear().expect("it works until it is killed");
                    left -= u64::from(!matches!(said, Said::Found(..)));
                    self.hear(&mut process, said);
                }
                self.follow_for(&mut process, after);
            }
        }
        process.kill();
        while let Some(said) = process.hear() {
            self.hear(&mut process, said);
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
                Heard::Said(said) => self.hear(process, said),
                Heard::Nothing => return,
                Heard::End => panic!("it works until it is killed"),
            }
        }
    }

    fn hear(&mut self, process: &mut Process, said: Said) {
        let has_looked = matches!(said, Said::Looked);
        self.ledger.hear(said);
        if has_looked {
            process.tell(&self.ledger.plan(&mut self.random));
        }
    }

    /// Lets a process handle all that is left, and end in good order.
    fn drain(&mut self) {
        let mut process = self.start(Role::Drainer);
        while let Some(said) = process.hear() {
            self.hear(&mut process, said);
        }
        assert!(process.has_ended_well(), "it has handled everything");
    }

    fn verify(&self) {
        let found = seriatim::verify(&self.file, |_| {}).expect("the file can be looked at");
        assert!(found.is_sound(), "SERIATIM_SEED={}: {:?}", self.ledger.seed, found.damages);
    }
}
