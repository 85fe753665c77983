//! Seeds by the thousand, and what is printed of them.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::Xxh3;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::tests::crash::setting::number;
use crate::engine::tests::simulation::world::World;

/// Threads that play seeds.
const THREADS: usize = 2;
/// How many failing seeds are told of; then it ends.
const FAILURES_MAX: usize = 3;
/// How many lines of a failing story are printed.
const STORY_LINES: usize = 6000;

/// Plays one seed; what went wrong, with the story if that is wanted.
fn play(seed: u64, is_stored: bool, is_told: bool) -> Option<String> {
    let mut world = World::new(seed, is_stored);
    world.story = is_told.then(Vec::new);
    let found = catch_unwind(AssertUnwindSafe(|| world.run()));
    let wrong = match found {
        Ok(Ok(())) => return None,
        Ok(Err(wrong)) => wrong,
        Err(panic) => crate::engine::store::caught::panic_text(&*panic),
    };
    let story = world.story.unwrap_or_default();
    let last = story.iter().skip(story.len().saturating_sub(STORY_LINES));
    let lines: String = last.map(|line| format!("{}\n", short(line))).collect();
    Some(format!("{lines}{wrong}"))
}

/// A line without what is the same in all of them.
fn short(line: &str) -> String {
    const NOISE: [&str; 8] = [
        "headers: Headers { subject: None, content_type: None, correlation_id: None, reply_to: None, properties: {} }, ",
        "SequenceNumber",
        "Timestamp",
        ", properties: {}",
        "00000000-",
        "0000-0000-0000-",
        "time_to_live: None, ",
        "kept_back: None, ",
    ];
    NOISE.iter().fold(line.to_owned(), |line, noise| line.replace(noise, ""))
}

/// Prints what a machine can read.
fn print(name: &str, count: u64, seconds: f64, failures: u64) {
    println!(
        "reliability: {{\"name\":\"{name}\",\"counts\":{{\"seeds of 200 steps\":{count}}},\"seconds\":{seconds:.1},\"failures\":{failures}}}"
    );
}

/// Plays many seeds on several threads, and fails with the ones that replay what went wrong.
fn play_all(name: &str, seeds: std::ops::Range<u64>, is_stored: bool) {
    let clock = SystemClock::default();
    let (next, failures) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || failures.lock().expect("nobody panics with it").len() >= FAILURES_MAX {
                return;
            }
            if let Some(wrong) = play(seed, is_stored, false) {
                failures.lock().expect("nobody panics with it").push((seed, wrong));
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("nobody panics with it");
    let (count, seconds) = (next.into_inner().min(seeds.end) - seeds.start, clock.elapsed().as_secs_f64());
    print(&name.replace('_', " "), count, seconds, failures.len() as u64);
    for (seed, wrong) in &failures {
        println!("SERIATIM_SEED={seed} cargo test --lib {name}\n{wrong}\n");
    }
    if let Some((seed, _)) = failures.first() {
        println!("{}", play(*seed, is_stored, true).unwrap_or_default());
    }
    assert!(failures.is_empty(), "SERIATIM_SEED={} cargo test --lib {name}", failures[0].0);
}

/// The seeds to play: the one that is to be replayed, or as many as are wanted.
fn seeds(variable: &str, default: u64) -> std::ops::Range<u64> {
    let first = number("SERIATIM_FIRST_SEED").unwrap_or(0);
    match number("SERIATIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number(variable).unwrap_or(default),
    }
}

#[test]
fn simulation() {
    play_all("simulation", seeds("SERIATIM_SIMULATION_SEEDS", 100), false);
}

#[test]
fn simulation_on_a_disk() {
    play_all("simulation_on_a_disk", seeds("SERIATIM_SIMULATION_DISK_SEEDS", 20), true);
}

/// The numbers of what one seed leads to.
fn digests(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed, false);
    world.digest = Some(Xxh3::default());
    let _ = world.run();
    world.digests()
}

/// I15: a seed that fails can be replayed, because a seed leads to the same answers and the same rows every time.
#[test]
fn a_seed_leads_to_the_same_every_time() {
    let clock = SystemClock::default();
    let all = seeds("SERIATIM_SIMULATION_TWICE", 15);
    let count = all.end - all.start;
    let (mut before, mut failures) = (None, 0);
    for seed in all {
        let digests = (digests(seed), digests(seed));
        failures += u64::from(digests.0 != digests.1);
        assert_ne!(Some(digests.0), before, "SERIATIM_SEED={seed}: another seed leads to something else");
        before = Some(digests.0);
    }
    print("a seed leads to the same every time", count, clock.elapsed().as_secs_f64(), failures);
    assert_eq!(failures, 0, "some seeds lead to something else when they are played again");
}
