//! SIGSTOP past the lock: a holder that was stopped and goes on is refused exactly when its lock has run out, somebody
//! else has what it held, and nothing is settled twice.
//!
//! Many processes are stopped side by side, because the shortest lock is a second. `SERIATIM_STOPS=n` sets how often.

use std::time::Duration;

use crate::kill::ledger::Ledger;
use crate::kill::output_lines::Role;
use crate::kill::output_lines::Task;
use crate::kill::process::Heard;
use crate::kill::process::Process;
use crate::kill::reliability::Measured;
use crate::kill::reliability::number;
use crate::kill::reliability::seed;
use crate::kill::report::Report;
use crate::kill::report::Word;
use crate::kill::verdict::Verdict;
use crate::kill::zombie::HELD;
use crate::kill::zombie::LOCK_MS;
use crate::random::Random;

const STOPS: u64 = 120;

/// Processes that are stopped side by side.
const ZOMBIES: u64 = 20;

/// How far around the end of the lock a stop ends, in milliseconds.
const AROUND_MS: u64 = 30;

/// A process that is stopped, and its ledger.
struct Zombie {
    process: Process,
    ledger: Ledger,
    /// How long the next stop is to last, from the hand-out.
    lasts: Duration,
    round: Round,
    /// Holders of all rounds that were refused.
    refused: u32,
    /// Holders of all rounds that were in time.
    in_time: u32,
}

/// What happened in one round.
#[derive(Clone, Copy, Default)]
struct Round {
    /// Deliveries that somebody else was given.
    taken_over: u32,
    settled: u32,
    refused: u32,
}

#[test]
fn a_holder_that_was_stopped_past_its_lock_settles_nothing() {
    let measured = Measured::begin("stop");
    let (seed, stops) = (seed(), number("SERIATIM_STOPS").unwrap_or(STOPS));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut random = Random::new(seed);
    let mut zombies: Vec<Zombie> = (0..ZOMBIES)
        .map(|index| {
            Zombie::new(Task {
                role: Role::Zombie,
                file: folder.path().join(format!("{index}.redb")),
                seed,
                start: index,
            })
        })
        .collect();
    let rounds = stops.div_ceil(ZOMBIES);
    for _ in 0..rounds {
        stop_all(&mut zombies, &mut random);
    }
    let failures = zombies.iter().map(|zombie| zombie.ledger.findings.total()).sum();
    let refused: u32 = zombies.iter().map(|zombie| zombie.refused).sum();
    let in_time: u32 = zombies.iter().map(|zombie| zombie.in_time).sum();
    println!("{refused} holders were refused, {in_time} were in time");
    measured.end(rounds * ZOMBIES, failures);
    for zombie in &zombies {
        assert_eq!(zombie.ledger.findings.total(), 0, "SERIATIM_SEED={seed}: {}", zombie.ledger.findings);
    }
    assert!(refused > 0 && in_time > 0, "SERIATIM_SEED={seed}: both sides of the lock are tried");
}

/// One round: all take hold, all are stopped, each for its own time, and each believes what it likes.
fn stop_all(zombies: &mut [Zombie], random: &mut Random) {
    zombies.iter_mut().for_each(|zombie| zombie.hold(draw(random)));
    let measured = Measured::begin("round");
    zombies.iter().for_each(|zombie| zombie.process.stop());
    zombies.sort_by_key(|zombie| zombie.lasts);
    for zombie in zombies.iter_mut() {
        zombie.wait(&measured);
        zombie.process.go_on();
        zombie.process.tell(&Word::Settle);
    }
    zombies.iter_mut().for_each(Zombie::end_round);
}

/// How long a stop lasts: past the lock, well before its end, or close to it.
fn draw(random: &mut Random) -> Duration {
    Duration::from_millis(match random.below(10) {
        0..=4 => LOCK_MS + random.below(200),
        5..=7 => random.below(LOCK_MS - 100),
        _ => LOCK_MS - AROUND_MS + random.below(2 * AROUND_MS),
    })
}

impl Zombie {
    fn new(task: Task) -> Zombie {
        Zombie {
            process: Process::start(&task),
            ledger: Ledger::new(task.seed),
            lasts: Duration::ZERO,
            round: Round::default(),
            refused: 0,
            in_time: 0,
        }
    }

    /// Lets it take hold of this round's messages.
    fn hold(&mut self, lasts: Duration) {
        (self.lasts, self.round) = (lasts, Round::default());
        self.process.tell(&Word::Hold);
        let mut held = 0;
        while held < HELD {
            let said = self.process.hear().expect("it lives until it is dropped");
            held += u32::from(matches!(said, Report::Received { .. }));
            self.ledger.hear(said);
        }
    }

    /// Waits until its stop is over. What is heard meanwhile was said before.
    fn wait(&mut self, measured: &Measured) {
        while let Some(left) = self.lasts.checked_sub(measured.elapsed()) {
            match self.process.hear_within(left) {
                Heard::Report(said) => self.note(said),
                Heard::Nothing => return,
                Heard::End => panic!("it lives until it is dropped"),
            }
        }
    }

    /// Hears how the round ended.
    fn end_round(&mut self) {
        loop {
            let said = self.process.hear().expect("it lives until it is dropped");
            let is_over = matches!(said, Report::RoundOver);
            self.note(said);
            if is_over {
                break;
            }
        }
        let Round { taken_over, refused, settled } = self.round;
        if taken_over != refused || settled != HELD {
            let detail =
                format!("{refused} were refused, {taken_over} taken over, {settled} of {HELD} settled");
            self.ledger.findings.note(Verdict::Doubled, "the round", &detail);
        }
        self.refused += refused;
        self.in_time += HELD.saturating_sub(refused);
    }

    fn note(&mut self, said: Report) {
        match &said {
            Report::Received { .. } => self.round.taken_over += 1,
            Report::Settled { .. } => self.round.settled += 1,
            Report::Refused { .. } => self.round.refused += 1,
            _ => {}
        }
        self.ledger.hear(said);
    }
}
