//! The store's promises, driven by the rules: a flush, a trial and opening again change nothing.

use std::collections::VecDeque;
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use redb::Database;
use redb::TableDefinition;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::open::begin;
use crate::engine::rules::Rules;
use crate::engine::rules::command_samples;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::samples;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::turn::QueuedCommand;
use crate::engine::writer::Writer;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;

/// Generations so small that every commit closes one and flushes another.
pub(crate) fn flushing() -> StoreOptions {
    StoreOptions { generation_bytes: 1, generations: 0, ..StoreOptions::default() }
}

/// Applies commands, one a turn, and returns the hash of all content after each.
fn apply(store: &mut Store, rules: &mut Rules, commands: &[Command], from: u64) -> Vec<u64> {
    let instants = from..;
    let turns = instants.zip(commands).map(|(instant, command)| {
        let now = Timestamp::from_millis(1_000_000 + 500 * instant);
        let applied = store.turn(|turn| {
            rules.apply(ClockInstants::same(now), command.clone(), turn)?;
            turn.stamp(now);
            Ok(())
        });
        applied.unwrap();
        store.content_hash().unwrap()
    });
    turns.collect()
}

pub(crate) fn story(path: &Path, options: StoreOptions) -> (Store, Vec<u64>) {
    let mut store = Store::open(path, options).unwrap();
    let hashes = apply(&mut store, &mut Rules::default(), &samples::story(), 0);
    (store, hashes)
}

#[test]
fn a_fold_changes_nothing_that_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (flushed, after_each) = story(&folder.path().join("flushed.redb"), flushing());
    let (journaled, expected) = story(&folder.path().join("journaled.redb"), StoreOptions::default());
    assert_eq!(after_each, expected);
    drop((flushed, journaled));
    assert!(rows_of(&folder.path().join("flushed.redb")) > 0, "the one really flushes");
    assert_eq!(rows_of(&folder.path().join("journaled.redb")), 0, "the other really does not");
}

/// How many blocks of messages are in their table.
fn rows_of(path: &Path) -> u64 {
    let database = Database::open(path).unwrap();
    let reading = redb::ReadableDatabase::begin_read(&database).unwrap();
    let table = reading.open_table(TableDefinition::<&[u8], &[u8]>::new("messages")).unwrap();
    redb::ReadableTableMetadata::len(&table).unwrap()
}

#[test]
fn what_is_flushed_while_nothing_is_asked_is_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("idle.redb");
    let (mut store, expected) = story(&path, StoreOptions::default());
    let expected = expected.last().unwrap();
    assert!(!store.has_idle_work(), "a story is too short to be worth it");
    store.flush_turn().unwrap();
    while store.has_idle_work() {
        store.flush_turn().unwrap();
        assert_eq!(store.content_hash().unwrap(), *expected);
    }
    store.close().unwrap();
    assert!(rows_of(&path) > 0, "it is in its tables");
    assert_eq!(Store::open(&path, StoreOptions::default()).unwrap().content_hash().unwrap(), *expected);
}

#[test]
fn a_trial_is_answered_as_its_command_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (_, expected) = story(&folder.path().join("expected.redb"), StoreOptions::default());
    for (name, options) in [("flushed", flushing()), ("journaled", StoreOptions::default())] {
        let mut store = Store::open(&folder.path().join(name), options).unwrap();
        let (mut rules, commands) = (Rules::default(), samples::story());
        let operators: Vec<Command> =
            command_samples::commands().into_iter().filter(Command::can_be_tried).collect();
        assert!(operators.len() > 10, "there is one of each kind");
        for (instant, (command, expected)) in (0..).zip(commands.iter().zip(&expected)) {
            let now = Timestamp::from_millis(1_000_000 + 500 * instant);
            // Whatever operators can do is tried before each step.
            for tried in &operators {
                let now = ClockInstants::same(now);
                let _answer = store.try_out(|turn| rules.try_out(now, tried.clone(), turn)).unwrap();
            }
            let trial = command.can_be_tried().then(|| {
                let reply =
                    store.try_out(|turn| rules.try_out(ClockInstants::same(now), command.clone(), turn));
                format!("{:?}", reply.unwrap())
            });
            let applied = store.turn(|turn| {
                let outcome = rules.apply(ClockInstants::same(now), command.clone(), turn)?;
                turn.stamp(now);
                Ok(format!("{:?}", outcome.reply))
            });
            let reply = applied.unwrap();
            assert!(trial.is_none_or(|trial| trial == reply), "{name}: {command:?}");
            assert_eq!(store.content_hash().unwrap(), *expected, "{name}: after {command:?}");
        }
    }
}

#[test]
fn a_hand_out_that_is_taken_back_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let receive = verbs::Receive { queue: samples::queue(), max: 10, token: samples::token(9) };
    for (name, options) in [("flushed", flushing()), ("journaled", StoreOptions::default())] {
        let mut store = Store::open(&folder.path().join(name), options).unwrap();
        let (mut rules, mut handed_out) = (Rules::default(), 0);
        for (instant, command) in (0..).zip(samples::story()) {
            let hash = apply(&mut store, &mut rules, &[command], instant).pop().unwrap();
            let now = ClockInstants::same(Timestamp::from_millis(1_000_000 + 500 * instant));
            let tried = store.try_out(|turn| {
                turn.begin_trial();
                let tried = Rules::default().apply(now, Command::Receive(receive.clone()), turn)?;
                turn.roll_back();
                Ok(tried.reply)
            });
            if let Reply::Receive(Ok(messages)) = tried.unwrap() {
                handed_out += messages.len();
            }
            assert_eq!(store.content_hash().unwrap(), hash, "{name}: after turn {instant}");
        }
        assert!(handed_out > 2, "{name}: there was something to hand out");
    }
}

#[test]
fn what_many_trials_took_is_given_back_although_no_generation_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("tried.redb"), StoreOptions::default()).unwrap();
    let options = Box::new(QueueOptions::default());
    let create = Command::CreateQueue(verbs::CreateQueue { name: samples::queue(), options });
    apply(&mut store, &mut Rules::default(), &[create], 0);
    let mut largest = 0;
    for number in 0..limits::TAKEN_BACK_MAX {
        let message = Message::new("tried").workflow(format!("new {number}")).check().unwrap();
        let send = Command::Send(verbs::Send { queue: samples::queue(), messages: vec![message] });
        let now = ClockInstants::same(Timestamp::from_millis(9_000_000));
        let tried = store.try_out(|turn| {
            turn.begin_trial();
            let tried = Rules::default().apply(now, send, turn)?;
            turn.roll_back();
            Ok(tried.reply)
        });
        assert!(matches!(tried.unwrap(), Reply::Send(Ok(_))));
        largest = largest.max(store.memtables.of_workflows.len());
    }
    assert!(largest < limits::TAKEN_BACK_MAX / 2, "room for {largest} workflows at once");
}

#[test]
fn what_changes_while_its_fold_is_under_way_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (_, expected) = story(&folder.path().join("one_by_one.redb"), StoreOptions::default());
    for under_way_max in 1..=3 {
        let path = folder.path().join(format!("{under_way_max}.redb"));
        let mut store = Store::open(&path, flushing()).unwrap();
        let (committer, mut rules) = (store.committer(), Rules::default());
        let mut under_way = VecDeque::new();
        for (instant, (command, expected)) in (0..).zip(samples::story().into_iter().zip(&expected)) {
            let now = Timestamp::from_millis(1_000_000 + 500 * instant);
            let prepared = store.prepare(|turn| {
                rules.apply(ClockInstants::same(now), command, turn)?;
                turn.stamp(now);
                Ok(())
            });
            under_way.extend(prepared.unwrap().1);
            if under_way.len() > under_way_max {
                let job = under_way.pop_front().unwrap();
                committer.commit(slice::from_ref(&job)).unwrap();
                store.mark_committed(job.position);
            }
            assert_eq!(store.content_hash().unwrap(), *expected, "at {now}, {under_way_max} under way");
        }
        committer.commit(under_way.make_contiguous()).unwrap();
        drop(committer);
        store.close().unwrap();
        let mut store = Store::open(&path, flushing()).unwrap();
        assert_eq!(store.content_hash().unwrap(), *expected.last().unwrap());
    }
}

#[test]
fn what_is_flushed_leaves_memory_although_earlier_commits_end_later() {
    let mut store = Store::in_memory(flushing()).unwrap();
    let (committer, mut rules) = (store.committer(), Rules::default());
    let queue = QueueName::new("q").unwrap();
    let options = Box::new(QueueOptions::default());
    let mut commands = vec![Command::CreateQueue(verbs::CreateQueue { name: queue.clone(), options })];
    commands.extend((0..8).map(|number| {
        let message = Message::new(format!("{number}")).workflow("w").check().unwrap();
        Command::Send(verbs::Send { queue: queue.clone(), messages: vec![message] })
    }));
    let mut jobs = VecDeque::new();
    for (instant, command) in (1_000_000..).zip(commands) {
        let now = Timestamp::from_millis(instant);
        let prepared = store.prepare(|turn| {
            rules.apply(ClockInstants::same(now), command, turn)?;
            turn.stamp(now);
            Ok(())
        });
        jobs.extend(prepared.unwrap().1);
    }
    for job in jobs {
        committer.commit(slice::from_ref(&job)).unwrap();
        store.mark_committed(job.position);
    }
    let under_way = &store.memtables.contents.changed.under_way;
    assert!(under_way.is_empty(), "rows of commits that have ended are not waited for");
    let in_memory = store.memtables.of_messages.len();
    assert!(in_memory < 3, "{in_memory} of 8 messages are in memory, and in their table");
}

#[test]
fn opening_again_at_any_turn_changes_nothing() {
    let commands = samples::story();
    for options in [flushing(), StoreOptions::default()] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let mut store = Store::open(&path, options).unwrap();
        let mut rules = Rules::default();
        for (instant, command) in commands.iter().enumerate() {
            let one = std::slice::from_ref(command);
            let expected = apply(&mut store, &mut rules, one, instant as u64).pop().unwrap();
            let batch = store.place();
            store.close().unwrap();
            store = Store::open(&path, options).unwrap();
            assert_eq!(store.content_hash().unwrap(), expected, "after {command:?}");
            assert_eq!(store.place(), batch);
        }
    }
}

/// A clock that is set by hand, and taken for one that runs by itself.
#[derive(Default)]
struct SetClock(Mutex<Duration>);

impl SetClock {
    fn set(&self, elapsed: Duration) {
        *self.0.lock().unwrap() = elapsed;
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000) + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

#[test]
fn an_engine_flushes_once_nothing_was_asked_for_half_a_second() {
    let folder = tempfile::tempdir().unwrap();
    // Each commit fills a generation, and none is flushed with another.
    let options = StoreOptions { generation_bytes: 1, generations: usize::MAX, ..StoreOptions::default() };
    let clock = Arc::new(SetClock::default());
    let (_engine, mut writer) =
        begin(Store::open(&folder.path().join("a.redb"), options).unwrap(), clock.clone()).unwrap();
    let ask = |writer: &mut Writer, command| {
        let asked = vec![QueuedCommand::Unattended(Box::new(command))];
        writer.serve(asked, Vec::new(), Vec::new()).unwrap();
    };
    let rest = |writer: &mut Writer| {
        let before = writer.store.place().0;
        writer.serve(Vec::new(), Vec::new(), Vec::new()).unwrap();
        writer.store.place().0 - before
    };
    let mut story = samples::story().into_iter();
    ask(&mut writer, story.next().unwrap());
    ask(&mut writer, story.next().unwrap());
    clock.set(limits::IDLE_AFTER - Duration::from_millis(1));
    assert_eq!(rest(&mut writer), 0, "somebody may be at work");
    ask(&mut writer, story.next().unwrap());
    clock.set(limits::IDLE_AFTER);
    assert_eq!(rest(&mut writer), 0, "it counts from what was asked last");
    clock.set(limits::IDLE_AFTER * 2);
    assert_eq!(rest(&mut writer), 1);
    assert_eq!(writer.store.stamp().engine, clock.now(), "whoever follows counts from there what has passed");
    let commits = (0..100).take_while(|_| rest(&mut writer) == 1).count();
    assert!((1..100).contains(&commits), "{commits}: it ends when all is flushed");
    assert!(!writer.store.has_idle_work());
}
