//! SIGSTOP past the lock: a holder that was stopped and goes on is refused exactly when its lock has run out, somebody
//! else has what it held, and nothing is settled twice.
//!
//! Many processes are stopped side by side, because the shortest lock is a second. `SERIATIM_STOPS=n` sets how often.

use std::time::Duration;

use crate::kill::ledger::Ledger;
use crate::kill::process::Heard;
use crate::kill::process::Process;
use crate::kill::reliability::Measured;
use crate::kill::reliability::number;
use crate::kill::reliability::seed;
use crate::kill::said::Said;
use crate::kill::said::Word;
use crate::kill::verdict::Verdict;
use crate::kill::voice::Role;
use crate::kill::voice::Task;
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
    /// Deliveries of this round that somebody else was given.
    taken_over: u32,
    /// Settles of this round that were refused.
    refused: u32,
    /// How often a holder was refused, and how often not.
    totals: (u32, u32),
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
    let totals =
        zombies.iter().fold((0, 0), |sum, zombie| (sum.0 + zombie.totals.0, sum.1 + zombie.totals.1));
    println!("{} holders were refused, {} were in time", totals.0, totals.1);
    measured.end(rounds * ZOMBIES, failures);
    for zombie in &zombies {
        assert_eq!(zombie.ledger.findings.total(), 0, "SERIATIM_SEED={seed}: {}", zombie.ledger.findings);
    }
    assert!(totals.0 > 0 && totals.1 > 0, "SERIATIM_SEED={seed}: both sides of the lock are tried");
}

/// One round: all take hold, all are stopped, each for its own time, and each believes what it likes.
fn stop_all(zombies: &mut [Zombie], random: &mut Random) {
    zombies.iter_mut().for_each(|zombie| zombie.hold(draw(random)));
    let measured = Measured::begin("round");
    zombies.iter().for_each(|zombie| zombie.process.stop());
    zombies.sort_by_key(|zombie| zombie.lasts);
    for zombie in zombies.iter_mut() {
        let left = zombie.lasts.saturating_sub(measured.elapsed());
        assert!(matches!(zombie.process.hear_within(left), Heard::Nothing), "who is stopped says nothing");
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
            taken_over: 0,
            refused: 0,
            totals: (0, 0),
        }
    }

    /// Lets it take hold of this round's messages.
    fn hold(&mut self, lasts: Duration) {
        (self.lasts, self.taken_over, self.refused) = (lasts, 0, 0);
        self.process.tell(&Word::Hold);
        let mut held = 0;
        while held < HELD {
            let said = self.process.hear().expect("it lives until it is dropped");
            if let Said::Received { seen, .. } = &said {
                held += 1;
                assert!(
                    seen.iter().all(|seen| seen.delivery_count == 1),
                    "it is the first to be given these"
                );
            }
            self.ledger.hear(said);
        }
    }

    /// Hears how the round ended.
    fn end_round(&mut self) {
        let before = self.ledger.tallies;
        loop {
            let said = self.process.hear().expect("it lives until it is dropped");
            let is_over = matches!(said, Said::RoundOver);
            self.note(&said);
            self.ledger.hear(said);
            if is_over {
                break;
            }
        }
        let settles = self.ledger.tallies.settles - before.settles;
        let is_even = self.taken_over == self.refused && settles == u64::from(HELD);
        if !is_even {
            let detail = format!(
                "{} were refused, {} taken over, {settles} settled of {HELD}",
                self.refused, self.taken_over
            );
            self.ledger.findings.note(Verdict::Doubled, "the round", &detail);
        }
        self.totals.0 += self.refused;
        self.totals.1 += HELD - self.refused;
    }

    fn note(&mut self, said: &Said) {
        match said {
            Said::Received { seen, .. } => {
                self.taken_over += 1;
                for seen in seen.iter().filter(|seen| seen.delivery_count != 2) {
                    let detail = format!("its count is {} after one that was lost", seen.delivery_count);
                    self.ledger.findings.note(Verdict::Uncounted, &seen.message_id, &detail);
                }
            }
            Said::Refused { .. } => self.refused += 1,
            _ => {}
        }
    }
}
