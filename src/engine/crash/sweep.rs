//! The power is cut behind every operation, and again while the file recovers from that.

use crate::engine::crash::cut::Cutter;
use crate::engine::crash::cut::Mode;
use crate::engine::crash::image::Image;
use crate::engine::crash::play::State;
use crate::engine::crash::random::Random;
use crate::engine::crash::run::Allowed;
use crate::engine::crash::run::Reopened;
use crate::engine::crash::run::Run;
use crate::engine::crash::run::reopen;
use crate::engine::crash::setting::Tried;
use crate::engine::crash::setting::seeds;
use crate::engine::crash::setting::volume;
use crate::engine::crash::story::Story;

/// Turns of one story.
const TURNS: usize = 24;
/// Turns that are played after a recovery.
const TURNS_RESUMED: usize = 3;
/// After one in so many reopenings, the story goes on.
const RESUMED_IN: u64 = 24;
/// Of these, one in so many is cut again at every operation.
const CUT_AGAIN_IN: u64 = 4;

/// What is swept, and how.
struct Sweep<'a> {
    story: &'a Story,
    strict: bool,
    random: Random,
    tried: &'a mut Tried,
    seed: u64,
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
        self.tried.count("reopens");
        let failure = match reopen(image.clone(), self.strict) {
            Reopened::Served { state, epoch } => match allowed.states.contains(&state) {
                true if epoch >= allowed.epoch_min => return Some(state),
                true => format!("epoch {epoch} is not new"),
                false => format!("serves {}", self.name(state)),
            },
            Reopened::Refused(_) if allowed.nothing => return None,
            Reopened::Refused(error) => format!("is refused: {error}"),
            Reopened::Panicked => "panics".to_owned(),
        };
        self.tried.failures.push(format!("SERIATIM_SEED={}: {what}: {failure}", self.seed));
        None
    }

    /// How a state that is not allowed relates to the story.
    fn name(&self, state: State) -> String {
        match self.story.states.iter().position(|told| *told == state) {
            Some(turn) => format!("the state after turn {turn}"),
            None => "a state that never was".to_owned(),
        }
    }

    /// Goes on with the story after a cut, and perhaps cuts that again.
    fn resume(&mut self, run: &Run, ops: usize, image: Image, served: State, what: &str) {
        self.tried.count("resumed");
        let (acknowledged, issued) = run.bounds(ops);
        let k = (acknowledged..=issued).find(|k| run.states[*k] == served).expect("it is allowed");
        let resumed = self.story.resumed(k, TURNS_RESUMED);
        let again = Run::of_recovery(image, run.allowed(ops), served, resumed, self.strict);
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
        let story = Story::new(seed, TURNS);
        let run = Run::of_story(&story, strict);
        let random = Random::new(seed);
        let mut sweep = Sweep { story: &story, strict, random, tried: &mut *tried, seed };
        sweep.cut_everywhere(&run, Cutter::new(run.base.clone(), &run.log));
        if tried.of("points") >= points {
            break;
        }
    }
}

#[test]
fn a_power_cut_anywhere_loses_nothing_acknowledged() {
    let mut tried = Tried::new("power cuts");
    sweep(&mut tried, false, volume("SERIATIM_CRASH_POINTS", 600));
    tried.finish();
}

#[test]
fn a_power_cut_anywhere_loses_nothing_acknowledged_in_strict_mode() {
    let mut tried = Tried::new("power cuts, strict");
    sweep(&mut tried, true, volume("SERIATIM_CRASH_POINTS", 300));
    tried.finish();
}
