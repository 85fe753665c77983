//! Askers, the hot loop and the thread that commits, in thousands of schedules; how many, `SERIATIM_SCHEDULES` says.

use std::sync::atomic::Ordering;

use shuttle::rand::RngCore;

use super::house::House;
use super::house::ask_backup;
use super::house::ask_command;
use super::house::ask_look;
use super::threads::Planted;
use super::threads::spawn;

const SCHEDULES: usize = 2_000;

/// Preemptions at chosen points that a schedule may have, for the scheduler that looks for rare ones.
const DEPTH: usize = 3;

fn schedules() -> usize {
    let number = std::env::var("SERIATIM_SCHEDULES").ok().and_then(|text| text.parse().ok());
    number.unwrap_or(SCHEDULES)
}

fn in_every_schedule(story: fn()) {
    shuttle::check_random(story, schedules());
    shuttle::check_pct(story, schedules(), DEPTH);
}

/// One of the first commits, chosen with the schedule.
fn any_commit() -> u64 {
    1 + shuttle::rand::thread_rng().next_u64() % 5
}

/// Three askers of two commands each, one of whom looks as well; returns when all have their answers.
fn everybody_asks(house: &House) {
    let askers: Vec<_> = (0..3)
        .map(|number| {
            let inbox = house.inbox.clone();
            let work = move || {
                let disk = inbox.disk.clone();
                let mut last = 0;
                for _ in 0..2 {
                    // Whoever is refused asks no more, so that nobody but a failed commit wakes the hot loop.
                    let Some(position) = ask_command(&inbox) else { return };
                    assert!(position <= disk.durable(), "an answer leaves after its commit");
                    assert!(position >= last, "whoever asks later is answered of a later state");
                    last = position;
                    if number == 0 {
                        let seen = ask_look(&inbox).unwrap_or(last);
                        assert!(seen <= disk.durable(), "a look shows what is on disk");
                        assert!(seen >= last, "a look shows what was acknowledged before");
                    }
                }
                if number == 1 {
                    let copied = ask_backup(&inbox).unwrap_or(last);
                    assert!(copied >= last, "a backup has what was acknowledged before");
                }
            };
            spawn("asker", work).unwrap()
        })
        .collect();
    for asker in askers {
        asker.join().unwrap();
    }
}

fn story(fails_at: u64, faults: Planted) {
    let house = House::new(fails_at, faults);
    everybody_asks(&house);
    let disk = house.inbox.disk.clone();
    // After a failed commit the hot loop ends by itself, although nobody asks any more.
    if !disk.failed.load(Ordering::SeqCst) {
        house.inbox.post_at_once(super::threads::Request::Close);
    }
    house.thread.join().unwrap();
    if fails_at > 0 {
        assert!(disk.durable() < fails_at, "nothing is committed after a failed commit");
        let let_out = disk.let_out.lock().unwrap();
        assert!(let_out.iter().all(|position| *position < fails_at), "nothing of it is acknowledged");
    }
}

#[test]
fn every_answer_leaves_in_order_and_after_its_commit() {
    in_every_schedule(|| story(0, Planted::None));
}

#[test]
fn after_a_failed_commit_nothing_is_acknowledged_and_everybody_is_answered() {
    in_every_schedule(|| story(any_commit(), Planted::None));
}

#[test]
#[should_panic(expected = "an answer leaves after its commit")]
fn a_disk_that_lies_is_noticed() {
    shuttle::check_random(|| story(0, Planted::LyingDisk), schedules());
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_lost_is_noticed() {
    shuttle::check_random(|| story(any_commit(), Planted::LostWake), schedules());
}
