//! A journal row from elsewhere is refused although its own checksum fits: each row names the checksum of the one before.

use redb::Database;
use redb::ReadableDatabase;
use xxhash_rust::xxh3::xxh3_64;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::codec;
use crate::engine::store::journal;
use crate::engine::store::log::Entry;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::upgrade::FORMAT_3;
use crate::engine::tests::crash::upgrade::older;
use crate::id::QueueName;
use crate::message::Message;
use crate::queue::QueueOptions;

/// A disk with a store that was sent these bodies, one commit each, all of them in the journal.
fn sent(bodies: &[&str]) -> Disk {
    let (disk, queue) = (Disk::new(Image::default()), QueueName::new("q").unwrap());
    let mut store = Store::with_backend(disk.clone(), StoreOptions::default()).unwrap();
    let mut rules = Rules::default();
    let create = Command::CreateQueue(verbs::CreateQueue {
        name: queue.clone(),
        options: Box::new(QueueOptions::default()),
    });
    let send = |body: &&str| {
        let message = Message::new((*body).to_owned()).workflow("w").check().unwrap();
        Command::Send(verbs::Send { queue: queue.clone(), messages: vec![message] })
    };
    for command in std::iter::once(create).chain(bodies.iter().map(send)) {
        let applied = store.turn(|turn| {
            rules.apply(ClockInstants::same(Timestamp::from_millis(1_000)), command, turn)?;
            turn.stamp(Timestamp::from_millis(1_000));
            Ok(())
        });
        applied.unwrap();
    }
    store.close().unwrap();
    disk
}

fn database(disk: &Disk) -> Database {
    Database::builder().create_with_backend(disk.clone()).unwrap()
}

fn rows(disk: &Disk) -> Vec<(u64, Vec<u8>)> {
    let transaction = database(disk).begin_read().unwrap();
    let mut rows = Vec::new();
    let read = journal::read_all(&transaction, |position, row| {
        rows.push((position, row.to_vec()));
        Ok(())
    });
    read.unwrap();
    rows
}

fn opens(disk: Disk) -> bool {
    Store::open_backend(disk, StoreOptions::default()).is_ok()
}

#[test]
fn a_journal_row_of_another_history_is_refused() {
    let other = rows(&sent(&["a", "x", "c"]));
    let own = rows(&sent(&["a", "b", "c"]));
    let differing: Vec<usize> = (0..own.len()).filter(|at| own[*at] != other[*at]).collect();
    assert_eq!(differing.len(), 2, "the second message's row, and the next, which names its checksum");
    let disk = sent(&["a", "b", "c"]);
    assert!(opens(disk.clone()), "it is sound so far");
    let database = database(&disk);
    let transaction = database.begin_write().unwrap();
    let (position, row) = &other[differing[0]];
    journal::append(&transaction, std::iter::once(Entry { position: *position, bytes: row })).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(!opens(disk), "its checksum fits, and it does not lead to the row behind it");
}

#[test]
fn an_older_journal_row_that_does_not_lead_to_the_next_is_refused() {
    let disk = Disk::new(older(FORMAT_3));
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let mut rows = Vec::new();
    let read = journal::read_all(&database.begin_read().unwrap(), |position, row| {
        rows.push((position, row.to_vec()));
        Ok(())
    });
    read.unwrap();
    let (position, mut row) = rows.swap_remove(rows.len() / 2);
    row.truncate(row.len() - 8);
    // Another instant, which stands behind two numbers, and the checksum that fits it.
    let (_, rest): ((u64, u64), _) = codec::decode_first(&row).unwrap();
    let at = row.len() - rest.len();
    row[at] ^= 1;
    let checksum = xxh3_64(&row);
    row.extend(checksum.to_le_bytes());
    let transaction = database.begin_write().unwrap();
    journal::append(&transaction, std::iter::once(Entry { position, bytes: &row })).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = Store::open_backend(disk, StoreOptions::default()).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("does not follow")), "{error:?}");
}
