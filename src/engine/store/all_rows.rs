//! All rows of a table of the file, wherever they are.

use std::vec;

use redb::Range;
use redb::ReadableTable;

use crate::engine::store::block::BlockReader;
use crate::engine::store::block::StoredRow;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::table::Table;
use crate::engine::store::table_rows::OpenTable;
use crate::error::Fault;

/// The rows of a table in the order of their keys. Those of one block are in memory at a time.
pub(crate) struct AllRows<'t> {
    definition: RawTableDefinition,
    in_blocks: bool,
    rest: Range<'t, &'static [u8], &'static [u8]>,
    /// What has been read and not returned yet.
    read: vec::IntoIter<StoredRow>,
}

impl<'t> AllRows<'t> {
    pub(crate) fn of<T: Table>(table: &'t OpenTable) -> Result<AllRows<'t>, Fault> {
        let rest = table.iter().map_err(store_fault)?;
        Ok(AllRows { definition: T::DEFINITION, in_blocks: T::IN_BLOCKS, rest, read: Vec::new().into_iter() })
    }

    fn next_row(&mut self) -> Result<Option<StoredRow>, Fault> {
        loop {
            if let Some(row) = self.read.next() {
                return Ok(Some(row));
            }
            let Some(row) = self.rest.next() else { return Ok(None) };
            let (key, checksummed) = row.map_err(store_fault)?;
            if !self.in_blocks {
                let payload = verify_checksum(&self.definition, key.value(), checksummed.value())?;
                return Ok(Some((key.value().to_vec(), payload.to_vec())));
            }
            let rows = BlockReader::open(self.definition, key.value(), checksummed.value())?;
            self.read = rows.all_rows()?.into_iter();
        }
    }
}

impl Iterator for AllRows<'_> {
    type Item = Result<StoredRow, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}
