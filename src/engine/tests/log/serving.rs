//! How a file that has followed a log, and serves, ends.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::SystemClock;
use crate::clock::Timestamp;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::clocks::PassedTime;
use crate::engine::follower::Follower;
use crate::engine::follower::FollowerOptions;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::engine::store::shared_log::SharedLog;
use crate::engine::tests::log::server::Servers;
use crate::error::Fault;
use crate::error::OpenError;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// A log behind which a fault is found with an entry.
struct Faulty(u64, Fault);

impl Log for Faulty {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        if entry.position < self.0 { Ok(()) } else { Err(self.1.clone()) }
    }

    fn read_from(&self, _position: u64, _each: &mut EachEntry<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn trim(&self, _through: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// Serves behind a log on a thread of its own.
async fn serving(path: PathBuf, log: Arc<dyn Log>) -> (Client, JoinHandle<Result<Option<Fault>, OpenError>>) {
    let (began, begins) = tokio::sync::oneshot::channel();
    let serve = move || {
        let follower = Follower::open(&path, FollowerOptions::shared_by(1), log)?;
        let began = |engine, _| assert!(began.send(engine).is_ok());
        follower.serve(1, 1, Arc::new(SystemClock::default()), PassedTime::default(), began)
    };
    let thread = std::thread::Builder::new().spawn(serve).unwrap();
    let engine: Engine = begins.await.unwrap();
    (engine.client().clone(), thread)
}

/// What comes of serving when a fault ends that.
async fn served_until(fault: Fault) -> Result<Option<Fault>, OpenError> {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(Faulty(3, fault));
    let (client, thread) = serving(folder.path().join("faulty.redb"), log).await;
    client.create_queue("a", QueueOptions::default()).await.unwrap();
    client.create_queue("b", QueueOptions::default()).await.expect_err("a fault was found");
    thread.join().unwrap()
}

/// A log that panics over an entry.
struct PanickingLog(u64);

impl Log for PanickingLog {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        assert!(entry.position < self.0, "planted");
        Ok(())
    }

    fn read_from(&self, _position: u64, _each: &mut EachEntry<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn trim(&self, _through: u64) -> Result<(), Fault> {
        Ok(())
    }
}

#[tokio::test]
async fn a_panic_of_whoever_commits_is_a_fault_and_nobody_waits_for_an_answer_that_cannot_come() {
    let folder = tempfile::tempdir().unwrap();
    // A small entry is committed by the hot loop itself, a large one beside it.
    for bytes in [0, limits::COMMIT_ALONGSIDE_BYTES as usize] {
        let path = folder.path().join(format!("{bytes}.redb"));
        let (client, thread) = serving(path, Arc::new(PanickingLog(3))).await;
        let queue = client.create_queue("a", QueueOptions::default()).await.unwrap();
        let message = Message::new(vec![0; bytes]).workflow("w");
        let sent = tokio::time::timeout(Duration::from_secs(60), queue.send(message)).await;
        assert!(sent.expect("it is answered").is_err());
        let fault = client.fault();
        assert!(matches!(&fault, Some(Fault::Defect(text)) if text.contains("planted")), "{fault:?}");
        let ended = thread.join().unwrap();
        assert!(matches!(ended, Err(OpenError::Fault(Fault::Defect(_)))), "{ended:?}");
    }
}

#[tokio::test]
async fn who_serves_until_a_fault_is_told_which_so_that_the_partition_is_left_to_others() {
    let damaged = || Fault::Damaged { table: "messages", detail: "its checksum is wrong".to_owned() };
    let ended = served_until(damaged()).await;
    assert!(matches!(ended, Err(OpenError::Fault(Fault::Damaged { .. }))), "{ended:?}");
    let ended = served_until(Fault::Defect("an assertion".to_owned())).await;
    assert!(matches!(ended, Err(OpenError::Fault(Fault::Defect(_)))), "{ended:?}");
    let ended = served_until(Fault::Log("it takes nothing so large".to_owned())).await;
    assert!(matches!(ended, Ok(Some(Fault::Log(_)))), "to follow it anew tells more: {ended:?}");
}

#[test]
fn a_fault_of_the_log_when_an_epoch_begins_is_one_after_which_it_is_followed_anew() {
    let folder = tempfile::tempdir().unwrap();
    let taken_over = |name: &str, fault: Fault| {
        let (path, log) = (folder.path().join(name), Arc::new(Faulty(1, fault)));
        let follower = Follower::open(&path, FollowerOptions::shared_by(1), log)?;
        let (clock, passed) = (Arc::new(SystemClock::default()), PassedTime::default());
        follower.serve(1, 1, clock, passed, |_, _| panic!("it has not taken over"))
    };
    let ended = taken_over("log.redb", Fault::Log("it has not got the entry before".to_owned()));
    assert!(matches!(ended, Ok(Some(Fault::Log(_)))), "{ended:?}");
    let ended = taken_over("deposed.redb", Fault::Deposed);
    assert!(matches!(ended, Err(OpenError::Fault(Fault::Deposed))), "{ended:?}");
}

/// A log in which another entry stands from a position on.
struct DeposingLog {
    log: SharedLog<Servers>,
    from: AtomicU64,
}

impl Log for DeposingLog {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        match entry.position < self.from.load(Ordering::SeqCst) {
            true => self.log.append(entry),
            false => Err(Fault::Deposed),
        }
    }

    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), Fault> {
        self.log.read_from(position, each)
    }

    fn trim(&self, through: u64) -> Result<(), Fault> {
        self.log.trim(through)
    }
}

/// Makes a file behind a log in which a message is handed out.
fn hand_out(path: &Path, log: Arc<DeposingLog>) {
    let mut store = Store::open_behind(path, StoreOptions::default(), log).unwrap();
    store.take_over(1).unwrap();
    let (now, mut rules, queue) =
        (Timestamp::from_millis(1_000), Rules::default(), QueueName::new("q").unwrap());
    let message = Message::new("").workflow("w").check().unwrap();
    let options = Box::new(QueueOptions::default());
    let commands = [
        Command::CreateQueue(verbs::CreateQueue { name: queue.clone(), options }),
        Command::Send(verbs::Send { queue: queue.clone(), messages: vec![message] }),
        Command::Receive(verbs::Receive { queue, max: 1, token: LockToken::new(1, [1; 12]) }),
    ];
    for command in commands {
        let asked = store.turn(|turn| {
            turn.stamp(now);
            rules.apply(ClockInstants::same(now), command, turn)
        });
        asked.unwrap();
    }
}

#[test]
fn who_is_deposed_while_what_was_handed_out_is_given_back_can_open_the_file_again_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let log = Arc::new(DeposingLog { log: SharedLog::new(Servers::sound()), from: AtomicU64::new(u64::MAX) });
    hand_out(&path, log.clone());
    for holder in 2..22 {
        let opened = Follower::open(&path, FollowerOptions::shared_by(1), log.clone());
        let mut follower = opened.expect("nobody has it open");
        follower.catch_up().unwrap();
        // The epoch begins, and what follows is refused.
        log.from.store(follower.position() + 2, Ordering::SeqCst);
        let (clock, passed) = (Arc::new(SystemClock::default()), PassedTime::default());
        let ended = follower.serve(holder, 1, clock, passed, |_, _| panic!("nothing was given back"));
        assert!(matches!(ended, Err(OpenError::Fault(Fault::Deposed))), "{ended:?}");
    }
}
