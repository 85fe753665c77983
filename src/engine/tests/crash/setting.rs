//! How the tests of this room are set: the store's options, how much is tried, and what is printed of it.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Once;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::store::StoreOptions;

/// How the stores of one test are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) strict: bool,
    /// Whether pages have so little memory that they go to the disk before their commit.
    pub(crate) cramped: bool,
}

impl Setting {
    /// The options of every store of these tests.
    pub(crate) fn options(self) -> StoreOptions {
        let cache_bytes = if self.cramped { 16 * 1024 } else { 1024 * 1024 };
        // Generations so small that a story fills several, and flushes are under way at most of its cuts.
        let (generation_bytes, generations) = (2 * 1024, 1);
        StoreOptions {
            cache_bytes,
            strict: self.strict,
            generation_bytes,
            generations,
            ..StoreOptions::default()
        }
    }

    /// The same with memory enough: to look at a file goes faster so.
    pub(crate) fn roomy(self) -> Setting {
        Setting { cramped: false, ..self }
    }
}

/// Does something that may panic, and says nothing of the panic but that there was one.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                loud(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    done.ok()
}

/// How much to try: the variable's number, or the default.
pub(crate) fn volume(variable: &str, default: u64) -> u64 {
    number(variable).unwrap_or(default)
}

/// Behind each how many operations the power is cut, where one is much like the next.
pub(crate) fn cuts_every() -> usize {
    usize::try_from(volume("SERIATIM_CUTS_EVERY", 1).max(1)).expect("a small number")
}

/// The seeds to try: the one that is to be replayed, or all from 0.
pub(crate) fn seeds() -> impl Iterator<Item = u64> {
    let only = number("SERIATIM_SEED");
    let first = number("SERIATIM_FIRST_SEED").unwrap_or(0);
    only.unwrap_or(first)..=only.unwrap_or(u64::MAX)
}

/// The number that a variable of the environment says, if it says one.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text}")))
}

/// What a test has tried and found, to be printed in one line.
pub(crate) struct Tried {
    name: &'static str,
    clock: SystemClock,
    counts: Vec<(&'static str, u64)>,
    pub(crate) failures: Vec<String>,
}

impl Tried {
    pub(crate) fn new(name: &'static str) -> Tried {
        Tried { name, clock: SystemClock::default(), counts: Vec::new(), failures: Vec::new() }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub(crate) fn add(&mut self, what: &'static str, more: u64) {
        match self.counts.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += more,
            None => self.counts.push((what, more)),
        }
    }

    pub(crate) fn of(&self, what: &str) -> u64 {
        self.counts.iter().find(|(name, _)| *name == what).map_or(0, |(_, count)| *count)
    }

    /// Prints the line, which `tests/reliability/run.py` collects.
    pub(crate) fn print(&self) {
        let counts: Vec<String> =
            self.counts.iter().map(|(what, count)| format!("\"{what}\":{count}")).collect();
        let (name, counts, failures) = (self.name, counts.join(","), self.failures.len());
        let seconds = self.clock.elapsed().as_secs_f64();
        println!(
            "reliability: {{\"name\":\"{name}\",\"counts\":{{{counts}}},\"seconds\":{seconds:.1},\"failures\":{failures}}}"
        );
    }

    /// Prints the line, and fails if anything was found.
    pub(crate) fn finish(self) {
        self.print();
        let shown: Vec<&str> = self.failures.iter().take(20).map(String::as_str).collect();
        assert!(self.failures.is_empty(), "{}:\n{}", self.name, shown.join("\n"));
    }
}
