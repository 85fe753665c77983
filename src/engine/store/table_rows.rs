//! The rows of a table of the file, whether each is one of the file or they are in blocks.

use std::ops::Bound;
use std::ops::ControlFlow;

use redb::ReadOnlyTable;

use crate::engine::rules::record::QueueId;
use crate::engine::store::block::BlockReader;
use crate::engine::store::caught::store_fault;
use crate::engine::store::flushed_row::FlushedRow;
use crate::engine::store::table::Table;
use crate::error::Fault;

/// A table that is open for reading.
pub(crate) type OpenTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

type KeyBounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// Looks for a row.
pub(crate) fn find<T: Table, R>(
    table: &OpenTable,
    key: &[u8],
    found: impl FnOnce(FlushedRow<'_>) -> Result<R, Fault>,
) -> Result<Option<R>, Fault> {
    if !T::IN_BLOCKS {
        let row = table.get(key).map_err(store_fault)?;
        return row.map(|row| found(FlushedRow::Checksummed(row.value()))).transpose();
    }
    let Some(block) = table.range::<&[u8]>(..=key).map_err(store_fault)?.next_back() else { return Ok(None) };
    let (block_key, checksummed) = block.map_err(store_fault)?;
    if !of_one_queue(block_key.value(), key) {
        return Ok(None);
    }
    let mut rows = BlockReader::open(T::DEFINITION, block_key.value(), checksummed.value())?;
    match rows.first_row(Bound::Included(key))? {
        Some((own, payload)) if own == key => found(FlushedRow::InBlock(payload)).map(Some),
        _ => Ok(None),
    }
}

/// Goes through the rows between two bounds, until it is enough.
pub(crate) fn walk<T: Table>(
    table: &OpenTable,
    (from, to): KeyBounds<'_>,
    mut each: impl FnMut(&[u8], FlushedRow<'_>) -> Result<ControlFlow<()>, Fault>,
) -> Result<(), Fault> {
    let mut next = from;
    if T::IN_BLOCKS
        && let Bound::Included(key) | Bound::Excluded(key) = from
    {
        let before = table.range::<&[u8]>(..=key).map_err(store_fault)?.next_back();
        if let Some((block_key, checksummed)) = before.transpose().map_err(store_fault)?
            && of_one_queue(block_key.value(), key)
        {
            let rows = BlockReader::open(T::DEFINITION, block_key.value(), checksummed.value())?;
            if walk_block(rows, (from, to), &mut each)?.is_break() {
                return Ok(());
            }
        }
        // The block that begins with it has just been read.
        next = Bound::Excluded(key);
    }
    for row in table.range::<&[u8]>((next, to)).map_err(store_fault)? {
        let (key, checksummed) = row.map_err(store_fault)?;
        let walked = match T::IN_BLOCKS {
            true => {
                let rows = BlockReader::open(T::DEFINITION, key.value(), checksummed.value())?;
                walk_block(rows, (from, to), &mut each)?
            }
            false => each(key.value(), FlushedRow::Checksummed(checksummed.value()))?,
        };
        if walked.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

fn walk_block(
    mut rows: BlockReader<'_>,
    (from, to): KeyBounds<'_>,
    each: &mut impl FnMut(&[u8], FlushedRow<'_>) -> Result<ControlFlow<()>, Fault>,
) -> Result<ControlFlow<()>, Fault> {
    let mut row = rows.first_row(from)?;
    while let Some((key, payload)) = row {
        if is_behind(key, to) || each(key, FlushedRow::InBlock(payload))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        row = rows.next_row()?;
    }
    Ok(ControlFlow::Continue(()))
}

/// Goes through the keys between two bounds from the last on, until it is enough.
pub(crate) fn walk_back<T: Table>(
    table: &OpenTable,
    (from, to): KeyBounds<'_>,
    mut each: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Fault>,
) -> Result<(), Fault> {
    // A block may begin before the first key that is asked for.
    let first = if T::IN_BLOCKS { Bound::Unbounded } else { from };
    for row in table.range::<&[u8]>((first, to)).map_err(store_fault)?.rev() {
        let (key, checksummed) = row.map_err(store_fault)?;
        let walked = match T::IN_BLOCKS {
            true if is_of_queue_before(key.value(), from) => return Ok(()),
            true => {
                let rows = BlockReader::open(T::DEFINITION, key.value(), checksummed.value())?;
                walk_block_back(rows, (from, to), &mut each)?
            }
            false => each(key.value())?,
        };
        if walked.is_break() || is_before(key.value(), from) {
            return Ok(());
        }
    }
    Ok(())
}

fn walk_block_back(
    mut rows: BlockReader<'_>,
    (from, to): KeyBounds<'_>,
    each: &mut impl FnMut(&[u8]) -> Result<ControlFlow<()>, Fault>,
) -> Result<ControlFlow<()>, Fault> {
    let mut keys = Vec::new();
    let mut row = rows.first_row(from)?;
    while let Some((key, _)) = row
        && !is_behind(key, to)
    {
        keys.push(key.to_vec());
        row = rows.next_row()?;
    }
    for key in keys.iter().rev() {
        if each(key)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Whether a block may have a row with this key: blocks have rows of one queue, and another queue's damage is none of its business.
fn of_one_queue(block: &[u8], key: &[u8]) -> bool {
    QueueId::first_of(block) == QueueId::first_of(key)
}

fn is_of_queue_before(block: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Included(key) | Bound::Excluded(key) => block < key && !of_one_queue(block, key),
        Bound::Unbounded => false,
    }
}

fn is_before(key: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Included(from) => key < from,
        Bound::Excluded(from) => key <= from,
        Bound::Unbounded => false,
    }
}

fn is_behind(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Included(to) => key > to,
        Bound::Excluded(to) => key >= to,
        Bound::Unbounded => false,
    }
}
