//! Changing a table that is in blocks: what has changed is merged into the blocks it belongs to.

use std::iter::Peekable;
use std::ops::Bound;

use redb::ReadableTable;
use redb::Table;
use redb::WriteTransaction;

use crate::engine::rules::record::QueueId;
use crate::engine::store::block::BLOCK_BYTES;
use crate::engine::store::block::BlockReader;
use crate::engine::store::block::Blocks;
use crate::engine::store::block::NewBlock;
use crate::engine::store::block_changes::BlockChange;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::checksum;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::definition::RawTableDefinition;
use crate::error::Fault;

/// Behind the last row of a block of so many bytes a new one begins, so that what is appended leaves blocks behind that are not
/// written again with each flush.
const FILLED_BYTES: usize = BLOCK_BYTES / 2;

/// A block that has shrunk below so many bytes is joined with a neighbour that has room for it.
const SMALL_BYTES: usize = BLOCK_BYTES / 4;

/// About the most bytes of changes that are merged at once: they are in memory, and what they become.
const MERGED_BYTES: usize = 1024 * 1024;

/// Blocks that together have fewer bytes are put together once more, if the last of them is a small rest.
const RIGHT_SIZE_BYTES: usize = 4 * BLOCK_BYTES;

/// A table of the file whose rows are in blocks.
pub(crate) struct BlockTable<'t> {
    definition: RawTableDefinition,
    table: Table<'t, &'static [u8], &'static [u8]>,
}

/// A block that is there: its key, and its rows, whose checksum fits.
struct FoundBlock {
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// The rows that one block has, or would have.
struct BlockPlace {
    /// No block is there when the first row of a queue comes, and when those of the block before are left behind.
    found: Option<FoundBlock>,
    queue: Option<QueueId>,
    /// Where the next block begins.
    upto: Option<Vec<u8>>,
}

impl BlockPlace {
    fn holds(&self, key: &[u8]) -> bool {
        self.upto.as_ref().is_none_or(|upto| key < upto.as_slice()) && QueueId::first_of(key) == self.queue
    }
}

impl<'t> BlockTable<'t> {
    pub(crate) fn open(
        transaction: &'t WriteTransaction,
        definition: RawTableDefinition,
    ) -> Result<BlockTable<'t>, Fault> {
        Ok(BlockTable { definition, table: transaction.open_table(definition).map_err(store_fault)? })
    }

    /// Puts and deletes rows, which come in the order of their keys.
    ///
    /// # Errors
    /// [`Fault`] when a block is damaged, or the disk fails.
    pub(crate) fn merge(&mut self, mut changes: &[BlockChange<'_>]) -> Result<(), Fault> {
        assert!(changes.is_sorted_by(|a, b| a.0 < b.0), "rows are flushed in the order of their keys");
        while let Some((first, _)) = changes.first() {
            let place = self.place_of(first)?;
            let mut bytes = 0;
            let is_own = |change: &&BlockChange<'_>| {
                let goes_on = bytes < MERGED_BYTES && place.holds(change.0);
                bytes += change_bytes(change);
                goes_on
            };
            let (own, later) = changes.split_at(changes.iter().take_while(is_own).count());
            self.write(place.found, own)?;
            changes = later;
        }
        Ok(())
    }

    fn place_of(&self, key: &[u8]) -> Result<BlockPlace, Fault> {
        let queue = QueueId::first_of(key);
        let behind = (Bound::Excluded(key), Bound::Unbounded);
        let next = self.table.range::<&[u8]>(behind).map_err(store_fault)?.next();
        let upto = next.transpose().map_err(store_fault)?.map(|(key, _)| key.value().to_vec());
        let before = self.table.range::<&[u8]>(..=key).map_err(store_fault)?.next_back();
        let found = match before.transpose().map_err(store_fault)? {
            Some((own, checksummed)) if QueueId::first_of(own.value()) == queue => {
                self.found_for(key, own.value(), checksummed.value())?
            }
            _ => None,
        };
        Ok(BlockPlace { found, queue, upto })
    }

    /// A block whose checksum fits, unless a key is behind its last row and it is filled.
    fn found_for(&self, key: &[u8], block: &[u8], checksummed: &[u8]) -> Result<Option<FoundBlock>, Fault> {
        let mut rows = BlockReader::open(self.definition, block, checksummed)?;
        let payload = rows.rest();
        if payload.len() >= FILLED_BYTES && rows.first_row(Bound::Included(key))?.is_none() {
            return Ok(None);
        }
        Ok(Some(FoundBlock { key: block.to_vec(), payload: payload.to_vec() }))
    }

    /// Merges rows into a block, or makes one of them.
    fn write(&mut self, found: Option<FoundBlock>, changes: &[BlockChange<'_>]) -> Result<(), Fault> {
        let bytes_before = found.as_ref().map_or(0, |found| found.payload.len());
        let bytes_max = bytes_before + changes.iter().map(change_bytes).sum::<usize>();
        let mut blocks = self.merged(found.as_ref(), changes, bytes_max)?;
        if let [_, .., last] = &blocks[..]
            && last.bytes.len() < SMALL_BYTES
        {
            // What was there before counted, too: those of the right size are fewer.
            let bytes = blocks.iter().map(|block| block.bytes.len()).sum();
            if bytes < RIGHT_SIZE_BYTES {
                blocks = self.merged(found.as_ref(), changes, bytes)?;
            }
        }
        if blocks.is_empty()
            && let Some(found) = found
        {
            self.table.remove(found.key.as_slice()).map_err(store_fault)?;
        }
        if let [only] = &blocks[..]
            && only.bytes.len() < SMALL_BYTES
            && (bytes_before == 0 || only.bytes.len() < bytes_before)
            && let Some(joined) = self.joined(only)?
        {
            blocks = joined;
        }
        for block in blocks {
            let checksummed = checksum(&self.definition, &block.key, block.bytes);
            self.table.insert(block.key.as_slice(), checksummed.as_slice()).map_err(store_fault)?;
        }
        Ok(())
    }

    /// The blocks that rows and a block become, which are about so many bytes, the first of them at its place.
    fn merged(
        &self,
        found: Option<&FoundBlock>,
        changes: &[BlockChange<'_>],
        bytes: usize,
    ) -> Result<Vec<NewBlock>, Fault> {
        let mut blocks = Blocks::new(found.map(|found| found.key.clone()), bytes);
        let mut changes = changes.iter().peekable();
        if let Some(found) = found {
            let mut rows = BlockReader::of_payload(self.definition, &found.payload);
            while let Some((key, payload)) = rows.next_row()? {
                put_before(key, &mut changes, &mut blocks);
                match changes.next_if(|(own, _)| *own == key) {
                    Some(change) => put(change, &mut blocks),
                    None => blocks.write(key, payload),
                }
            }
        }
        changes.for_each(|change| put(change, &mut blocks));
        Ok(blocks.finish())
    }

    /// A small block together with its neighbour, if one has room; the other one's place is given up.
    fn joined(&mut self, small: &NewBlock) -> Result<Option<Vec<NewBlock>>, Fault> {
        let Some(mut neighbour) = self.neighbour_with_room(&small.key)? else { return Ok(None) };
        let given_up = match small.key < neighbour.key {
            true => std::mem::replace(&mut neighbour.key, small.key.clone()),
            false => small.key.clone(),
        };
        self.table.remove(given_up.as_slice()).map_err(store_fault)?;
        let own = BlockReader::of_payload(self.definition, &small.bytes).all_rows()?;
        let rows: Vec<_> = own.iter().map(|(key, payload)| (&key[..], Some(&payload[..]))).collect();
        let bytes = neighbour.payload.len() + small.bytes.len();
        self.merged(Some(&neighbour), &rows, bytes).map(Some)
    }

    fn neighbour_with_room(&self, key: &[u8]) -> Result<Option<FoundBlock>, Fault> {
        let behind = (Bound::Excluded(key), Bound::Unbounded);
        let next = self.table.range::<&[u8]>(behind).map_err(store_fault)?.next();
        let before = self.table.range::<&[u8]>(..key).map_err(store_fault)?.next_back();
        for neighbour in [next, before].into_iter().flatten() {
            let (own, checksummed) = neighbour.map_err(store_fault)?;
            let is_of_queue = QueueId::first_of(own.value()) == QueueId::first_of(key);
            let has_room = is_of_queue && checksummed.value().len() < FILLED_BYTES;
            // One that is damaged is left to whoever asks for it.
            if has_room
                && let Ok(payload) = verify_checksum(&self.definition, own.value(), checksummed.value())
            {
                return Ok(Some(FoundBlock { key: own.value().to_vec(), payload: payload.to_vec() }));
            }
        }
        Ok(None)
    }
}

fn change_bytes((key, payload): &BlockChange<'_>) -> usize {
    key.len() + payload.map_or(0, <[u8]>::len)
}

fn put_before<'c>(
    key: &[u8],
    changes: &mut Peekable<impl Iterator<Item = &'c BlockChange<'c>>>,
    blocks: &mut Blocks,
) {
    while let Some(change) = changes.next_if(|(own, _)| *own < key) {
        put(change, blocks);
    }
}

/// Puts a row, unless it is deleted.
fn put((key, payload): &BlockChange<'_>, blocks: &mut Blocks) {
    if let Some(payload) = payload {
        blocks.write(key, payload);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;
    use std::ops::RangeBounds;

    use proptest::prelude::*;
    use redb::Database;
    use redb::ReadableDatabase;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::engine::store::all_rows::AllRows;
    use crate::engine::store::flushed_row::FlushedRow;
    use crate::engine::store::schema::Contents;
    use crate::engine::store::table::Table as _;
    use crate::engine::store::table_rows;

    type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

    fn key(queue: u32, rest: u16) -> Vec<u8> {
        let mut key = queue.to_be_bytes().to_vec();
        // Not all of one length, as names are not.
        key.extend_from_slice(&rest.to_be_bytes());
        key.resize(key.len() + usize::from(rest % 5), 7);
        key
    }

    /// A change of some rows of one queue: which, and what they become.
    fn change() -> impl Strategy<Value = (u32, u16, u16, u16, Option<usize>)> {
        let payload =
            prop_oneof![3 => Just(Some(30)), 1 => Just(Some(900)), 1 => Just(Some(9_000)), 4 => Just(None)];
        (1..4_u32, 0..600_u16, 1..200_u16, 1..4_u16, payload)
    }

    fn apply(database: &Database, model: &mut Rows, changed: Rows, deleted: &[Vec<u8>]) {
        let mut changes: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
            changed.into_iter().map(|(key, payload)| (key, Some(payload))).collect();
        changes.extend(deleted.iter().map(|key| (key.clone(), None)));
        let transaction = database.begin_write().unwrap();
        let rows: Vec<_> = changes.iter().map(|(key, payload)| (&key[..], payload.as_deref())).collect();
        BlockTable::open(&transaction, Contents::DEFINITION).unwrap().merge(&rows).unwrap();
        transaction.commit().unwrap();
        for (key, payload) in changes {
            match payload {
                Some(payload) => drop(model.insert(key, payload)),
                None => drop(model.remove(&key)),
            }
        }
    }

    fn check_blocks(database: &Database) -> usize {
        let reading = database.begin_read().unwrap();
        let table = reading.open_table(Contents::DEFINITION).unwrap();
        let (mut count, mut last) = (0, Vec::new());
        for block in table.iter().unwrap() {
            let (key, checksummed) = block.unwrap();
            let rows = BlockReader::open(Contents::DEFINITION, key.value(), checksummed.value()).unwrap();
            let rows = rows.all_rows().unwrap();
            assert!(!rows.is_empty() && last.as_slice() < key.value() && key.value() <= rows[0].0.as_slice());
            assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
            assert!(rows.iter().all(|row| QueueId::first_of(&row.0) == QueueId::first_of(key.value())));
            let bytes = key.value().len() + checksummed.value().len();
            assert!(rows.len() == 1 || bytes <= BLOCK_BYTES + 8, "{} rows of {bytes} bytes", rows.len());
            last = rows.last().unwrap().0.clone();
            count += 1;
        }
        count
    }

    fn walked(database: &Database, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let reading = database.begin_read().unwrap();
        let table = reading.open_table(Contents::DEFINITION).unwrap();
        let (mut keys, mut back) = (Vec::new(), Vec::new());
        table_rows::walk::<Contents>(&table, bounds, |key, _| {
            keys.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        table_rows::walk_back::<Contents>(&table, bounds, |key| {
            back.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        back.reverse();
        (keys, back)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn a_table_in_blocks_has_the_rows_that_were_put_and_not_deleted(
            merges in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..14),
            bounds in prop::collection::vec((1..4_u32, 0..1_000_u16, 0..3_usize), 8),
        ) {
            let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
            let mut model = Rows::new();
            for changes in merges {
                let (mut put, mut deleted) = (Rows::new(), Vec::new());
                for (queue, first, count, step, bytes) in changes {
                    let keys = (0..count).map(|at| key(queue, first + at * step));
                    match bytes {
                        Some(bytes) => put.extend(keys.map(|key| (key, vec![first as u8; bytes]))),
                        None => deleted.extend(keys),
                    }
                }
                apply(&database, &mut model, put, &deleted);
                check_blocks(&database);
            }
            let reading = database.begin_read().unwrap();
            let table = reading.open_table(Contents::DEFINITION).unwrap();
            let all: Result<Vec<_>, _> = AllRows::of::<Contents>(&table).unwrap().collect();
            prop_assert_eq!(all.unwrap(), model.clone().into_iter().collect::<Vec<_>>());
            let bound = |(queue, rest, kind): (u32, u16, usize)| match kind {
                0 => Bound::Included(key(queue, rest)),
                1 => Bound::Excluded(key(queue, rest)),
                _ => Bound::Unbounded,
            };
            for pair in bounds.chunks(2) {
                let (from, to) = (bound(pair[0]), bound(pair[1]));
                let is_in = |key: &Vec<u8>| {
                    RangeBounds::<Vec<u8>>::contains(&(from.clone(), to.clone()), key)
                };
                let expected: Vec<_> = model.keys().filter(|key| is_in(key)).cloned().collect();
                let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                let (keys, back) = walked(&database, bounds);
                prop_assert_eq!(&keys, &expected);
                prop_assert_eq!(&back, &expected);
            }
            for rest in (0..1_400).step_by(7) {
                let key = key(2, rest);
                let found = table_rows::find::<Contents, _>(&table, &key, |row| match row {
                    FlushedRow::InBlock(payload) => Ok(payload.to_vec()),
                    FlushedRow::Checksummed(_) => panic!("it is in a block"),
                });
                prop_assert_eq!(found.unwrap(), model.get(&key).cloned());
            }
        }
    }

    fn rows_of(rests: std::ops::Range<u16>) -> Rows {
        rests.map(|rest| (key(1, rest), vec![1; 30])).collect()
    }

    #[test]
    fn a_filled_block_is_left_as_it_is_by_what_is_appended_and_a_damaged_one_is_joined_with_none() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let mut model = Rows::new();
        apply(&database, &mut model, rows_of(0..150), &[]);
        apply(&database, &mut model, rows_of(150..160), &[]);
        assert_eq!(check_blocks(&database), 2);
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(Contents::DEFINITION).unwrap();
        let mut value = table.get(key(1, 150).as_slice()).unwrap().unwrap().value().to_vec();
        let at = value.len() - 9;
        value[at] ^= 1;
        table.insert(key(1, 150).as_slice(), value.as_slice()).unwrap();
        drop(table);
        transaction.commit().unwrap();
        let deleted: Vec<_> = rows_of(0..140).into_keys().collect();
        apply(&database, &mut model, Rows::new(), &deleted);
        let reading = database.begin_read().unwrap();
        let table = reading.open_table(Contents::DEFINITION).unwrap();
        assert!(table_rows::find::<Contents, _>(&table, &key(1, 155), |_| Ok(())).is_err());
        assert!(table_rows::find::<Contents, _>(&table, &key(1, 145), |_| Ok(())).unwrap().is_some());
    }

    #[test]
    fn rows_that_are_written_again_stay_in_one_block() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let mut model = Rows::new();
        apply(&database, &mut model, rows_of(0..200), &[]);
        assert_eq!(check_blocks(&database), 1);
        apply(&database, &mut model, rows_of(50..160), &[]);
        assert_eq!(check_blocks(&database), 1);
    }

    #[test]
    fn a_damaged_block_of_one_queue_is_in_the_way_of_no_other() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let mut model = Rows::new();
        for queue in [1, 3] {
            let rows = (0..100).map(|rest| (key(queue, rest), vec![1; 30])).collect();
            apply(&database, &mut model, rows, &[]);
        }
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(Contents::DEFINITION).unwrap();
        table.insert(key(1, 0).as_slice(), &b"damaged"[..]).unwrap();
        drop(table);
        transaction.commit().unwrap();
        apply(&database, &mut Rows::new(), (0..9).map(|rest| (key(2, rest), vec![1; 30])).collect(), &[]);
        let of_two: Vec<_> = (0..9).map(|rest| key(2, rest)).collect();
        let prefix = 2_u32.to_be_bytes();
        let behind = key(3, 0);
        let bounds = (Bound::Included(&prefix[..]), Bound::Excluded(behind.as_slice()));
        assert_eq!(walked(&database, bounds), (of_two.clone(), of_two));
        let reading = database.begin_read().unwrap();
        let table = reading.open_table(Contents::DEFINITION).unwrap();
        let found = table_rows::find::<Contents, _>(&table, &prefix, |_| Ok(()));
        assert_eq!(found.unwrap(), None);
        assert!(table_rows::find::<Contents, _>(&table, &key(1, 5), |_| Ok(())).is_err());
    }

    #[test]
    fn what_is_appended_leaves_full_blocks_behind_and_what_is_deleted_leaves_few() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let mut model = Rows::new();
        for first in (0..10_000).step_by(50) {
            let rows = (first..first + 50).map(|rest| (key(1, rest), vec![1; 30])).collect();
            apply(&database, &mut model, rows, &[]);
        }
        let full = check_blocks(&database);
        assert!(full * FILLED_BYTES <= 10_000 * 40, "{full} blocks of about 34 bytes a row");
        // One of each twenty is left, wherever they were.
        for phase in (1..20).rev() {
            let deleted: Vec<_> =
                (0..10_000).filter(|rest| rest % 20 == phase).map(|rest| key(1, rest)).collect();
            apply(&database, &mut model, Rows::new(), &deleted);
        }
        let left = check_blocks(&database);
        assert_eq!(model.len(), 500);
        assert!(left <= 2 * 500 * 40 / SMALL_BYTES, "{left} blocks for 500 rows");
        apply(&database, &mut model.clone(), Rows::new(), &model.keys().cloned().collect::<Vec<_>>());
        assert_eq!(check_blocks(&database), 0);
    }
}
