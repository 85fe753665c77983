//! Verifying a file: what is sound is called sound, what is damaged is named, and nothing is changed.

use std::path::Path;

use redb::ReadableDatabase;
use redb::ReadableTable;
use redb::TableDefinition;
use redb::TableHandle;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::error::OpenError;
use seriatim::error::OperateRefusal;
use seriatim::store::Verification;
use seriatim::testing::ManualClock;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;
use crate::promises::rich::rich_file;

type RawTable<'t> = TableDefinition<'t, &'static [u8], &'static [u8]>;

fn verify(path: &Path) -> Result<Verification, OpenError> {
    seriatim::store::verify(path, |_| {})
}

/// Whether the file is called sound.
fn is_sound(path: &Path) -> bool {
    verify(path).is_ok_and(|found| found.is_sound())
}

#[tokio::test]
async fn a_file_in_order_is_sound_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    rich_file(&path, 1).await;
    let (before, files) = (std::fs::read(&path).unwrap(), folder.path().read_dir().unwrap().count());
    let mut steps = Vec::new();
    let found = seriatim::store::verify(&path, |progress| steps.push(progress.step)).unwrap();
    assert!(found.is_sound() && found.compared, "{:#?}", found.damages);
    assert_eq!(found.messages, 20 + 4 + 40);
    assert!(found.rows > 100 && found.commits > 0, "{found:?}");
    steps.dedup();
    assert_eq!(steps.len(), 4, "{steps:?}");
    assert!(std::fs::read(&path).unwrap() == before, "it was changed");
    assert_eq!(folder.path().read_dir().unwrap().count(), files, "something was left beside it");
}

#[tokio::test]
async fn a_file_whose_process_died_is_sound_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send_batch((0..50).map(|n| Message::new(n.to_string()).workflow("w"))).await.unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let found = verify(&copy).unwrap();
    assert!(found.is_sound(), "{:#?}", found.damages);
    assert_eq!(found.messages, 50);
    assert!(std::fs::read(&copy).unwrap() == before, "it was changed");
}

#[tokio::test]
async fn a_file_that_an_engine_has_open_is_refused_and_the_holder_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.unwrap();
    match verify(&path) {
        Err(OpenError::Held { holder, .. }) => assert_eq!(holder, "this process"),
        other => panic!("{other:?}"),
    }
    engine.close().await;
    assert!(is_sound(&path));
}

#[tokio::test]
async fn what_is_no_engines_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    assert!(matches!(verify(&path), Err(OpenError::Fault(_))), "it is not there");
    std::fs::write(&path, "hello").unwrap();
    assert!(matches!(verify(&path), Err(OpenError::Foreign { .. })));
    drop(redb::Database::create(folder.path().join("theirs.redb")).unwrap());
    assert!(matches!(verify(&folder.path().join("theirs.redb")), Err(OpenError::Foreign { .. })));
}

/// Everything that can be looked up in a file, as a text.
async fn content(path: &Path) -> String {
    let clock = ManualClock::new(Timestamp::from_millis(2_000_000));
    let engine = Engine::builder(path).clock(clock).open().await.expect("a sound file opens");
    let mut all = String::new();
    for view in engine.client().queues(None, 10).await.expect("the engine is open") {
        let queue = engine.client().queue(view.name.as_str()).expect("a good name");
        let messages = queue.peek(SequenceNumber::new(0), 1_000).await.expect("the queue exists");
        let workflows = queue.workflows(None, 1_000).await.expect("the queue exists");
        all.push_str(&format!("{view:?} {workflows:?} {messages:?}\n"));
    }
    engine.close().await;
    all
}
#[tokio::test]
async fn a_flipped_bit_is_found_or_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (path, flipped) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    rich_file(&path, 1).await;
    // A backup has few pages that nothing uses any more.
    let engine = Engine::open(&path).await.unwrap();
    engine.client().backup(&flipped).await.unwrap();
    engine.close().await;
    let whole = std::fs::read(&flipped).unwrap();
    let expected = content(&flipped).await;
    let (mut found, mut harmless) = (0, 0);
    // A fixed stride through what is not empty, so that a failure names the bit.
    let written: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    for (n, at) in written.iter().step_by(written.len() / 300 + 1).enumerate() {
        let bit = at * 8 + n % 8;
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&flipped, &bytes).unwrap();
        if !is_sound(&flipped) {
            found += 1;
            continue;
        }
        assert!(content(&flipped).await == expected, "bit {bit} changes what is seen");
        harmless += 1;
    }
    println!("{found} found, {harmless} harmless");
    assert!(found > 10, "{found} found, {harmless} harmless");
}

/// Every row of every table of the file.
fn rows(path: &Path) -> Vec<(String, Vec<u8>)> {
    let database = redb::Database::open(path).expect("a redb file");
    let transaction = database.begin_read().expect("it opens");
    let mut rows = Vec::new();
    for table in transaction.list_tables().expect("it has tables") {
        let definition = RawTable::new(table.name());
        let opened = transaction.open_table(definition).expect("it is there");
        let keys =
            opened.iter().expect("it can be read").map(|row| row.expect("it can be read").0.value().to_vec());
        rows.extend(keys.map(|key| (table.name().to_owned(), key)));
    }
    rows
}

fn delete(path: &Path, table: &str, key: &[u8]) {
    let database = redb::Database::open(path).expect("a redb file");
    let transaction = database.begin_write().expect("it opens");
    transaction
        .open_table(RawTable::new(table))
        .expect("it is there")
        .remove(key)
        .expect("it can be written");
    transaction.commit().expect("it can be written");
}

#[tokio::test]
async fn what_opening_refuses_is_not_called_sound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    rich_file(&path, 1).await;
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    drop(transaction.open_table(RawTable::new("of somebody else")).unwrap());
    transaction.commit().unwrap();
    drop(database);
    let found = verify(&path).unwrap();
    assert!(found.damages[0].to_string().contains("of somebody else"), "{:#?}", found.damages);
    assert!(Engine::open(&path).await.is_err());
}

#[tokio::test]
async fn a_row_that_is_missing_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    rich_file(&path, 1).await;
    let mut tables = std::collections::BTreeSet::new();
    for (table, key) in rows(&path) {
        std::fs::copy(&path, &copy).unwrap();
        delete(&copy, &table, &key);
        // What is counted is in the journal too, whose beginning and end are where they are. The mark of a place that
        // the workflow has left behind is not missed before somebody comes for that place.
        let left_behind = table == "marks" && key.ends_with(&1_u64.to_be_bytes());
        // The audit begins and ends where it does.
        let is_at_an_end = table == "audit" && matches!(key[..], [.., 1 | 4]);
        if matches!(table.as_str(), "meta" | "journal" | "tallies") || left_behind || is_at_an_end {
            continue;
        }
        tables.insert(table.clone());
        let found = verify(&copy).unwrap();
        assert!(!found.is_sound(), "nobody misses {key:?} of {table}");
    }
    assert_eq!(tables.len(), 22, "the file has rows in every table: {tables:?}");
}

#[tokio::test]
async fn a_commit_that_is_missing_breaks_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    rich_file(&path, 1).await;
    let commits: Vec<_> = rows(&path).into_iter().filter(|(table, _)| table == "journal").collect();
    let (table, key) = &commits[commits.len() / 2];
    delete(&path, table, key);
    let found = verify(&path).unwrap();
    assert!(!found.compared, "rows are not compared without the whole journal");
    let damage = &found.damages[0];
    assert_eq!((damage.table, damage.problem.as_str()), ("journal", "it does not follow the commit before"));
}

#[tokio::test]
async fn a_row_that_was_altered_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    rich_file(&path, 1).await;
    let (table, key) = rows(&path).into_iter().find(|(table, _)| table == "states").expect("a state");
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(RawTable::new(&table)).unwrap().insert(&*key, &b"forged"[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let found = verify(&path).unwrap();
    assert_eq!(found.damages_total, 1, "{:#?}", found.damages);
    let words = "states [queue positions, workflow \"d\"]: a checksum does not fit";
    assert_eq!(found.damages[0].to_string(), words);
}

/// Two messages of one workflow under the same ID would be one in the list of those that wait.
#[tokio::test]
async fn a_dead_letter_does_not_go_back_under_an_id_that_waits() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::After)).await;
    let early = |after: &str| Message::new("").workflow("w").after(after).message_id("5");
    let first = fixture.accept(early("4").time_to_live(seconds(10))).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.counts().await.dead_lettered, 1);
    fixture.accept(early("9")).await;
    let refused = fixture.queue.redrive(first).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&OperateRefusal::PlacePassed(first)));
}

/// A message ID that is in the chain is not used twice, and to skip the gap behind its second use changes nothing there.
#[tokio::test]
async fn who_followed_an_id_keeps_the_place_when_the_gap_behind_it_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.unwrap();
    let options = QueueOptions::default().order(Order::After);
    let queue = engine.client().create_queue("q", options).await.unwrap();
    let message = |id: &'static str| Message::new(id).workflow("w").message_id(id);
    queue.send(message("1").first()).await.unwrap();
    // Successors could not say which of the two they follow.
    queue.send(message("1").after("3")).await.unwrap_err();
    for (id, after) in [("2", "1"), ("3", "2"), ("5", "4")] {
        queue.send(message(id).after(after)).await.unwrap();
    }
    let mut bodies = Vec::new();
    for skips in [true, false] {
        while let Some(mut delivery) = queue.receive(seconds(0)).await.unwrap() {
            bodies.push(delivery.message().body.clone());
            delivery.complete().await.unwrap();
        }
        if skips {
            queue.workflow("w").unwrap().skip_gap().await.unwrap();
        }
    }
    assert_eq!(bodies, ["1", "2", "3"], "what follows an ID that nobody has used is given up");
    assert_eq!(queue.view().await.unwrap().counts.dead_lettered, 1);
    let again = queue.send(message("2").after("1")).await.unwrap();
    assert_eq!(again, Receipt::AlreadySettled, "it was completed, not skipped");
    engine.close().await;
    let found = verify(&path).unwrap();
    assert!(found.is_sound(), "{:#?}", found.damages);
}
