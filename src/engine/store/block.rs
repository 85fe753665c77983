//! Blocks: rows of a table that stand beside each other, as one row of the file.
//!
//! What the file's tree costs, it costs for each of its rows, however small: a way down from the root, a page that is copied, a place
//! among its neighbours. Tables with a row for each message have theirs in blocks of some thousand bytes.
//!
//! A block's key is no greater than the keys of its rows, which are smaller than the next block's key, and all of one queue. Its value
//! is row after row: how many bytes of its key are those of the key before, the others, and the payload, each of the latter behind its
//! length. Lengths are numbers of seven bits a byte, the lowest first. One checksum is that of all.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::engine::store::checksum::damaged;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::definition::RawTableDefinition;
use crate::error::Fault;

/// Most bytes of a block with more than one row, its key among them: what two pages of 4,096 bytes have left beside its checksum and
/// the head of a leaf.
pub(crate) const BLOCK_BYTES: usize = 8_150;

/// Most bytes that a row takes beside its key and its payload: three lengths.
const LENGTHS_BYTES: usize = 12;

/// Room beyond an even share of the rows, which cannot be divided evenly: without it a small block would be left over.
const SLACK_BYTES: usize = 512;

/// A block that is to be written: its key, and its value before the checksum.
pub(crate) struct NewBlock {
    pub(crate) key: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

/// Puts rows in blocks.
pub(crate) struct Blocks {
    done: Vec<NewBlock>,
    /// The block that is being written, once it has a key.
    key: Option<Vec<u8>>,
    bytes: Vec<u8>,
    last: Vec<u8>,
    bytes_max: usize,
}

impl Blocks {
    /// Begins with rows of about so many bytes, in blocks about alike; the first may have a key before its first row's.
    pub(crate) fn new(key: Option<Vec<u8>>, bytes: usize) -> Blocks {
        let count = bytes.div_ceil(BLOCK_BYTES).max(1);
        let bytes_max = BLOCK_BYTES.min(bytes / count + SLACK_BYTES);
        Blocks { done: Vec::new(), key, bytes: Vec::with_capacity(bytes_max), last: Vec::new(), bytes_max }
    }

    /// Writes a row behind those before.
    pub(crate) fn write(&mut self, key: &[u8], payload: &[u8]) {
        let bytes = self.key.as_ref().map_or(0, Vec::len) + self.bytes.len();
        if !self.bytes.is_empty() && bytes + key.len() + payload.len() + LENGTHS_BYTES > self.bytes_max {
            self.end_block();
        }
        self.key.get_or_insert_with(|| key.to_vec());
        let shared = key.iter().zip(&self.last).take_while(|(own, before)| own == before).count();
        self.put_len(shared);
        self.put(&key[shared..]);
        self.put(payload);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
    }

    /// The blocks.
    pub(crate) fn finish(mut self) -> Vec<NewBlock> {
        if !self.bytes.is_empty() {
            self.end_block();
        }
        self.done
    }

    fn end_block(&mut self) {
        let key = self.key.take().expect("a block with a row has a key");
        let room = Vec::with_capacity(self.bytes_max);
        self.done.push(NewBlock { key, bytes: std::mem::replace(&mut self.bytes, room) });
        self.last.clear();
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put_len(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn put_len(&mut self, mut len: usize) {
        while len > 0x7f {
            self.bytes.push(len as u8 | 0x80);
            len >>= 7;
        }
        self.bytes.push(len as u8);
    }
}

/// A row of a block: its key, and its payload.
type BlockRow<'r, 'b> = (&'r [u8], &'b [u8]);

/// The same on its own.
pub(crate) type StoredRow = (Vec<u8>, Vec<u8>);

/// Reads the rows of a block in their order.
pub(crate) struct BlockReader<'b> {
    table: RawTableDefinition,
    rest: &'b [u8],
    key: Vec<u8>,
}

impl<'b> BlockReader<'b> {
    /// Begins with the first row of a block whose checksum fits.
    ///
    /// # Errors
    /// [`Fault::Damaged`] when it does not.
    pub(crate) fn open(
        table: RawTableDefinition,
        key: &[u8],
        checksummed: &'b [u8],
    ) -> Result<BlockReader<'b>, Fault> {
        let rest = verify_checksum(&table, key, checksummed)?;
        Ok(BlockReader::of_payload(table, rest))
    }

    /// Begins with the first row of a block without its checksum.
    pub(crate) fn of_payload(table: RawTableDefinition, payload: &'b [u8]) -> BlockReader<'b> {
        BlockReader { table, rest: payload, key: Vec::with_capacity(48) }
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// Passes over the rows before a bound; returns the first that is not, if there is one.
    ///
    /// A key that has more bytes in common with the key before than that has with the bound is as far from the bound, so most need no
    /// look at their bytes.
    pub(crate) fn first_row(&mut self, from: Bound<&[u8]>) -> Result<Option<BlockRow<'_, 'b>>, Fault> {
        let (bound, is_in) = match from {
            Bound::Included(bound) => (bound, true),
            Bound::Excluded(bound) => (bound, false),
            Bound::Unbounded => return self.next_row(),
        };
        let mut matched = 0;
        while !self.rest.is_empty() {
            let (shared, payload) = self.take_row().ok_or_else(|| nonsense(&self.table))?;
            if shared > matched {
                continue;
            }
            let (own, rest) = (&self.key[shared..], &bound[shared..]);
            matched = shared + own.iter().zip(rest).take_while(|(own, bound)| own == bound).count();
            match own.cmp(rest) {
                Ordering::Less => {}
                Ordering::Equal if !is_in => {}
                Ordering::Equal | Ordering::Greater => return Ok(Some((&self.key, payload))),
            }
        }
        Ok(None)
    }

    /// The next row: its key and its payload.
    pub(crate) fn next_row(&mut self) -> Result<Option<BlockRow<'_, 'b>>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (_, payload) = self.take_row().ok_or_else(|| nonsense(&self.table))?;
        Ok(Some((&self.key, payload)))
    }

    /// All rows that are left.
    pub(crate) fn all_rows(mut self) -> Result<Vec<StoredRow>, Fault> {
        let mut rows = Vec::new();
        while let Some((key, payload)) = self.next_row()? {
            rows.push((key.to_vec(), payload.to_vec()));
        }
        Ok(rows)
    }

    /// How many rows are left.
    pub(crate) fn count(mut self) -> Result<u64, Fault> {
        let mut rows = 0;
        while self.next_row()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    /// How many bytes its key has in common with the key before, and the payload.
    fn take_row(&mut self) -> Option<(usize, &'b [u8])> {
        let shared = self.take_len()?;
        if shared > self.key.len() {
            return None;
        }
        let own = self.take()?;
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        Some((shared, self.take()?))
    }

    fn take(&mut self) -> Option<&'b [u8]> {
        let len = self.take_len()?;
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_len(&mut self) -> Option<usize> {
        let mut len = 0;
        for place in 0..5 {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            len |= usize::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some(len);
            }
        }
        None
    }
}

fn nonsense(table: &RawTableDefinition) -> Fault {
    damaged(table, "a block makes no sense")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::store::schema::Line;
    use crate::engine::store::table::Table;

    fn reader(bytes: &[u8]) -> BlockReader<'_> {
        BlockReader::of_payload(Line::DEFINITION, bytes)
    }

    #[test]
    fn the_bytes_of_a_block_are_what_they_were() {
        let mut blocks = Blocks::new(None, 100);
        blocks.write(b"same 1", b"one");
        blocks.write(b"same 12", b"");
        blocks.write(b"other", &[9; 130]);
        let blocks = blocks.finish();
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].key, b"same 1");
        let mut expected = b"\x00\x06same 1\x03one".to_vec();
        expected.extend_from_slice(b"\x06\x012\x00");
        expected.extend_from_slice(b"\x00\x05other\x82\x01");
        expected.extend_from_slice(&[9; 130]);
        assert_eq!(blocks[0].bytes, expected);
    }

    #[test]
    fn rows_that_are_more_than_a_block_are_in_blocks_about_alike() {
        let mut blocks = Blocks::new(Some(b"a".to_vec()), 9_000);
        for row in 0..90_u8 {
            blocks.write(&[b'b', row], &[row; 98]);
        }
        let blocks = blocks.finish();
        let lens: Vec<_> = blocks.iter().map(|block| block.bytes.len()).collect();
        assert!(matches!(lens[..], [4_000..=5_100, 4_000..=5_100]), "{lens:?}");
        assert_eq!(blocks[0].key, b"a");
    }

    proptest! {
        #[test]
        fn bytes_that_are_no_block_are_damage_and_no_panic(
            bytes in prop::collection::vec(prop_oneof![0..9_u8, any::<u8>()], 0..60),
            bound in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let all = reader(&bytes).all_rows();
            let count = reader(&bytes).count();
            prop_assert_eq!(all.is_ok(), count.is_ok());
            if let Ok(rows) = all {
                prop_assert_eq!(rows.len() as u64, count.unwrap());
            }
            for bound in [Bound::Included(bound.as_slice()), Bound::Excluded(&bound), Bound::Unbounded] {
                let mut rows = reader(&bytes);
                while let Ok(Some(_)) = rows.first_row(bound) {}
            }
        }
    }
}
