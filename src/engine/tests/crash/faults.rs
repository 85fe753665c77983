//! The disk fails at an operation: the engine says so, acknowledges nothing more, and nothing acknowledged is lost.

use crate::engine::rules::Rules;
use crate::engine::store::Store;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::disk::Trouble;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::play::Turn;
use crate::engine::tests::crash::play::play_on;
use crate::engine::tests::crash::run::Reopened;
use crate::engine::tests::crash::run::reopen;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::crash::setting::Tried;
use crate::engine::tests::crash::setting::quietly;
use crate::engine::tests::crash::setting::seeds;
use crate::engine::tests::crash::setting::volume;
use crate::engine::tests::crash::story::Step;
use crate::engine::tests::crash::story::Story;
use crate::error::Fault;
use crate::error::OpenError;

/// Turns that are tried after the disk has failed.
const TURNS_AFTER: usize = 4;
/// Coprime to the number of troubles in practice: steps of it visit all of them in a scattered order.
const STRIDE: usize = 7919;

/// How far a story came on a disk that fails.
#[derive(Default)]
struct Came {
    created: bool,
    acknowledged: usize,
    issued: usize,
    epoch: u32,
    /// What went against the promise.
    broken: Vec<String>,
}

/// A story on a disk that fails.
struct Trial<'a> {
    story: &'a Story,
    setting: Setting,
    disk: Disk,
    /// Whether it is a sync or a read that fails.
    sync_or_read: bool,
    came: Came,
}

impl<'a> Trial<'a> {
    fn new(story: &'a Story, setting: Setting, trouble: Option<Trouble>) -> Trial<'a> {
        let sync_or_read = matches!(trouble, Some(Trouble::SyncLosesAt(_) | Trouble::ShortReadAt(_)));
        let disk = trouble.map_or_else(|| Disk::new(Image::default()), Disk::failing);
        Trial { story, setting, disk, sync_or_read, came: Came::default() }
    }

    /// Plays until the disk has failed, or the story is over.
    fn play(&mut self) {
        let options = self.setting.options();
        let Some(mut store) = self.opened(|disk| Store::with_backend(disk, options)) else { return };
        self.came.created = true;
        let mut rules = Rules::default();
        for step in &self.story.steps {
            match step {
                Step::Turn(turn) => match self.turn(&mut store, &mut rules, turn) {
                    true => {}
                    false => return self.try_more(store),
                },
                Step::Restart => {
                    self.close(store);
                    let Some(opened) = self.opened(|disk| Store::open_backend(disk, options)) else {
                        return;
                    };
                    (store, rules) = (opened, Rules::default());
                }
            }
        }
        self.close(store);
    }

    /// A store can be closed, unless the disk fails meanwhile; what was passed over before may come up again.
    fn close(&mut self, store: Store) {
        let was_passed_over = self.disk.has_failed() && self.setting.cramped;
        let was_healthy = !self.disk.has_failed();
        let closed = quietly(|| store.close().is_ok());
        let may_fail = was_passed_over || (was_healthy && self.disk.has_failed());
        self.expect(closed.is_some_and(|closed| closed || may_fail), "closing");
    }

    fn expect(&mut self, kept: bool, what: &str) {
        if !kept {
            self.came.broken.push(what.to_owned());
        }
    }

    /// What was done must not have hidden an error. With little memory pages are written before their commit, and the
    /// commit writes again what could not be written then; that error may be passed over.
    fn check_silence(&mut self, was_healthy: bool, what: &str) {
        let is_again = self.setting.cramped && !self.sync_or_read;
        self.expect(is_again || !(was_healthy && self.disk.has_failed()), what);
    }

    fn opened(&mut self, open: impl FnOnce(Disk) -> Result<Store, OpenError>) -> Option<Store> {
        let disk = self.disk.clone();
        let healthy = !disk.has_failed();
        match quietly(|| open(disk)) {
            Some(Ok(store)) => {
                self.came.epoch = store.epoch();
                self.check_silence(healthy, "opened although the disk failed");
                return Some(store);
            }
            Some(Err(error)) => self.expect(self.disk.has_failed(), &format!("not opened: {error}")),
            None => self.expect(false, "opening panicked"),
        }
        None
    }

    /// Plays a turn; false when it failed.
    fn turn(&mut self, store: &mut Store, rules: &mut Rules, turn: &Turn) -> bool {
        self.came.issued += 1;
        let healthy = !self.disk.has_failed();
        match quietly(|| play_on(store, rules, turn)) {
            Some(Ok(_)) => {
                self.came.acknowledged += 1;
                self.check_silence(healthy, "acknowledged although the disk failed");
                true
            }
            Some(Err(fault)) => {
                let is_clear = matches!(fault, Fault::Store(_) | Fault::File(_));
                self.expect(is_clear && self.disk.has_failed(), &format!("unclear fault: {fault}"));
                false
            }
            None => {
                self.expect(false, "a turn panicked");
                false
            }
        }
    }

    /// After a fault the store refuses everything, whether the disk works again or not.
    fn try_more(&mut self, mut store: Store) {
        let turns = self.story.steps.iter().filter_map(|step| match step {
            Step::Turn(turn) => Some(turn),
            Step::Restart => None,
        });
        let mut refused = true;
        for turn in turns.take(TURNS_AFTER) {
            let after = quietly(|| play_on(&mut store, &mut Rules::default(), turn).is_err());
            refused &= after == Some(true);
        }
        self.expect(refused, "acknowledged after a fault");
        let closed = quietly(|| store.close().is_err());
        self.expect(closed == Some(true), "closed after a fault as if nothing had been");
    }

    /// Opens what is left, and finds everything acknowledged in it.
    fn look(&mut self, image: Image, left: &str) {
        let Came { created, acknowledged, issued, epoch, .. } = self.came;
        let allowed = &self.story.states[acknowledged..=issued];
        let problem = match reopen(image, self.setting, false) {
            Reopened::Served { state, epoch: next } if allowed.contains(&state) && next > epoch => return,
            Reopened::Refused(_) if !created => return,
            Reopened::Served { state, .. } => {
                let turn = self.story.states.iter().position(|described| *described == state);
                format!("serves turn {turn:?}, not {acknowledged} to {issued}")
            }
            Reopened::Refused(error) => format!("is refused: {error}"),
            Reopened::Panicked => "panics".to_owned(),
        };
        self.came.broken.push(format!("{left} {problem}"));
    }
}

/// Every way in which the disk can fail while this story is played.
fn troubles(story: &Story, setting: Setting) -> Vec<Trouble> {
    let mut trial = Trial::new(story, setting, None);
    trial.play();
    assert_eq!(trial.came.broken, Vec::<String>::new(), "on a healthy disk");
    let failing = (0..trial.disk.ops())
        .flat_map(|op| [Trouble::ErrorAt(op), Trouble::FullFrom(op), Trouble::SyncLosesAt(op)]);
    failing.chain((0..trial.disk.reads()).map(Trouble::ShortReadAt)).collect()
}

#[test]
fn after_a_disk_error_nothing_is_acknowledged_and_nothing_acknowledged_is_lost() {
    let mut tried = Tried::new("disk errors");
    let runs = volume("SERIATIM_FAULT_RUNS", 250);
    for seed in seeds() {
        let setting = Setting { strict: seed % 2 == 1, cramped: seed % 3 == 0 };
        let story = Story::new(seed, 10);
        let troubles = troubles(&story, setting);
        for index in 0..troubles.len() {
            let trouble = troubles[(index * STRIDE) % troubles.len()];
            let mut trial = Trial::new(&story, setting, Some(trouble));
            trial.play();
            trial.look(trial.disk.image(), "what was written");
            trial.look(trial.disk.synced(), "what was synced");
            tried.count("runs");
            tried.add("reopens", 2);
            tried.add("turns_acknowledged", trial.came.acknowledged as u64);
            if trial.came.acknowledged < trial.came.issued {
                tried.add("turns_tried_after", TURNS_AFTER as u64);
            }
            let broken = trial.came.broken.iter();
            tried.failures.extend(broken.map(|what| format!("SERIATIM_SEED={seed}: {trouble:?}: {what}")));
            if tried.of("runs") >= runs {
                return tried.finish();
            }
        }
    }
    tried.finish();
}
