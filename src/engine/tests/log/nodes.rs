//! Several nodes on servers that misbehave, out of a seed: each follows, takes over, writes as long as it believes that it is the
//! owner, dies, and loses its file. Whatever was acknowledged is in the log, once, in its place.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::shared_log::SharedLog;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::log::server::Servers;
use crate::error::Fault;
use crate::id::QueueName;
use crate::message::Message;
use crate::queue::QueueOptions;

const NODES: u64 = 3;
const STEPS: u64 = 120;

struct Node {
    path: PathBuf,
    store: Option<Store>,
    /// Whether it believes that it is the owner.
    owns: bool,
}

struct World {
    servers: Servers,
    random: Random,
    nodes: Vec<Node>,
    /// What the store of its author was after each entry that was acknowledged.
    acknowledged: BTreeMap<u64, u64>,
    holders: u64,
    deposed: u64,
}

impl World {
    fn new(seed: u64, folder: &std::path::Path) -> World {
        let path = |number| folder.join(format!("{number}.redb"));
        let node = |number| Node { path: path(number), store: None, owns: false };
        World {
            servers: Servers::misbehaving(seed),
            random: Random::new(!seed),
            nodes: (0..NODES).map(node).collect(),
            acknowledged: BTreeMap::new(),
            holders: 0,
            deposed: 0,
        }
    }

    fn options(&mut self) -> StoreOptions {
        let generation_bytes = 1 + self.random.below(4_000);
        StoreOptions { generation_bytes, generations: 1, ..StoreOptions::default() }
    }

    fn step(&mut self, instant: u64) {
        let index = usize::try_from(self.random.below(NODES)).unwrap();
        let options = self.options();
        let node = &mut self.nodes[index];
        let store = node.store.get_or_insert_with(|| {
            let log = Arc::new(SharedLog::new(self.servers.clone()));
            Store::open_behind(&node.path, options, log).unwrap()
        });
        let done = match self.random.below(20) {
            0 => Err(Fault::Defect("it is killed".to_owned())),
            1 => {
                node.store = None;
                node.owns = false;
                std::fs::remove_file(&node.path).unwrap();
                return;
            }
            2 | 3 if !node.owns => store.catch_up().and_then(|_| {
                self.holders += 1;
                store.take_over(self.holders)?;
                node.owns = true;
                Ok(())
            }),
            _ if node.owns => write(store, instant),
            _ => store.catch_up().map(drop),
        };
        match done {
            Ok(()) if node.owns => {
                let (position, _) = store.place();
                let hash = store.content_hash().unwrap();
                let before = self.acknowledged.insert(position, hash);
                assert!(
                    before.is_none_or(|before| before == hash),
                    "entry {position} was acknowledged twice"
                );
            }
            Ok(()) => {
                let (position, _) = store.place();
                if let Some(expected) = self.acknowledged.get(&position) {
                    assert_eq!(store.content_hash().unwrap(), *expected, "it follows another history");
                }
            }
            Err(fault) => {
                self.deposed += u64::from(matches!(fault, Fault::Deposed));
                let is_expected = matches!(fault, Fault::Deposed | Fault::Defect(_));
                assert!(is_expected, "no server has lost anything: {fault}");
                // Losing ownership discards what is in memory.
                node.store = None;
                node.owns = false;
            }
        }
    }

    /// What was acknowledged is in the log, and leads to what its authors had.
    fn check(&mut self, path: PathBuf) {
        let log = Arc::new(SharedLog::new(self.servers.clone()));
        let mut store = Store::open_behind(&path, StoreOptions::default(), log.clone()).unwrap();
        let last = self.servers.last();
        let mut found = 0;
        while store.place().0 < last {
            let from = store.place().0 + 1;
            let read = crate::engine::store::log::Log::read_from(&*log, from, &mut |entry| {
                store.follow(entry)?;
                if let Some(expected) = self.acknowledged.get(&entry.position) {
                    assert_eq!(store.content_hash()?, *expected, "entry {}", entry.position);
                    found += 1;
                }
                Ok(())
            });
            read.unwrap();
        }
        assert_eq!(found, self.acknowledged.len(), "an entry that was acknowledged is not there");
    }
}

fn write(store: &mut Store, instant: u64) -> Result<(), Fault> {
    let name = QueueName::new(format!("q{}", instant % 3)).unwrap();
    let message = Message::new(format!("{instant}")).workflow(format!("w{}", instant % 5)).check().unwrap();
    let commands = [
        Command::CreateQueue(verbs::CreateQueue {
            name: name.clone(),
            options: Box::new(QueueOptions::default()),
        }),
        Command::Send(verbs::Send { queue: name, messages: vec![message] }),
    ];
    let (now, mut rules) = (Timestamp::from_millis(1_000 * instant), Rules::default());
    store.turn(|turn| {
        for command in commands {
            rules.apply(ClockInstants::same(now), command, turn)?;
        }
        turn.stamp(now);
        Ok(())
    })
}

#[test]
fn what_is_acknowledged_is_in_the_log_whoever_dies_lags_or_thinks_that_it_is_the_owner() {
    let only = std::env::var("SERIATIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let (mut deposed, mut acknowledged) = (0, 0);
    for seed in only.map_or(0..20, |seed: u64| seed..seed + 1) {
        let tried = std::panic::catch_unwind(|| {
            let folder = tempfile::tempdir().unwrap();
            let mut world = World::new(seed, folder.path());
            for instant in 1..=STEPS {
                world.step(instant);
            }
            world.check(folder.path().join("last.redb"));
            (world.deposed, world.acknowledged.len())
        });
        let (of_seed, entries) = tried.unwrap_or_else(|_| panic!("SERIATIM_SEED={seed}"));
        deposed += of_seed;
        acknowledged += entries;
    }
    assert!(
        only.is_some() || (deposed > 20 && acknowledged > 200),
        "{deposed} deposed, {acknowledged} acknowledged"
    );
}
