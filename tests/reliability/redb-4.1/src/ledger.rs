//! A table that a seed writes, commit after commit, with its number in each.

use std::collections::BTreeMap;

use redb::Database;
use redb::ReadableDatabase;
use redb::ReadableTable;
use redb::TableDefinition;

use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::disk::Op;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::random::Random;

const TABLE: TableDefinition<u64, Vec<u8>> = TableDefinition::new("ledger");
/// The row that holds the number of the last commit.
const LAST: u64 = u64::MAX;
/// How many rows there are; few, so that pages are freed and used again.
const ROWS: u64 = 24;
const ROW_BYTES_MAX: u64 = 3_000;
const CACHE_BYTES: usize = 1024 * 1024;

pub(crate) type Rows = BTreeMap<u64, Vec<u8>>;

/// What was done to a disk.
pub(crate) struct Story {
    pub(crate) log: Vec<Op>,
    /// How many operations it took until the file was there.
    pub(crate) opened: usize,
}

pub(crate) fn open(disk: Disk) -> Result<Database, String> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder.create_with_backend(disk).map_err(|error| error.to_string())
}

/// Everything in the table.
pub(crate) fn rows(database: &Database) -> Result<Rows, String> {
    let transaction = database.begin_read().map_err(|error| error.to_string())?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Rows::new()),
        Err(error) => return Err(error.to_string()),
    };
    let rows = table.iter().map_err(|error| error.to_string())?;
    rows.map(|row| row.map(|(key, value)| (key.value(), value.value())).map_err(|error| error.to_string()))
        .collect()
}

/// Plays so many commits on an empty disk.
pub(crate) fn story(seed: u64, commits: u64) -> Story {
    let (disk, mut random) = (Disk::recording(Image::default()), Random::new(seed));
    let database = open(disk.clone()).expect("a healthy disk");
    let mut now = Rows::new();
    let opened = disk.ops();
    for number in 1..=commits {
        commit(&database, &mut now, &mut random, number);
    }
    // Not closed: the power fails.
    let log = disk.take_log();
    Story { log, opened }
}

fn commit(database: &Database, now: &mut Rows, random: &mut Random, number: u64) {
    now.insert(LAST, number.to_be_bytes().to_vec());
    for _ in 0..random.pick(&[1, 3, 9]) {
        let key = random.below(ROWS);
        match random.chance(30) {
            true => drop(now.remove(&key)),
            false => {
                let len = usize::try_from(random.below(ROW_BYTES_MAX)).expect("a small number");
                drop(now.insert(key, vec![(number % 251) as u8; len]));
            }
        }
    }
    let transaction = database.begin_write().expect("a healthy disk");
    {
        let mut table = transaction.open_table(TABLE).expect("a healthy disk");
        table.retain(|key, _| now.contains_key(&key)).expect("a healthy disk");
        for (key, value) in now.iter() {
            let is_same =
                table.get(key).expect("a healthy disk").is_some_and(|known| known.value() == *value);
            if !is_same {
                table.insert(key, value).expect("a healthy disk");
            }
        }
    }
    transaction.commit().expect("a healthy disk");
}
