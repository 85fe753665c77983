//! Scripts that wait for most of their time, played beside the tests.
//!
//! Tests run as many at a time as there are cores. Where those are few, scripts that wait for locks to run out would wait one
//! after the other.

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::thread::Builder;

/// The scripts, those that take longest first.
const SCRIPTS: [&str; 14] = [
    "python/renewing.py",
    "python/settle.py",
    "python/settle_aio.py",
    "js/settle.mjs",
    "python/sessions.py",
    "js/sessions.mjs",
    "python/receiving.py",
    "js/streaming.mjs",
    "js/settled_elsewhere.mjs",
    "python/tenth_delivery.py",
    "python/deferred.py",
    "python/scheduling.py",
    "python/storage.py",
    "python/send.py",
];

/// How many are played at a time, beside the tests: each is a daemon and a program, and their locks last a second.
const AT_A_TIME: usize = 3;

type Ended = Result<(), Box<dyn Any + Send>>;

#[derive(Default)]
struct Early {
    waiting: Vec<&'static str>,
    ended: HashMap<&'static str, Ended>,
    running: Vec<&'static str>,
}

static EARLY: OnceLock<Mutex<Early>> = OnceLock::new();
static CHANGED: Condvar = Condvar::new();

/// Plays a script, or waits for its end if it is played already; panics as it does.
pub(crate) fn play_early(script: &str, play: fn(&str)) {
    let mut early = early(play);
    if let Some(at) = early.waiting.iter().position(|waiting| *waiting == script) {
        early.waiting.remove(at);
    } else {
        while early.running.contains(&script) {
            early = CHANGED.wait(early).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(ended) = early.ended.remove(script) {
            drop(early);
            return ended.unwrap_or_else(|panic| fail(script, panic));
        }
    }
    drop(early);
    play(script);
}

/// Fails as a script did, with the reason where the test that wanted it shows it: the thread that played it belonged to another.
fn fail(script: &str, panic: Box<dyn Any + Send>) {
    let reason = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    panic!("{script}: {}", reason.unwrap_or("it panicked without a reason"));
}

/// What is played early; begun when it is first asked for, unless only some tests are wanted.
fn early(play: fn(&str)) -> MutexGuard<'static, Early> {
    let early = EARLY.get_or_init(|| {
        let is_all =
            std::env::args().skip(1).all(|argument| argument.starts_with("--") || argument == "sdk::");
        if is_all {
            for number in 0..AT_A_TIME {
                let thread = Builder::new().name(format!("early-{number}"));
                thread.spawn(move || while play_next(play) {}).expect("a thread can be started");
            }
        }
        let waiting = if is_all { SCRIPTS.into_iter().rev().collect() } else { Vec::new() };
        Mutex::new(Early { waiting, ..Early::default() })
    });
    early.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays the next script that waits; false when none does.
fn play_next(play: fn(&str)) -> bool {
    let mut state = early(play);
    let Some(script) = state.waiting.pop() else { return false };
    state.running.push(script);
    drop(state);
    let ended = catch_unwind(AssertUnwindSafe(|| play(script)));
    let mut state = early(play);
    state.running.retain(|running| *running != script);
    state.ended.insert(script, ended);
    CHANGED.notify_all();
    true
}
