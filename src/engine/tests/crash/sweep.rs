//! The power is cut behind every operation, and again while the file recovers from that.

use std::collections::VecDeque;

use crate::engine::tests::crash::cut::Cutter;
use crate::engine::tests::crash::cut::Mode;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::play::State;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::run::Allowed;
use crate::engine::tests::crash::run::Reopened;
use crate::engine::tests::crash::run::Run;
use crate::engine::tests::crash::run::lines_of_image;
use crate::engine::tests::crash::run::reopen;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::crash::setting::Tried;
use crate::engine::tests::crash::setting::seeds;
use crate::engine::tests::crash::setting::volume;
use crate::engine::tests::crash::story::Story;

/// Turns that are played after a recovery.
const TURNS_RESUMED: usize = 3;
/// One in so many reopenings verifies every page first.
const VERIFIED_IN: u64 = 8;
/// After one in so many reopenings, the story goes on.
const RESUMED_IN: u64 = 24;
/// Of these, one in so many is cut again at every operation.
const CUT_AGAIN_IN: u64 = 6;

/// So many of the last images are kept: those that one cut leaves, and the cut before it.
const SERVED_MAX: usize = 2 * Mode::EVERY.len();

/// What is swept, and how.
struct Sweep<'a> {
    story: &'a Story,
    setting: Setting,
    random: Random,
    tried: &'a mut Tried,
    seed: u64,
    /// What was served of the last images, so that one that is left again is not opened again.
    served: VecDeque<(Image, State, u32)>,
}

impl Sweep<'_> {
    /// Cuts a run of the whole story behind every operation, in every mode.
    fn cut_everywhere(&mut self, run: &Run, mut cutter: Cutter<'_>) {
        for ops in 0..=run.log.len() {
            self.tried.count("points");
            let modes = if cutter.is_settled() { &Mode::EVERY[..1] } else { &Mode::EVERY };
            for mode in modes {
                let image = cutter.image(*mode, &mut self.random);
                let what = format!("cut behind {ops}, {mode:?}");
                let served = self.look(&image, &run.allowed(ops), &what);
                if let Some(state) = served
                    && self.random.below(RESUMED_IN) == 0
                {
                    self.resume(run, ops, image, state, &what);
                }
            }
            cutter.advance(&mut self.random);
        }
    }

    /// Opens what a cut has left; the state it serves, if that is allowed.
    fn look(&mut self, image: &Image, allowed: &Allowed, what: &str) -> Option<State> {
        let verify = self.random.below(VERIFIED_IN) == 0;
        let (kind, detail) = match self.reopen(image, verify) {
            Reopened::Served { state, epoch } => match allowed.states.contains(&state) {
                true if epoch >= allowed.epoch_min => return Some(state),
                true => ("epoch", format!("epoch {epoch} is not new")),
                false => self.judge(state, allowed, image),
            },
            Reopened::Refused(_) if allowed.nothing => return None,
            Reopened::Refused(error) => ("refused", error),
            Reopened::Panicked => ("panicked", String::new()),
        };
        self.tried.count(kind);
        self.tried.failures.push(format!("SERIATIM_SEED={}: {what}: {kind} {detail}", self.seed));
        None
    }

    /// Opens what a cut has left, unless the same was left by one of the last cuts: without a look at every page before, that
    /// would serve the same.
    fn reopen(&mut self, image: &Image, verify: bool) -> Reopened {
        if !verify && let Some((_, state, epoch)) = self.served.iter().find(|(known, ..)| known == image) {
            self.tried.count("left_before");
            return Reopened::Served { state: *state, epoch: *epoch };
        }
        self.tried.count("reopens");
        let reopened = reopen(image.clone(), self.setting, verify);
        if let Reopened::Served { state, epoch } = &reopened
            && !verify
        {
            self.served.truncate(SERVED_MAX - 1);
            self.served.push_front((image.clone(), *state, *epoch));
        }
        reopened
    }

    /// What a state is that is not allowed.
    fn judge(&self, state: State, allowed: &Allowed, image: &Image) -> (&'static str, String) {
        let number = |state: State| self.story.states.iter().position(|described| *described == state);
        let first_allowed = allowed.states.first().and_then(|state| number(*state));
        match (number(state), first_allowed) {
            (Some(turn), Some(first)) if turn < first => ("lost", format!("turns {turn} to {first}")),
            (Some(turn), _) => ("phantom", format!("turn {turn}")),
            (None, Some(first)) => ("mixed", self.difference(first, image)),
            (None, None) => ("mixed", "in a story that was resumed".to_owned()),
        }
    }

    /// The first rows that differ from those after a turn.
    fn difference(&self, turn: usize, image: &Image) -> String {
        let expected = self.story.models[turn].clone().lines();
        let found = lines_of_image(image.clone(), self.setting);
        let missing = expected.iter().find(|line| !found.contains(line));
        let excess = found.iter().find(|line| !expected.contains(line));
        format!("after turn {turn} there should be {missing:?} and not {excess:?}")
    }

    /// Goes on with the story after a cut, and perhaps cuts that again.
    fn resume(&mut self, run: &Run, ops: usize, image: Image, served: State, what: &str) {
        self.tried.count("resumed");
        let (acknowledged, issued) = run.bounds(ops);
        let k = (acknowledged..=issued).find(|k| run.states[*k] == served).expect("it is allowed");
        let resumed = self.story.resumed(k, TURNS_RESUMED);
        let again = Run::of_recovery(image, run.allowed(ops), served, resumed, self.setting);
        let mut cutter = Cutter::new(again.base.clone(), &again.log);
        if self.random.below(CUT_AGAIN_IN) > 0 {
            while cutter.advance(&mut self.random) {}
            let (image, end) = (cutter.image(Mode::All, &mut self.random), again.log.len());
            self.look(&image, &again.allowed(end), &format!("{what}, then resumed"));
            return;
        }
        for ops in 0..=again.log.len() {
            let mode = self.random.pick(&Mode::EVERY);
            let image = cutter.image(mode, &mut self.random);
            self.tried.count("second_cuts");
            self.look(&image, &again.allowed(ops), &format!("{what}, then cut behind {ops}, {mode:?}"));
            cutter.advance(&mut self.random);
        }
    }
}

/// Sweeps story after story until there were enough crash points.
fn sweep(tried: &mut Tried, strict: bool, points: u64) {
    for seed in seeds() {
        let setting = Setting { strict, cramped: seed % 3 == 0 };
        // The first stories are short, so that a small volume ends soon.
        let story = Story::new(seed, 6 + 8 * usize::try_from(seed % 4).expect("a small number"));
        let run = Run::of_story(&story, setting);
        tried.add("short_commits", run.short_commits());
        let random = Random::new(seed);
        let mut sweep =
            Sweep { story: &story, setting, random, tried: &mut *tried, seed, served: VecDeque::new() };
        sweep.cut_everywhere(&run, Cutter::new(run.base.clone(), &run.log));
        if tried.of("points") >= points {
            break;
        }
    }
}

#[test]
fn a_power_cut_anywhere_loses_nothing_acknowledged() {
    let mut tried = Tried::new("power cuts");
    sweep(&mut tried, false, volume("SERIATIM_CRASH_POINTS", 150));
    assert!(tried.of("short_commits") > 0, "no commit was as short as most are");
    tried.finish();
}

#[test]
fn a_power_cut_anywhere_loses_nothing_acknowledged_in_strict_mode() {
    let mut tried = Tried::new("power cuts, strict");
    sweep(&mut tried, true, volume("SERIATIM_CRASH_POINTS", 150));
    tried.finish();
}

/// Sweeps a few stories in which something is planted that must be found.
fn sweep_planted(name: &'static str, plant: impl Fn(&Story, Setting) -> (Run, u64)) -> Tried {
    let mut tried = Tried::new(name);
    let setting = Setting { strict: false, cramped: false };
    for seed in 0..2 {
        let story = Story::new(seed, 8);
        let (run, honest_in) = plant(&story, setting);
        let random = Random::new(seed);
        let mut sweep =
            Sweep { story: &story, setting, random, tried: &mut tried, seed, served: VecDeque::new() };
        sweep.cut_everywhere(&run, Cutter::lying(run.base.clone(), &run.log, honest_in));
    }
    tried.print();
    tried
}

#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let tried = sweep_planted("control: lying disk", |story, setting| (Run::of_story(story, setting), 3));
    assert!(tried.of("lost") > 10, "lost work is seen");
    assert!(tried.of("refused") > 10, "torn files are seen");
}

#[test]
fn an_engine_that_answers_before_the_commit_is_found_out() {
    let early = |story: &Story, setting| (Run::of_story(story, setting).answered_too_early(), 1);
    let tried = sweep_planted("control: early answers", early);
    assert!(tried.of("lost") > 10, "lost work is seen");
}
