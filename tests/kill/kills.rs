//! kill -9 at random moments: the process is started again on the same file, and the ledger compares.
//!
//! `SERIATIM_SEED=n` draws the same loads and the same moments, as far as the machine's timing allows;
//! `SERIATIM_KILLS=n` sets how often it is killed.

use crate::kill::output_lines::Role;
use crate::kill::reliability::Measured;
use crate::kill::reliability::number;
use crate::kill::reliability::seed;
use crate::kill::verdict::Verdict;
use crate::kill::victim::Victim;

const KILLS: u64 = 60;

/// A process that lies is killed at most so often before its lie must be seen.
const KILLS_OF_A_LIAR_MAX: u64 = 100;

/// How often the file is verified between two processes.
const VERIFIED_EVERY: u64 = 50;

#[test]
fn nothing_acknowledged_is_lost_doubled_or_overtaken_by_kill_9() {
    let measured = Measured::begin("kill");
    let (seed, kills) = (seed(), number("SERIATIM_KILLS").unwrap_or(KILLS));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut victim = Victim::new(folder.path(), seed);
    for kill in 1..=kills {
        victim.live(Role::Worker);
        if kill % VERIFIED_EVERY == 0 {
            victim.verify();
        }
        if kill % 1_000 == 0 {
            println!("{kill} kills in {:?}: {:?}", measured.elapsed(), victim.ledger.counters);
        }
        victim.must_be_innocent();
    }
    victim.drain();
    victim.verify();
    println!("{kills} kills: {:?}", victim.ledger.counters);
    measured.end(kills, victim.ledger.findings.total());
    victim.must_be_innocent();
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut victim = Victim::new(folder.path(), seed);
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
