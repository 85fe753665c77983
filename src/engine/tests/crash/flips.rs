//! One bit on the disk is not what was written: it is refused or does no harm, and is never served.

use crate::engine::tests::crash::cut::Cutter;
use crate::engine::tests::crash::cut::Mode;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::image::PAGE;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::run::Reopened;
use crate::engine::tests::crash::run::Run;
use crate::engine::tests::crash::run::reopen;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::crash::setting::Tried;
use crate::engine::tests::crash::setting::seeds;
use crate::engine::tests::crash::setting::volume;
use crate::engine::tests::crash::story::Story;

/// Turns of one story.
const TURNS: usize = 16;
/// Flips of one story.
const FLIPS: u64 = 200;
/// Of a hundred flips, so many are in what redb writes first of all: its header and commit slots.
const HEADER_PERCENT: u64 = 5;
/// How long that is.
const HEADER_BYTES: usize = 320;

/// The bit by which redb tells which of its two commit slots is the last one. Nothing in a file that was not closed tells
/// a flip of it from a power cut just before it was to be set, so it alone can take back the last commit in strict mode.
const LAST_COMMIT_BIT: usize = 9 * 8;

/// How the file was left before the bit flipped.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    Closed,
    Unclosed,
}

/// A file that was left after the last turn, and the ways in which it may be found.
struct Relic<'a> {
    story: &'a Story,
    image: Image,
    setting: Setting,
    left: Left,
    /// The epoch the next opening must at least have.
    epoch_min: u32,
    /// Whether every page is checked before any is believed.
    verify: bool,
    /// Whether the last commit may be taken for one that was cut off.
    may_roll_back: bool,
}

impl<'a> Relic<'a> {
    fn new(story: &'a Story, setting: Setting, left: Left, verify: bool) -> Relic<'a> {
        let run = Run::of_story(story, setting);
        let ops = match left {
            Left::Closed => run.log.len(),
            Left::Unclosed => run.ops_before_close(),
        };
        let random = &mut Random::new(0);
        let mut cutter = Cutter::new(run.base.clone(), &run.log[..ops]);
        while cutter.advance(random) {}
        let may_roll_back = left == Left::Unclosed && !setting.strict;
        let epoch_min = run.allowed(ops).epoch_min;
        Relic {
            story,
            image: cutter.image(Mode::All, random),
            setting,
            left,
            epoch_min,
            verify,
            may_roll_back,
        }
    }

    /// A bit of what is used.
    fn pick(&self, random: &mut Random) -> usize {
        let below = |random: &mut Random, end: usize| {
            usize::try_from(random.below(end as u64)).expect("a small number")
        };
        let used = self.image.used_pages();
        let byte = match random.chance(HEADER_PERCENT) {
            true => below(random, HEADER_BYTES),
            false => used[below(random, used.len())] * PAGE + below(random, PAGE),
        };
        byte * 8 + below(random, 8)
    }

    fn flip(&self, bit: usize, tried: &mut Tried) {
        let mut image = self.image.clone();
        image.flip(bit);
        let (what, may_be) = self.judge(image, bit);
        tried.count("flips");
        tried.count(what);
        if !may_be {
            let seed = self.story.seed;
            tried.failures.push(format!("SERIATIM_SEED={seed}: bit {bit} flipped: {what}"));
        }
    }

    /// What became of a flipped bit, and whether that may be.
    fn judge(&self, image: Image, bit: usize) -> (&'static str, bool) {
        let may_roll_back = self.may_roll_back || (self.left == Left::Unclosed && bit == LAST_COMMIT_BIT);
        let states = &self.story.states;
        let last = states.last().expect("a story has a beginning");
        let before = states.iter().rev().find(|state| *state != last).expect("a story changes something");
        match reopen(image, self.setting, self.verify) {
            Reopened::Refused(_) => ("refused", true),
            Reopened::Panicked => ("panicked", false),
            Reopened::Served { state, epoch } if state == *last && epoch >= self.epoch_min => {
                ("harmless", true)
            }
            // The last commit may be that of the last opening, which changes the epoch alone.
            Reopened::Served { state, .. } if state == *before || state == *last => {
                ("rolled_back", may_roll_back)
            }
            Reopened::Served { .. } => ("wrong", false),
        }
    }
}

fn flip_bits(name: &'static str, strict: bool, left: Left, verify: bool) {
    let mut tried = Tried::new(name);
    let flips = volume("SERIATIM_BIT_FLIPS", 300);
    for seed in seeds() {
        flip_bits_of(seed, Setting { strict, cramped: false }, (left, verify), &mut tried);
        if tried.of("flips") >= flips {
            break;
        }
    }
    tried.finish();
}

fn flip_bits_of(seed: u64, setting: Setting, (left, verify): (Left, bool), tried: &mut Tried) {
    let (story, random) = (Story::new(seed, TURNS), &mut Random::new(seed));
    let relic = Relic::new(&story, setting, left, verify);
    for _ in 0..FLIPS {
        let bit = relic.pick(random);
        relic.flip(bit, tried);
    }
}

#[test]
fn a_flipped_bit_takes_back_at_most_the_opening_when_nothing_was_done_since() {
    let mut tried = Tried::new("bit flips, opened last");
    flip_bits_of(38, Setting { strict: false, cramped: false }, (Left::Unclosed, true), &mut tried);
    tried.finish();
}

#[test]
fn no_bit_of_the_header_is_believed_when_it_flipped() {
    let mut tried = Tried::new("bit flips, header");
    for seed in seeds().take(usize::try_from(volume("SERIATIM_HEADERS", 1)).expect("a small number")) {
        let story = Story::new(seed, 2);
        for (strict, left) in [(false, Left::Closed), (true, Left::Closed), (true, Left::Unclosed)] {
            let relic = Relic::new(&story, Setting { strict, cramped: false }, left, true);
            (0..HEADER_BYTES * 8).for_each(|bit| relic.flip(bit, &mut tried));
        }
    }
    tried.finish();
}

#[test]
fn a_flipped_bit_of_a_closed_file_is_never_served() {
    flip_bits("bit flips, closed", false, Left::Closed, true);
}

#[test]
fn a_flipped_bit_of_a_file_that_was_not_closed_is_never_served() {
    flip_bits("bit flips, not closed", false, Left::Unclosed, true);
}

#[test]
fn a_flipped_bit_rolls_nothing_back_in_strict_mode() {
    flip_bits("bit flips, strict", true, Left::Unclosed, true);
}

#[test]
#[ignore = "redb believes its pages: without a look at all of them first, damage is served, panics or aborts"]
fn a_flipped_bit_is_never_served_even_when_nothing_was_verified() {
    flip_bits("bit flips, closed, unverified", false, Left::Closed, false);
}
