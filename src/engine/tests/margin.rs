//! The margin: what a crash, a flipped bit, a body of somebody's making, a backup, and another version find in it.

use std::path::Path;

use redb::Database;
use redb::ReadableDatabase;
use redb::StorageBackend;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Job;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::create::write_format;
use crate::engine::store::header::REGION_HEADER_PAGES;
use crate::engine::store::journal;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::margin::FRAME_BYTES;
use crate::engine::store::margin::PAGES;
use crate::engine::store::margin::write_empty_with_margin;
use crate::engine::store::meta;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::schema;
use crate::engine::store::transaction::begin;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::disk::Op;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::image::PAGE;
use crate::engine::tests::crash::play::surface_of;
use crate::id::QueueName;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::store::verify;

/// A store on a disk of tests, to which messages are sent one commit each.
struct Sending {
    disk: Disk,
    store: Store,
    rules: Rules,
}

impl Sending {
    /// A new store with a queue.
    fn begin() -> Sending {
        let disk = Disk::new(Image::default());
        let store = Store::with_backend(disk.clone(), StoreOptions::default()).unwrap();
        let mut sending = Sending { disk, store, rules: Rules::default() };
        sending.create_queue();
        sending
    }

    /// The same in a file of its own; its disk of tests is not used.
    fn begin_in(path: &Path) -> Sending {
        let store = Store::open(path, StoreOptions::default()).unwrap();
        let mut sending = Sending { disk: Disk::new(Image::default()), store, rules: Rules::default() };
        sending.create_queue();
        sending
    }

    fn open(disk: Disk) -> Result<Sending, String> {
        let store = Store::open_backend(disk.clone(), StoreOptions::default());
        store.map(|store| Sending { disk, store, rules: Rules::default() }).map_err(|error| error.to_string())
    }

    fn create_queue(&mut self) {
        self.apply(Command::CreateQueue(verbs::CreateQueue {
            name: QueueName::new("q").unwrap(),
            options: Box::new(QueueOptions::default()),
        }));
    }

    fn apply(&mut self, command: Command) {
        let job = self.prepare(command);
        self.store.commit(&[job]).unwrap();
    }

    /// Does something, and leaves its commit to be written.
    fn prepare(&mut self, command: Command) -> Job {
        let now = Timestamp::from_millis(1_000);
        let prepared = self.store.prepare(|turn| {
            self.rules.apply(ClockInstants::same(now), command, turn)?;
            turn.stamp(now);
            Ok(())
        });
        prepared.unwrap().1.expect("it changes something")
    }

    fn send(&mut self, body: impl Into<Vec<u8>>) -> &mut Sending {
        self.apply(send(body));
        self
    }

    /// Sends two messages in two turns that share a commit.
    fn send_together(&mut self, bodies: [&str; 2]) -> &mut Sending {
        let jobs = bodies.map(|body| self.prepare(send(body)));
        self.store.commit(&jobs).unwrap();
        self
    }

    /// The number of what can be seen of it, and its last commit.
    fn state(&mut self) -> (u64, u64) {
        (surface_of(&mut self.store).unwrap(), self.store.place().0)
    }

    /// What a crash leaves: all that was synced.
    fn crashed(&self) -> Image {
        self.disk.synced()
    }
}

fn send(body: impl Into<Vec<u8>>) -> Command {
    let message = Message::new(body.into()).workflow("w").check().unwrap();
    Command::Send(verbs::Send { queue: QueueName::new("q").unwrap(), messages: vec![message] })
}

/// A page of the margin.
fn page_of_margin(image: &Image, page: usize) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    image.read((1 + page) * PAGE, &mut bytes).unwrap();
    bytes
}

fn image_of(path: &Path) -> Image {
    let mut image = Image::default();
    image.write(0, &std::fs::read(path).unwrap());
    image
}

/// The positions of the rows that stand at the beginning of a page of the margin.
fn positions_in_margin(image: &Image) -> Vec<u64> {
    let pages = (0..PAGES).map(|page| page_of_margin(image, page));
    let row = |page: Vec<u8>| {
        let len = u32::from_le_bytes(*page.first_chunk().unwrap()) as usize;
        let row = page.get(FRAME_BYTES..FRAME_BYTES + len)?;
        RowReader::open(row).ok().map(|(header, ..)| header.position)
    };
    pages.filter_map(row).collect()
}

/// The positions of the rows of the journal, and the file's format, as whoever knows of no margin would find them.
fn without_margin(disk: Disk) -> (Vec<u64>, u32) {
    let database = Database::builder().create_with_backend(disk).unwrap();
    let transaction = database.begin_read().unwrap();
    let mut positions = Vec::new();
    let read = journal::read_all(&transaction, |position, _| {
        positions.push(position);
        Ok(())
    });
    read.unwrap();
    (positions, meta::row_of(&transaction, FORMAT_ROW).unwrap().unwrap())
}

#[test]
fn what_a_crash_leaves_in_the_margin_behind_turns_that_shared_a_commit_is_there_when_the_file_is_opened() {
    let mut sending = Sending::begin();
    sending.send("a").send_together(["b", "c"]);
    assert_eq!(without_margin(Disk::new(sending.crashed())).0, [1, 2, 3, 4], "they are not in the margin");
    sending.send("d").send("e");
    assert_eq!(positions_in_margin(&sending.crashed()), [5, 6]);
    let (surface, last) = sending.state();
    let mut opened = Sending::open(Disk::new(sending.crashed())).unwrap();
    assert_eq!(surface_of(&mut opened.store).unwrap(), surface);
    assert!(opened.store.place().0 >= last);
}

#[test]
fn what_a_crash_leaves_in_the_margin_is_there_when_the_file_is_opened() {
    let mut sending = Sending::begin();
    for body in ["a", "b", "c"] {
        sending.send(body);
    }
    assert_eq!(positions_in_margin(&sending.crashed()), [2, 3, 4], "redb has committed only the queue");
    assert_eq!(without_margin(Disk::new(sending.crashed())), (vec![1], schema::FORMAT_WITH_MARGIN));
    let mut again = Sending::open(Disk::new(sending.crashed())).unwrap();
    assert_eq!(again.state(), sending.state());
    assert_eq!(without_margin(Disk::new(again.crashed())), (vec![1, 2, 3, 4], schema::FORMAT));
}

#[test]
fn a_crash_after_any_commit_of_many_rounds_loses_nothing() {
    let mut sending = Sending::begin();
    for number in 0..5 * PAGES {
        // Some take two pages, one of them more than are left, and some are so long that redb writes them.
        sending.send(vec![b'.'; [10, 5_000, 300, 10, 7_000, 200, 10_000][number % 7]]);
        let mut again = Sending::open(Disk::new(sending.crashed())).unwrap();
        assert_eq!(again.state(), sending.state(), "after message {number}");
        again.send("one more");
        let mut once_more = Sending::open(Disk::new(again.crashed())).unwrap();
        assert_eq!(once_more.state(), again.state(), "after message {number} and one more");
    }
}

#[test]
fn of_a_row_that_is_not_what_was_written_the_last_is_taken_for_a_crash_and_each_before_it_for_damage() {
    let mut sending = Sending::begin();
    let mut states = vec![sending.state()];
    for body in ["a", "b", "c"] {
        states.push(sending.send(body).state());
    }
    // In its length, its round, and what it says.
    for (row, byte) in (0..3).flat_map(|row| [0, 5, FRAME_BYTES + 20].map(|byte| (row, byte))) {
        let mut image = sending.crashed();
        image.flip(((1 + row) * PAGE + byte) * 8);
        match Sending::open(Disk::new(image)) {
            // The first row of a round begins with its own round.
            Ok(mut opened) if (row, byte) == (0, 5) => assert_eq!(opened.state(), sending.state()),
            Ok(mut opened) => assert!(row == 2 && opened.state() == states[2], "row {row}, {byte}"),
            Err(error) => {
                assert!(row < 2 && error.contains("a row is missing"), "row {row}, {byte}: {error}")
            }
        }
    }
}

#[test]
fn a_commit_of_redb_that_is_taken_back_is_noticed_by_what_follows_it_in_the_margin() {
    let mut sending = Sending::begin();
    let created = sending.crashed();
    sending.send(vec![b'.'; 10_000]).send("a");
    let closed = {
        let sending = Sending::open(Disk::new(sending.crashed())).unwrap();
        let disk = sending.disk.clone();
        sending.store.close().unwrap();
        disk.image()
    };
    let mut opened = Sending::open(Disk::new(closed.clone())).unwrap();
    opened.send(vec![b'.'; 10_000]).send("a");
    // The last commit of redb, and with a file that was closed the one that says that there may be rows in the margin.
    for (mut taken_back, then) in [(created, sending), (closed, opened)] {
        let mut margin = vec![0; PAGES * PAGE];
        then.crashed().read(PAGE, &mut margin).unwrap();
        taken_back.write(PAGE, &margin);
        let error = Sending::open(Disk::new(taken_back)).err();
        assert!(error.is_some_and(|error| error.contains("a row is missing")));
    }
}

/// What passes for a row, were it at the beginning of a page of the margin.
fn pretended_row() -> Vec<u8> {
    let header = JournalHeader {
        position: 1 << 40,
        previous: 7,
        time: Timestamp::from_millis(1_000),
        numbers: Default::default(),
        counters: Vec::new(),
        wall: Default::default(),
    };
    let row = RowWriter::new(&header, Vec::new()).finish().0;
    [&u32::try_from(row.len()).unwrap().to_le_bytes()[..], &[0; 8], &row[..]].concat()
}

#[test]
fn a_body_that_looks_like_rows_of_the_margin_is_none() {
    let mut sending = Sending::begin();
    // Wherever a page begins in it, such a row stands there; a later row has its first page, and a crash leaves the rest.
    let framed = pretended_row();
    let pretended = framed.repeat(7_000 / framed.len());
    let alignments = (0..framed.len()).map(|skipped| pretended[skipped..].to_vec());
    let mut met = 0;
    for body in alignments {
        sending.send("a").send(body).send(vec![b'.'; 10_000]).send("a").send("a");
        met += usize::from(positions_in_margin(&sending.crashed()).contains(&(1 << 40)));
        let mut again = Sending::open(Disk::new(sending.crashed())).unwrap();
        assert_eq!(again.state(), sending.state());
    }
    assert!(met > 0, "one of them stood where a page begins");
}

#[test]
fn what_a_crash_leaves_of_a_file_that_is_made_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("a"), folder.path().join("a.new"));
    let disk = Disk::recording(Image::default());
    write_empty_with_margin(&disk).unwrap();
    let log = disk.take_log();
    for count in 1..log.len() {
        let mut left = Image::default();
        for op in &log[..count] {
            match op {
                Op::Write { offset, data } => left.write(*offset, data),
                Op::SetLen(len) => left.set_len(*len),
                Op::Sync => {}
            }
        }
        let mut bytes = vec![0; left.len()];
        left.read(0, &mut bytes).unwrap();
        std::fs::write(&new, bytes).unwrap();
        Store::open(&path, StoreOptions::default()).unwrap().close().unwrap();
        assert!(!new.exists(), "after {count} steps");
        std::fs::remove_file(&path).unwrap();
    }
}

/// Whether a file has pages for a margin.
fn has_margin(path: &Path) -> bool {
    std::fs::read(path).unwrap()[REGION_HEADER_PAGES..][..4] != [0; 4]
}

#[test]
fn a_copy_has_what_is_in_the_margin_and_a_margin_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a"), folder.path().join("b"));
    let mut sending = Sending::begin_in(&path);
    sending.send("a").send("b");
    sending.store.committer().snapshot().unwrap().back_up_to(&copy, &|_| Ok(())).unwrap();
    sending.send("c");
    assert_eq!(verify(&copy, |_| {}).unwrap().messages, 2);
    assert!(has_margin(&copy) && has_margin(&path));
}

#[test]
fn a_file_that_was_not_closed_is_verified_with_what_is_in_its_margin() {
    let folder = tempfile::tempdir().unwrap();
    let (path, left) = (folder.path().join("a"), folder.path().join("left"));
    let mut sending = Sending::begin_in(&path);
    sending.send("a").send("b");
    std::fs::copy(&path, &left).unwrap();
    assert_eq!(positions_in_margin(&image_of(&left)), [2, 3]);
    let found = verify(&left, |_| {}).unwrap();
    assert!(found.is_sound(), "{:?}", found.damages);
    assert_eq!(found.messages, 2);
}

#[test]
fn a_file_that_was_closed_has_all_in_its_journal_and_the_format_of_before() {
    let mut sending = Sending::begin();
    sending.send("a").send("b");
    let disk = sending.disk.clone();
    sending.store.close().unwrap();
    assert_eq!(without_margin(disk), (vec![1, 2, 3], schema::FORMAT));
}

#[test]
fn a_file_that_was_compacted_has_the_format_of_before() {
    let mut sending = Sending::begin();
    sending.send("a").send("b");
    let disk = Disk::new(sending.crashed());
    Store::open_backend(disk.clone(), StoreOptions::default()).unwrap().compact().unwrap();
    assert_eq!(without_margin(disk), (vec![], schema::FORMAT));
}

#[test]
fn after_a_commit_of_redb_that_failed_the_margin_takes_nothing() {
    // Whether what was in it is in the journal is not known.
    let mut sending = Sending::begin();
    sending.send("a");
    sending.disk.cut_after(0);
    let committer = sending.store.committer();
    assert!(committer.end_margin().is_err());
    let margin = sending.store.margin.as_ref().unwrap().lock();
    assert!(margin.is_in_use() && !margin.takes(b"short"));
}

#[test]
fn a_row_that_is_missing_is_found_by_who_verifies_and_the_rest_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let (path, left) = (folder.path().join("a"), folder.path().join("left"));
    let mut sending = Sending::begin_in(&path);
    sending.send("a").send("b");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[PAGE + FRAME_BYTES + 20] ^= 1;
    std::fs::write(&left, &bytes).unwrap();
    let found = verify(&left, |_| {}).unwrap();
    assert_eq!(found.damages_total, 1, "{:?}", found.damages);
    assert!(found.damages[0].to_string().contains("a row is missing"), "{:?}", found.damages);
    assert!(Store::open(&left, StoreOptions::default()).is_err());
    assert!(std::fs::read(&left).unwrap() == bytes, "a refused file is left as it was");
}

#[test]
fn a_file_without_a_margin_is_written_by_redb_alone() {
    let disk = Disk::new(Image::default());
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let transaction = begin(&database, StoreOptions::default()).unwrap();
    write_format(&transaction).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let mut sending = Sending::open(disk).unwrap();
    sending.create_queue();
    sending.send("a").send("b");
    assert_eq!(without_margin(Disk::new(sending.crashed())), (vec![1, 2, 3], schema::FORMAT));
    let mut again = Sending::open(Disk::new(sending.crashed())).unwrap();
    assert_eq!(again.state(), sending.state());
}

#[test]
fn a_strict_commit_is_written_by_redb() {
    let strict = StoreOptions { strict: true, ..StoreOptions::default() };
    let disk = Disk::new(Image::default());
    let store = Store::with_backend(disk.clone(), strict).unwrap();
    let mut sending = Sending { disk, store, rules: Rules::default() };
    sending.create_queue();
    sending.send("a").send("b");
    assert_eq!(without_margin(Disk::new(sending.crashed())).0, [1, 2, 3]);
}

#[test]
fn redb_leaves_the_pages_of_the_margin_alone() {
    let mut sending = Sending::begin();
    sending.send("a");
    let disk = sending.disk.clone();
    sending.store.close().unwrap();
    let noise: Vec<u8> = (0..PAGES * PAGE).map(|at| (at * 7 + at / 251) as u8).collect();
    disk.write(PAGE as u64, &noise).unwrap();
    let mut database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let table = redb::TableDefinition::<u64, &[u8]>::new("large");
    for number in 0..40 {
        let transaction = database.begin_write().unwrap();
        transaction.open_table(table).unwrap().insert(number, &[7; 40_000][..]).unwrap();
        transaction.commit().unwrap();
    }
    let transaction = database.begin_write().unwrap();
    transaction.delete_table(table).unwrap();
    transaction.commit().unwrap();
    while database.compact().unwrap() {}
    assert!(database.check_integrity().unwrap());
    drop(database);
    let mut left = vec![0; noise.len()];
    disk.read(PAGE as u64, &mut left).unwrap();
    assert!(left == noise);
    Store::open_backend(disk, StoreOptions::default()).unwrap();
}
