//! The store's promises, driven by the rules: a fold changes nothing, opening again changes nothing, and a file of an
//! older format is opened.

use std::collections::VecDeque;
use std::path::Path;

use redb::Database;
use redb::TableDefinition;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::command::Command;
use crate::engine::rules::samples;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::verify::report::Damage;
use crate::engine::verify::verify::verify;

const META: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("meta");
const JOURNAL: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("journal");
const ANSWERS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("answers");
const ANSWER_COUNTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("answer_counts");
const AUDIT: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("audit");

/// Generations so small that every commit seals one and folds another.
fn folding() -> StoreOptions {
    StoreOptions { generation_bytes: 1, generations: 0, ..StoreOptions::default() }
}

/// Applies commands, one a turn, and returns the hash of all content after each.
fn apply(store: &mut Store, rules: &mut Rules, commands: &[Command], from: u64) -> Vec<u64> {
    let instants = from..;
    let turns = instants.zip(commands).map(|(instant, command)| {
        let now = Timestamp::from_millis(1_000_000 + 500 * instant);
        let applied = store.turn(|turn| {
            rules.apply(now, command.clone(), turn)?;
            turn.stamp(now);
            Ok(())
        });
        applied.unwrap();
        store.content_hash().unwrap()
    });
    turns.collect()
}

fn story(path: &Path, options: StoreOptions) -> (Store, Vec<u64>) {
    let mut store = Store::open(path, options).unwrap();
    let hashes = apply(&mut store, &mut Rules::default(), &samples::story(), 0);
    (store, hashes)
}

#[test]
fn a_fold_changes_nothing_that_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (folded, after_each) = story(&folder.path().join("folded.redb"), folding());
    let (journaled, expected) = story(&folder.path().join("journaled.redb"), StoreOptions::default());
    assert_eq!(after_each, expected);
    drop((folded, journaled));
    let rows_of = |name: &str| {
        let database = Database::open(folder.path().join(name)).unwrap();
        let reading = redb::ReadableDatabase::begin_read(&database).unwrap();
        let table = reading.open_table(TableDefinition::<&[u8], &[u8]>::new("messages")).unwrap();
        redb::ReadableTableMetadata::len(&table).unwrap()
    };
    assert!(rows_of("folded.redb") > 0, "the one really folds");
    assert_eq!(rows_of("journaled.redb"), 0, "the other really does not");
}

#[test]
fn what_changes_while_its_fold_is_under_way_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (_, expected) = story(&folder.path().join("one_by_one.redb"), StoreOptions::default());
    for under_way_max in 1..=3 {
        let path = folder.path().join(format!("{under_way_max}.redb"));
        let mut store = Store::open(&path, folding()).unwrap();
        let (committer, mut rules) = (store.committer(), Rules::default());
        let mut under_way = VecDeque::new();
        for (instant, (command, expected)) in (0..).zip(samples::story().into_iter().zip(&expected)) {
            let now = Timestamp::from_millis(1_000_000 + 500 * instant);
            let prepared = store.prepare(|turn| {
                rules.apply(now, command, turn)?;
                turn.stamp(now);
                Ok(())
            });
            under_way.extend(prepared.unwrap().1);
            if under_way.len() > under_way_max {
                let job = under_way.pop_front().unwrap();
                committer.commit(&job).unwrap();
                store.land(job.position);
            }
            assert_eq!(store.content_hash().unwrap(), *expected, "at {now}, {under_way_max} under way");
        }
        under_way.iter().for_each(|job| committer.commit(job).unwrap());
        drop(committer);
        store.close().unwrap();
        let mut store = Store::open(&path, folding()).unwrap();
        assert_eq!(store.content_hash().unwrap(), *expected.last().unwrap());
    }
}

#[test]
fn opening_again_at_any_turn_changes_nothing() {
    let commands = samples::story();
    for options in [folding(), StoreOptions::default()] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let mut store = Store::open(&path, options).unwrap();
        let mut rules = Rules::default();
        for (instant, command) in commands.iter().enumerate() {
            let one = std::slice::from_ref(command);
            let expected = apply(&mut store, &mut rules, one, instant as u64).pop().unwrap();
            let batch = store.batch();
            store.close().unwrap();
            store = Store::open(&path, options).unwrap();
            assert_eq!(store.content_hash().unwrap(), expected, "after {command:?}");
            assert_eq!(store.batch(), batch);
        }
    }
}

#[test]
fn a_file_of_an_older_format_is_sound_and_is_opened_with_all_it_holds() {
    let of_format_3 = [ANSWERS, ANSWER_COUNTS, AUDIT];
    let older = [(1, [&[JOURNAL][..], &of_format_3].concat()), (2, of_format_3.to_vec())];
    for (format, missing) in older {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let (store, hashes) = story(&path, folding());
        let expected = *hashes.last().unwrap();
        store.close().unwrap();
        make_older(&path, format, &missing);
        let found = verify(&path, |_| {}).unwrap();
        let is_missing = |damage: &Damage| damage.table == "journal";
        assert!(found.damages.iter().all(|damage| format == 1 && is_missing(damage)), "{:?}", found.damages);
        let mut store = Store::open(&path, StoreOptions::default()).unwrap();
        assert_eq!(store.content_hash().unwrap(), expected, "format {format}");
        store.close().unwrap();
        assert!(Store::open(&path, StoreOptions::default()).is_ok(), "it has this format now");
    }
}

/// Makes a file what an older version would have written: without the tables it did not have.
fn make_older(path: &Path, format: u8, missing: &[TableDefinition<'static, &[u8], &[u8]>]) {
    let database = Database::open(path).unwrap();
    let writing = database.begin_write().unwrap();
    for table in missing {
        assert!(redb::ReadableTableMetadata::is_empty(&writing.open_table(*table).unwrap()).unwrap());
        writing.delete_table(*table).unwrap();
    }
    let mut meta = writing.open_table(META).unwrap();
    meta.insert(&b"format\0\x01"[..], &sealed_format(format)[..]).unwrap();
    drop(meta);
    writing.commit().unwrap();
}

/// The format row as every format has written it: the number as postcard, and its seal.
fn sealed_format(format: u8) -> Vec<u8> {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let (key, payload) = (b"format\0\x01", [format]);
    hasher.update(b"meta");
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(&payload);
    [&payload[..], &hasher.digest().to_le_bytes()[..]].concat()
}
