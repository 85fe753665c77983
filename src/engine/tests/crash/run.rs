//! A story played on a recording disk, and what a cut at any operation of it may leave.

use crate::engine::rules::Rules;
use crate::engine::store::Job;
use crate::engine::store::Store;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::disk::Op;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::play::State;
use crate::engine::tests::crash::play::Turn;
use crate::engine::tests::crash::play::lines_of;
use crate::engine::tests::crash::play::play_on;
use crate::engine::tests::crash::play::prepare_on;
use crate::engine::tests::crash::play::state_of;
use crate::engine::tests::crash::play::surface_of;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::crash::setting::quietly;
use crate::engine::tests::crash::story::Step;
use crate::engine::tests::crash::story::Story;

/// What a cut may leave: one of these states, or nothing that can be opened.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) states: Vec<State>,
    /// The state of these that an engine had acknowledged; those before it are lost work.
    pub(crate) epoch_min: u32,
    /// Nothing was acknowledged yet, not even that there is a file.
    pub(crate) nothing: bool,
}

/// From which operation to which something was done.
#[derive(Clone, Copy, Debug)]
struct Span {
    began: usize,
    ended: usize,
}

/// What was done to a disk, and when it was acknowledged.
pub(crate) struct Run {
    pub(crate) base: Image,
    pub(crate) log: Vec<Op>,
    /// The state the first opening served, and that after each turn.
    pub(crate) states: Vec<State>,
    turns: Vec<Span>,
    /// When each opening was done, and its epoch.
    openings: Vec<(usize, u32)>,
    /// What a cut during the first opening may leave.
    before: Allowed,
}

impl Run {
    /// Plays a whole story on an empty disk.
    pub(crate) fn of_story(story: &Story, setting: Setting) -> Run {
        let disk = Disk::recording(Image::default());
        let options = setting.options();
        let mut store = Store::with_backend(disk.clone(), options).expect("a healthy disk");
        let mut openings = vec![(disk.ops(), store.epoch())];
        let (mut rules, mut turns) = (Rules::default(), Vec::new());
        let mut waiting = WaitingTurns::default();
        for step in &story.steps {
            match step {
                Step::Turn(turn) => {
                    let number = turns.len() + waiting.count + 1;
                    if turn.is_idle {
                        // Nothing is under way then.
                        turns.extend(waiting.commit(&disk, &mut store));
                    }
                    waiting.play(&mut store, &mut rules, turn);
                    if turn.is_idle || !shares_next_commit(number) {
                        turns.extend(waiting.commit(&disk, &mut store));
                    }
                    let (surface, seed) = (surface_of(&mut store).expect("a healthy disk"), story.seed);
                    assert_eq!(surface, story.surfaces[number], "SERIATIM_SEED={seed}: after turn {number}");
                }
                Step::Restart => {
                    turns.extend(waiting.commit(&disk, &mut store));
                    store.close().expect("a healthy disk");
                    store = Store::open_backend(disk.clone(), options).expect("a healthy disk");
                    openings.push((disk.ops(), store.epoch()));
                    rules = Rules::default();
                }
            }
        }
        turns.extend(waiting.commit(&disk, &mut store));
        store.close().expect("a healthy disk");
        let before = Allowed { states: story.states[..1].to_vec(), epoch_min: 0, nothing: true };
        let (base, states) = (Image::default(), story.states.clone());
        Run { base, log: disk.take_log(), states, turns, openings, before }
    }

    /// Opens what a cut has left, finds it in the state `served`, and goes on with some turns.
    pub(crate) fn of_recovery(
        base: Image,
        before: Allowed,
        served: State,
        resumed: (Vec<Turn>, Vec<State>),
        setting: Setting,
    ) -> Run {
        let disk = Disk::recording(base.clone());
        let mut store = Store::open_backend(disk.clone(), setting.options()).expect("it was opened before");
        let openings = vec![(disk.ops(), store.epoch())];
        let mut rules = Rules::default();
        let play = |turn| play_between(&disk, &mut store, &mut rules, turn);
        let turns = resumed.0.iter().map(play).collect();
        let log = disk.take_log();
        let states = std::iter::once(served).chain(resumed.1).collect();
        Run { base, log, states, turns, openings, before }
    }

    /// How many times one piece was written and synced, as the shortest commits are.
    pub(crate) fn short_commits(&self) -> u64 {
        let is_one = |ops: &&[Op]| matches!(ops, [Op::Sync, Op::Write { .. }, Op::Sync]);
        self.log.windows(3).filter(is_one).count() as u64
    }

    /// What a cut behind the first `ops` operations may leave.
    pub(crate) fn allowed(&self, ops: usize) -> Allowed {
        let opened = self.openings.iter().rev().find(|(ended, _)| *ended <= ops);
        let Some((_, epoch)) = opened else { return self.before.clone() };
        let (acknowledged, issued) = self.bounds(ops);
        // What is committed together is there as a whole.
        let is_between = |turn: usize| turn > acknowledged && turn < issued && self.share_a_commit(turn);
        let turns = (acknowledged..=issued).filter(|turn| !is_between(*turn));
        let states = turns.map(|turn| self.states[turn]).collect();
        Allowed { states, epoch_min: epoch + 1, nothing: false }
    }

    /// Whether a turn was committed together with the next.
    fn share_a_commit(&self, turn: usize) -> bool {
        let (this, next) = (self.turns[turn - 1], self.turns[turn]);
        (this.began, this.ended) == (next.began, next.ended)
    }

    /// The number of the last turn that was acknowledged, and of the last that was begun.
    pub(crate) fn bounds(&self, ops: usize) -> (usize, usize) {
        let acknowledged = self.turns.iter().take_while(|turn| turn.ended <= ops).count();
        let issued = self.turns.iter().take_while(|turn| turn.began < ops).count();
        (acknowledged, issued.max(acknowledged))
    }

    /// How many operations were done when the last turn was acknowledged.
    pub(crate) fn ops_before_close(&self) -> usize {
        let opened = self.openings.last().map_or(0, |(ended, _)| *ended);
        self.turns.last().map_or(opened, |turn| turn.ended)
    }

    /// The same run, told by an engine that answers before the commit.
    pub(crate) fn answered_too_early(mut self) -> Run {
        for turn in &mut self.turns {
            turn.ended = turn.began;
        }
        self
    }
}

/// Turns whose commits were not written yet.
#[derive(Default)]
struct WaitingTurns {
    jobs: Vec<Job>,
    count: usize,
}

impl WaitingTurns {
    fn play(&mut self, store: &mut Store, rules: &mut Rules, turn: &Turn) {
        let (_, job) = prepare_on(store, rules, turn).expect("a healthy disk");
        self.jobs.extend(job);
        self.count += 1;
    }

    /// Commits them together; when each was begun and acknowledged.
    fn commit(&mut self, disk: &Disk, store: &mut Store) -> impl Iterator<Item = Span> + use<> {
        let WaitingTurns { jobs, count } = std::mem::take(self);
        let began = disk.ops();
        store.commit(&jobs).expect("a healthy disk");
        std::iter::repeat_n(Span { began, ended: disk.ops() }, count)
    }
}

/// Whether the commit of a turn is written with that of the next: of two turns in eight.
fn shares_next_commit(number: usize) -> bool {
    matches!(number % 8, 5 | 6)
}

fn play_between(disk: &Disk, store: &mut Store, rules: &mut Rules, turn: &Turn) -> Span {
    let began = disk.ops();
    play_on(store, rules, turn).expect("a healthy disk");
    Span { began, ended: disk.ops() }
}

/// What came of opening an image.
pub(crate) enum Reopened {
    Served { state: State, epoch: u32 },
    Refused(String),
    Panicked,
}

/// Opens an image, perhaps verifies it first, and reads all of it.
pub(crate) fn reopen(image: Image, setting: Setting, verify: bool) -> Reopened {
    let options = setting.roomy().options();
    let reopened = quietly(|| {
        let disk = Disk::new(image);
        let opened = match verify {
            true => Store::open_verified(disk, options),
            false => Store::open_backend(disk, options),
        };
        let mut store = match opened {
            Ok(store) => store,
            Err(error) => return Reopened::Refused(error.to_string()),
        };
        match state_of(&mut store) {
            Ok(state) => Reopened::Served { state, epoch: store.epoch() },
            Err(fault) => Reopened::Refused(fault.to_string()),
        }
    });
    reopened.unwrap_or(Reopened::Panicked)
}

/// What is in an image, row by row, as far as it can be read.
pub(crate) fn lines_of_image(image: Image, setting: Setting) -> Vec<String> {
    let read = quietly(|| {
        let mut store = Store::open_backend(Disk::new(image), setting.roomy().options()).ok()?;
        lines_of(&mut store).ok()
    });
    read.flatten().unwrap_or_default()
}
