//! What is wrong with the rows of a block is found, and named.

use std::path::Path;
use std::path::PathBuf;

use redb::Database;
use redb::ReadableDatabase;
use redb::TableHandle;
use redb::WriteTransaction;

use crate::engine::store::block::BLOCK_BYTES;
use crate::engine::store::block::BlockReader;
use crate::engine::store::block::Blocks;
use crate::engine::store::blocks::BlockTable;
use crate::engine::store::checksum::checksum;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::schema;
use crate::engine::store::schema::Messages;
use crate::engine::store::snapshot::Snapshot;
use crate::engine::store::table::Table;
use crate::engine::tests::flushing::flushing;
use crate::engine::tests::flushing::story;
use crate::engine::verify::report::Verification;
use crate::engine::verify::verify::verify;
use crate::error::Fault;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A file with flushed rows, and its folder.
fn flushed_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    story(&path, flushing()).0.close().unwrap();
    assert!(found_in(&path).is_sound(), "{:?}", found_in(&path).damages);
    (folder, path)
}

fn found_in(path: &Path) -> Verification {
    verify(path, |_| {}).unwrap()
}

fn problems(path: &Path) -> Vec<String> {
    found_in(path).damages.iter().map(ToString::to_string).collect()
}

/// The blocks of a table: their keys, and their rows.
fn blocks_of(path: &Path, definition: RawTableDefinition) -> Vec<(Vec<u8>, Rows)> {
    let database = Database::open(path).unwrap();
    let reading = database.begin_read().unwrap();
    let table = reading.open_table(definition).unwrap();
    let blocks = table.range::<&[u8]>(..).unwrap().map(|block| {
        let (key, checksummed) = block.unwrap();
        let rows = BlockReader::open(definition, key.value(), checksummed.value()).unwrap();
        (key.value().to_vec(), rows.all_rows().unwrap())
    });
    blocks.collect()
}

/// A block with more than one row.
fn block_of_some(path: &Path) -> (Vec<u8>, Rows) {
    let block = blocks_of(path, Messages::DEFINITION).into_iter().find(|(_, rows)| rows.len() > 2);
    block.expect("a block has more than two rows")
}

fn change(path: &Path, work: impl FnOnce(&WriteTransaction)) {
    let database = Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    work(&transaction);
    transaction.commit().unwrap();
}

/// Writes rows as a block under some key.
fn put(transaction: &WriteTransaction, key: &[u8], rows: &Rows) {
    let mut blocks = Blocks::new(None, BLOCK_BYTES);
    rows.iter().for_each(|(key, payload)| blocks.write(key, payload));
    let payload = blocks.finish().pop().map(|block| block.bytes).unwrap_or_default();
    let checksummed = checksum(&Messages::DEFINITION, key, payload);
    transaction.open_table(Messages::DEFINITION).unwrap().insert(key, checksummed.as_slice()).unwrap();
}

#[test]
fn a_row_that_is_missing_in_a_block_is_missed() {
    let (folder, path) = flushed_file();
    let copy = folder.path().join("b.redb");
    for definition in schema::in_blocks() {
        let rows: Rows = blocks_of(&path, definition).into_iter().flat_map(|(_, rows)| rows).collect();
        assert!(!rows.is_empty(), "{} has no row", definition.name());
        for (key, _) in rows {
            std::fs::copy(&path, &copy).unwrap();
            change(&copy, |transaction| {
                let mut table = BlockTable::open(transaction, definition).unwrap();
                table.merge(&[(&key[..], None)]).unwrap();
            });
            assert!(!found_in(&copy).is_sound(), "nobody misses {key:?} of {}", definition.name());
        }
    }
}

#[test]
fn a_backup_counts_each_row_of_a_block() {
    let (folder, path) = flushed_file();
    // What the journal has is counted there.
    change(&path, |transaction| {
        transaction.delete_table(JOURNAL).unwrap();
        drop(transaction.open_table(JOURNAL).unwrap());
    });
    let backed_up = |name: &str| {
        let database = Database::open(&path).unwrap();
        let snapshot = Snapshot::new(database.begin_read().unwrap(), Vec::new());
        snapshot.write_to(&folder.path().join(name), &|_| Ok(())).unwrap()
    };
    let in_blocks = schema::in_blocks().flat_map(|table| blocks_of(&path, table));
    let rows: usize = in_blocks.map(|(_, rows)| rows.len()).sum();
    let all = backed_up("b.redb");
    change(&path, |transaction| {
        for table in schema::in_blocks() {
            transaction.open_table(table).unwrap().retain(|_, _| false).unwrap();
        }
    });
    assert_eq!(all - backed_up("c.redb"), rows as u64);
}

#[test]
fn a_copy_that_panics_is_a_fault_and_leaves_nothing_behind() {
    let (folder, path) = flushed_file();
    let database = Database::open(&path).unwrap();
    let snapshot = Snapshot::new(database.begin_read().unwrap(), Vec::new());
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = files();
    let copied = snapshot.write_to(&folder.path().join("b.redb"), &|_| panic!("planted"));
    assert!(matches!(&copied, Err(Fault::Defect(panic)) if panic.starts_with("planted")), "{copied:?}");
    assert_eq!(files(), before);
}

#[test]
fn a_row_in_a_block_where_it_is_not_found_is_named() {
    let (_folder, path) = flushed_file();
    let (key, rows) = block_of_some(&path);
    change(&path, |transaction| {
        transaction.open_table(Messages::DEFINITION).unwrap().remove(key.as_slice()).unwrap();
        put(transaction, &rows[1].0, &rows);
    });
    let problems = problems(&path);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].ends_with("it stands in a block where it is not found"), "{problems:?}");
}

#[test]
fn a_row_behind_the_next_block_is_named() {
    let (_folder, path) = flushed_file();
    let (key, mut rows) = block_of_some(&path);
    let second = rows.remove(1);
    change(&path, |transaction| {
        put(transaction, &key, &rows);
        put(transaction, &second.0, &vec![second.clone()]);
    });
    let problems = problems(&path);
    assert!(problems[0].ends_with("it stands behind a greater key"), "{problems:?}");
}

#[test]
fn a_block_without_a_row_and_a_block_that_was_altered_are_named() {
    let (_folder, path) = flushed_file();
    let (key, _) = block_of_some(&path);
    change(&path, |transaction| put(transaction, &key, &Rows::new()));
    assert!(problems(&path)[0].ends_with("a block has no row"), "{:?}", problems(&path));
    change(&path, |transaction| {
        transaction.open_table(Messages::DEFINITION).unwrap().insert(key.as_slice(), &b"forged"[..]).unwrap();
    });
    let words = "a checksum does not fit: that of the block of rows which begins there";
    assert!(problems(&path)[0].ends_with(words), "{:?}", problems(&path));
}
