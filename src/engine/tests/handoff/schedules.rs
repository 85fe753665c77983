//! Askers, the hot loop and the thread that commits, in schedule after schedule.
//!
//! `SERIATIM_SCHEDULES=n` sets how many in all, `SERIATIM_SEED=n` which ones; `SERIATIM_SCHEDULE=text` replays one that has
//! failed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use shuttle::Config;
use shuttle::Runner;
use shuttle::future::block_on;
use shuttle::rand::RngCore;
use shuttle::scheduler::PctScheduler;
use shuttle::scheduler::RandomScheduler;
use shuttle::scheduler::ReplayScheduler;
use shuttle::scheduler::Scheduler;
use tokio::sync::broadcast;
use tokio::sync::oneshot;

use super::askers::Asker;
use super::commits::Commits;
use super::disk::Committer;
use super::disk::Disk;
use super::disk::Planted;
use super::hot_loop::HotLoop;
use super::inbox::Request;
use super::inbox::inbox;
use super::threads::spawn;
use crate::clock::SystemClock;
use crate::engine::meter::CommitMeter;
use crate::error::Unavailable;

const SCHEDULES: usize = 12_000;

/// How many runs share the schedules: two stories, each with two schedulers.
const RUNS: usize = 4;

/// Preemptions at chosen points that a schedule may have, for the scheduler that looks for rare ones.
const DEPTH: usize = 3;

/// Bytes of a thread's stack: unoptimised, a command and its answer take more than the usual 32 KiB.
const STACK_BYTES: usize = 256 * 1024;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn schedules() -> usize {
    let all = number("SERIATIM_SCHEDULES").and_then(|number| usize::try_from(number).ok());
    usize::max(all.unwrap_or(SCHEDULES) / RUNS, 1)
}

/// Runs a story in schedule after schedule.
fn run(scheduler: impl Scheduler + 'static, story: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(scheduler, config).run(story);
}

/// Runs a story in random schedules, until it fails.
fn at_random(story: fn()) {
    run(RandomScheduler::new_from_seed(number("SERIATIM_SEED").unwrap_or(0), schedules()), story);
}

#[expect(clippy::disallowed_methods, reason = "how long it took is for whoever reads the log")]
fn in_every_schedule(name: &str, story: fn()) {
    if let Ok(schedule) = std::env::var("SERIATIM_SCHEDULE") {
        return run(ReplayScheduler::new_from_encoded(&schedule), story);
    }
    let (seed, started) = (number("SERIATIM_SEED").unwrap_or(0), Instant::now());
    at_random(story);
    run(PctScheduler::new_from_seed(seed, DEPTH, schedules()), story);
    let (count, seconds) = (2 * schedules(), started.elapsed().as_secs_f64());
    println!(
        "reliability: {{\"name\":\"hand-over, {name}\",\"counts\":{{\"schedules\":{count}}},\"seconds\":{seconds:.1},\"failures\":0}}"
    );
}

/// One of the first commits, chosen with the schedule.
fn any_commit() -> u64 {
    1 + shuttle::rand::thread_rng().next_u64() % 5
}

/// What one asker does.
type Work = fn(&mut Asker) -> Result<(), Unavailable>;

/// What each of three does; whoever is refused asks no more, so that nobody but a failed commit wakes the hot loop.
const WORKS: [Work; 3] = [
    |asker| {
        asker.send(0)?;
        asker.look()?;
        asker.send(0)?;
        asker.look()
    },
    |asker| {
        asker.send(4)?;
        asker.back_up();
        asker.send(1)
    },
    |asker| {
        asker.take_and_go();
        asker.leave_and_wait();
        asker.send(3)
    },
];

/// Everybody asks at once; returns when all have their answers.
fn everybody_asks(hot_loop: &HotLoop) {
    let start = |work: Work| {
        let mut asker = Asker::new(hot_loop);
        spawn("asker", move || drop(work(&mut asker))).unwrap()
    };
    let askers = WORKS.map(start);
    for asker in askers {
        asker.join().unwrap();
    }
}

fn story(fails_at: u64, planted: Planted) {
    let hot_loop = HotLoop::new(Disk::new(fails_at, planted));
    everybody_asks(&hot_loop);
    // After a failed commit the hot loop ends by itself, although nobody asks any more.
    if !hot_loop.disk.has_failed() {
        let mut last = Asker::new(&hot_loop);
        // What was given back before the answer to the first look is done before the answer to the second.
        let looked = last.look().and_then(|()| last.look());
        let given_back = || hot_loop.disk.taken.load(Ordering::Relaxed) == 0;
        assert!(looked.is_err() || given_back(), "what nobody has received is given back");
        if looked.is_ok() {
            let (slot, closed) = oneshot::channel();
            hot_loop.inbox.post_at_once(Request::Close { slot });
            let _ = block_on(closed);
        }
    }
    hot_loop.thread.join().unwrap();
    let durable = hot_loop.disk.durable();
    assert!(fails_at == 0 || durable < fails_at, "nothing is committed after a failed commit");
}

#[test]
fn every_answer_leaves_in_order_and_after_its_commit() {
    in_every_schedule("no fault", || story(0, Planted::Nothing));
}

#[test]
fn after_a_failed_commit_nothing_is_acknowledged_and_everybody_is_answered() {
    in_every_schedule("a commit fails", || story(any_commit(), Planted::Nothing));
}

#[test]
#[should_panic(expected = "leaves after its commit")]
fn an_answer_before_its_commit_is_noticed() {
    at_random(|| story(0, Planted::EarlyAnswers));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_lost_is_noticed() {
    at_random(|| story(any_commit(), Planted::LostWakeUps));
}

#[test]
#[should_panic(expected = "what nobody has received is given back")]
fn a_hand_out_that_is_lost_is_noticed() {
    at_random(|| story(0, Planted::LostWakeUps));
}

#[test]
fn once_what_commits_is_dropped_its_thread_has_let_go_of_the_file() {
    at_random(|| {
        let (disk, (inbox, _intake), (events, _)) =
            (Arc::new(Disk::default()), inbox(), broadcast::channel(1));
        let meter = CommitMeter::new(Arc::new(SystemClock::default()));
        let committer = Committer { disk: Arc::clone(&disk) };
        drop(Commits::start(committer, inbox, events, meter).unwrap());
        assert_eq!(Arc::strong_count(&disk), 1, "whoever opens the file again is refused");
    });
}
