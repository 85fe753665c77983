//! A file that follows a log is what the file of the log's author is, or says why it cannot be.

use std::path::Path;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::samples;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::compact::compact;
use crate::engine::store::shared_log::SharedLog;
use crate::engine::tests::log::server::Servers;
use crate::error::Fault;
use crate::id::QueueName;
use crate::message::Message;
use crate::queue::QueueOptions;

/// Generations so small that every commit closes one and flushes another.
fn flushing() -> StoreOptions {
    StoreOptions { generation_bytes: 1, generations: 0, ..StoreOptions::default() }
}

/// Opens a file that follows what is on these servers.
fn open(path: &Path, options: StoreOptions, servers: &Servers) -> Store {
    Store::open_behind(path, options, Arc::new(SharedLog::new(servers.clone()))).unwrap()
}

/// A file that is where the log's end is now.
fn follower(path: &Path, servers: &Servers) -> Store {
    let mut store = open(path, StoreOptions::default(), servers);
    store.catch_up().unwrap();
    store
}

fn apply(store: &mut Store, rules: &mut Rules, command: Command, instant: u64) -> Result<(), Fault> {
    let now = Timestamp::from_millis(1_000_000 + 500 * instant);
    store.turn(|turn| {
        rules.apply(ClockInstants::same(now), command, turn)?;
        turn.stamp(now);
        Ok(())
    })
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn create() -> Command {
    Command::CreateQueue(verbs::CreateQueue { name: queue(), options: Box::new(QueueOptions::default()) })
}

fn send(number: u64) -> Command {
    let message = Message::new(format!("{number}")).workflow(format!("w{}", number % 3)).check().unwrap();
    Command::Send(verbs::Send { queue: queue(), messages: vec![message] })
}

/// Queues come and go, with messages in them.
fn queues() -> Vec<Command> {
    let delete = || Command::DeleteQueue(verbs::DeleteQueue { name: queue() });
    vec![create(), send(1), send(2), delete(), create(), send(3), delete(), create()]
}

/// An owner that has written a queue and so many messages.
fn owner(path: &Path, servers: &Servers, messages: u64) -> Store {
    let mut store = open(path, StoreOptions::default(), servers);
    store.take_over(1).unwrap();
    let mut rules = Rules::default();
    apply(&mut store, &mut rules, create(), 0).unwrap();
    for number in 0..messages {
        apply(&mut store, &mut rules, send(number), number + 1).unwrap();
    }
    store
}

#[test]
fn a_file_that_follows_has_what_its_author_has_after_each_entry() {
    for (of_owner, of_follower) in [
        (StoreOptions::default(), StoreOptions::default()),
        (flushing(), StoreOptions::default()),
        (StoreOptions::default(), flushing()),
        (flushing(), flushing()),
    ] {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
        let mut owner = open(&folder.path().join("owner.redb"), of_owner, &servers);
        let path = folder.path().join("follower.redb");
        let mut follower = open(&path, of_follower, &servers);
        owner.take_over(1).unwrap();
        let mut rules = Rules::default();
        for (instant, command) in (0..).zip(samples::story().into_iter().chain(queues())) {
            apply(&mut owner, &mut rules, command.clone(), instant).unwrap();
            follower.catch_up().unwrap();
            assert_eq!(follower.content_hash().unwrap(), owner.content_hash().unwrap(), "after {command:?}");
            assert_eq!(follower.place(), owner.place());
            assert!(follower.stamp().engine <= owner.stamp().engine, "a turn without changes is not written");
        }
        follower.close().unwrap();
        let mut again = open(&path, of_follower, &servers);
        assert_eq!(again.content_hash().unwrap(), owner.content_hash().unwrap(), "it is in its file");
        assert_eq!(again.epoch(), 1, "opening a file that follows begins no epoch");
    }
}

#[test]
fn a_new_file_catches_up_on_servers_that_misbehave() {
    for seed in 0..30 {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::misbehaving(seed));
        let mut owner = owner(&folder.path().join("owner.redb"), &servers, 20);
        let mut follower = open(&folder.path().join("follower.redb"), StoreOptions::default(), &servers);
        while follower.place() != owner.place() {
            follower.catch_up().unwrap();
        }
        assert_eq!(follower.content_hash().unwrap(), owner.content_hash().unwrap(), "SERIATIM_SEED={seed}");
    }
}

#[test]
fn whoever_takes_over_goes_on_and_the_one_before_is_refused() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let mut old = owner(&folder.path().join("old.redb"), &servers, 5);
    let mut new = follower(&folder.path().join("new.redb"), &servers);
    new.take_over(2).unwrap();
    assert_eq!((old.epoch(), new.epoch()), (1, 2), "tokens of the one before are told apart");
    let refused = apply(&mut old, &mut Rules::default(), send(100), 100);
    assert!(matches!(refused, Err(Fault::Deposed)), "{refused:?}");
    let refused = apply(&mut old, &mut Rules::default(), send(101), 101);
    assert!(matches!(refused, Err(Fault::Deposed)), "its memory is ahead of the log: {refused:?}");
    apply(&mut new, &mut Rules::default(), send(102), 102).unwrap();
    drop(old);
    let mut old = follower(&folder.path().join("old.redb"), &servers);
    assert_eq!(old.content_hash().unwrap(), new.content_hash().unwrap(), "opened again, it follows");
    assert_eq!(old.epoch(), 2);
}

#[test]
fn an_owner_whose_file_was_not_synced_has_everything_again_from_the_log() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let path = folder.path().join("owner.redb");
    let mut owner = owner(&path, &servers, 30);
    // What a power cut leaves at worst: what was synced.
    let left = folder.path().join("left.redb");
    std::fs::copy(&path, &left).unwrap();
    let mut again = open(&left, StoreOptions::default(), &servers);
    assert!(again.place().0 < owner.place().0, "commits behind the log are not synced one by one");
    assert!(again.catch_up().unwrap() > 0);
    assert_eq!(again.content_hash().unwrap(), owner.content_hash().unwrap());
}

#[test]
fn a_file_that_is_compacted_goes_on_where_it_was_in_its_log() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let [path, other] = ["owner.redb", "other.redb"].map(|name| folder.path().join(name));
    let mut owner = owner(&path, &servers, 30);
    let (place, epoch, held) = (owner.place(), owner.epoch(), owner.content_hash().unwrap());
    owner.close().unwrap();
    for _ in 0..2 {
        compact(&path).unwrap();
        let mut again = open(&path, StoreOptions::default(), &servers);
        assert_eq!((again.catch_up().unwrap(), again.place(), again.epoch()), (0, place, epoch));
        assert_eq!(again.content_hash().unwrap(), held);
    }
    let mut new = follower(&other, &servers);
    new.take_over(2).unwrap();
    apply(&mut new, &mut Rules::default(), send(100), 100).unwrap();
    let mut again = follower(&path, &servers);
    assert_eq!(again.content_hash().unwrap(), new.content_hash().unwrap(), "it follows others");
    again.take_over(3).unwrap();
    apply(&mut again, &mut Rules::default(), send(101), 101).unwrap();
}

#[test]
fn what_following_takes_in_memory_does_not_depend_on_how_much_comes() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let _owner = owner(&folder.path().join("owner.redb"), &servers, 600);
    let options = StoreOptions { generation_bytes: 4 * 1024, generations: 1, ..StoreOptions::default() };
    let mut follower = open(&folder.path().join("follower.redb"), options, &servers);
    follower.catch_up().unwrap();
    let in_memory: usize = follower.memtables.of_messages.len();
    assert!(in_memory < 100, "{in_memory} of 600 messages are in memory");
}

/// Why a file that has followed so far cannot go on.
fn refusal(path: &Path, servers: &Servers) -> String {
    let mut store = open(path, StoreOptions::default(), servers);
    let fault = store.catch_up().expect_err("it must not go on");
    assert!(store.catch_up().is_err(), "it stays stopped");
    fault.to_string()
}

#[test]
fn a_log_that_is_shorter_than_the_file_stops_it() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let path = folder.path().join("owner.redb");
    owner(&path, &servers, 8).close().unwrap();
    servers.cut(4);
    let text = refusal(&path, &servers);
    assert!(text.contains("it ends before entry 10, which this file has from it"), "{text}");
}

#[test]
fn a_log_that_was_made_anew_stops_the_file() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let (path, other) = (folder.path().join("owner.redb"), folder.path().join("other.redb"));
    owner(&path, &servers, 8).close().unwrap();
    servers.cut(0);
    let mut store = open(&other, StoreOptions::default(), &servers);
    store.take_over(7).unwrap();
    for number in 0..20 {
        let command = if number == 0 { create() } else { send(number) };
        apply(&mut store, &mut Rules::default(), command, number).unwrap();
    }
    let text = refusal(&path, &servers);
    assert!(text.contains("its entry 10 is not the one that this file has from it"), "{text}");
}

#[test]
fn an_entry_that_is_missing_from_the_servers_stops_who_comes_to_it() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    owner(&folder.path().join("owner.redb"), &servers, 8).close().unwrap();
    servers.lose(5);
    let text = refusal(&folder.path().join("follower.redb"), &servers);
    assert!(text.contains("entry 5 is missing"), "{text}");
}

#[test]
fn an_entry_that_no_reader_brings_is_read_by_its_position() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let mut owner = owner(&folder.path().join("owner.redb"), &servers, 8);
    servers.hide(5);
    let mut follower = follower(&folder.path().join("follower.redb"), &servers);
    assert_eq!(follower.content_hash().unwrap(), owner.content_hash().unwrap(), "it is not skipped");
}

#[test]
fn an_entry_of_a_newer_version_stops_who_comes_to_it_though_no_reader_brings_it() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    owner(&folder.path().join("owner.redb"), &servers, 8).close().unwrap();
    servers.hide(5);
    servers.renew(5);
    let text = refusal(&folder.path().join("follower.redb"), &servers);
    assert!(text.contains("entry 5 is of a newer version"), "{text}");
}

#[test]
fn an_entry_with_a_flipped_bit_stops_who_comes_to_it() {
    for bit in (0..8 * 60).step_by(37) {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
        owner(&folder.path().join("owner.redb"), &servers, 4).close().unwrap();
        servers.flip(3, bit);
        let text = refusal(&folder.path().join("follower.redb"), &servers);
        assert!(text.contains("entry 3 is damaged"), "bit {bit}: {text}");
    }
}

#[test]
fn a_trimmed_log_stops_a_file_that_needs_what_is_gone() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let path = folder.path().join("owner.redb");
    let mut owner = owner(&path, &servers, 8);
    let mut late = folder.path().to_owned();
    late.push("late.redb");
    let log = SharedLog::new(servers.clone());
    crate::engine::store::log::Log::trim(&log, 5).unwrap();
    let text = refusal(&late, &servers);
    assert!(text.contains("entry 6 comes behind entry 0"), "{text}");
    assert_eq!(owner.catch_up().unwrap(), 0, "who has them needs them no more");
}
