//! The journal: one row a commit, with every row the turn has changed, as it is after the turn.
//!
//! A journal row is a header, the changed rows table by table, and a checksum: the XXH3-64 of all before it. The header names
//! the checksum of the row before, so that a row that is missing, foreign or out of order is noticed. A long row is cut
//! into pieces just below powers of two, because redb gives a value the next power of two of pages.
//!
//! Between header and tables it says what its commit writes in place (`in_place`), so that whoever has only the rows of
//! the journal has everything. Rows that older versions have written say nothing of it.

use std::ops::Bound;

use redb::ReadTransaction;
use redb::ReadableTable;
use redb::WriteTransaction;

use crate::engine::store::caught::store_fault;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::in_place::InPlace;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::journal_row::nonsense;
use crate::engine::store::log::Entry;
use crate::engine::store::log::LogPlace;
use crate::engine::store::meta;
use crate::engine::store::meta::BATCH_ROW;
use crate::engine::store::meta::BatchRecord;
use crate::error::Fault;

/// The longest piece, with its page's own bytes.
const PIECE_MAX: usize = 256 * 1024;

/// The shortest page worth a cut.
const PAGE: usize = 4 * 1024;

/// What a page needs beside the value: more than redb's header and offsets and the key.
const PAGE_OVERHEAD: usize = 64;

impl<'a> RowReader<'a> {
    /// Checks the checksum, and reads the header. Returns the checksum too. What is written in place is passed over.
    pub(crate) fn open(checksummed: &'a [u8]) -> Result<(JournalHeader, u64, RowReader<'a>), Fault> {
        let (header, checksum, mut row) = RowReader::open_as(checksummed)?;
        InPlace::skip(&mut row)?;
        Ok((header, checksum, row))
    }

    /// The same, with what is written in place.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn open_whole(
        checksummed: &'a [u8],
    ) -> Result<(JournalHeader, u64, InPlace, RowReader<'a>), Fault> {
        let (header, checksum, mut row) = RowReader::open_as(checksummed)?;
        let in_place = InPlace::read(&mut row)?;
        Ok((header, checksum, in_place, row))
    }
}

/// Appends journal rows, each at its position.
pub(crate) fn append<'a>(
    transaction: &WriteTransaction,
    rows: impl Iterator<Item = Entry<'a>>,
) -> Result<(), Fault> {
    let mut table = transaction.open_table(JOURNAL).map_err(store_fault)?;
    for Entry { position, bytes } in rows {
        let (mut rest, mut piece) = (bytes, 0_u32);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(piece_len(rest.len()));
            table.insert(key_of_piece(position, piece).as_slice(), now).map_err(store_fault)?;
            (rest, piece) = (later, piece + 1);
        }
    }
    Ok(())
}

/// Drops every journal row up to a position.
pub(crate) fn drop_through(transaction: &WriteTransaction, position: u64) -> Result<(), Fault> {
    let mut table = transaction.open_table(JOURNAL).map_err(store_fault)?;
    let end = key_of_piece(position, u32::MAX);
    let range = (Bound::Unbounded, Bound::Included(end.as_slice()));
    table.retain_in::<&[u8], _>(range, |_, _| false).map_err(store_fault)
}

/// Reads every journal row in order.
pub(crate) fn read_all(
    transaction: &ReadTransaction,
    each: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    read_from(transaction, 0, each)
}

/// Reads the journal rows from a position on, in order.
pub(crate) fn read_from(
    transaction: &ReadTransaction,
    from: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let table = transaction.open_table(JOURNAL).map_err(store_fault)?;
    let from = key_of_piece(from, 0);
    let mut row = Vec::new();
    let mut position = None;
    for piece in table.range::<&[u8]>(from.as_slice()..).map_err(store_fault)? {
        let (key, bytes) = piece.map_err(store_fault)?;
        let (of, number) = position_of(key.value()).ok_or_else(nonsense)?;
        if number == 0 {
            if let Some(position) = position.replace(of) {
                each(position, &row)?;
            }
            row.clear();
        }
        row.extend_from_slice(bytes.value());
    }
    match position {
        Some(position) => each(position, &row),
        None if row.is_empty() => Ok(()),
        None => Err(nonsense()),
    }
}

/// The last entry that a file includes, be it in the journal or flushed.
pub(crate) fn last_entry(transaction: &ReadTransaction) -> Result<LogPlace, Fault> {
    let table = transaction.open_table(JOURNAL).map_err(store_fault)?;
    let Some((key, _)) = table.last().map_err(store_fault)? else {
        let flushed: BatchRecord = meta::row_of(transaction, BATCH_ROW)?.unwrap_or_default();
        return Ok(LogPlace { position: flushed.position, checksum: flushed.hash });
    };
    let (position, _) = position_of(key.value()).ok_or_else(nonsense)?;
    let mut last = LogPlace::default();
    read_from(transaction, position, |position, row| {
        last = LogPlace { position, checksum: RowReader::open(row)?.1 };
        Ok(())
    })?;
    Ok(last)
}

fn key_of_piece(position: u64, piece: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&position.to_be_bytes());
    key[8..].copy_from_slice(&piece.to_be_bytes());
    key
}

fn position_of(key: &[u8]) -> Option<(u64, u32)> {
    let (position, piece) = key.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*position), u32::from_be_bytes(piece.try_into().ok()?)))
}

/// How much of what is left goes into the next piece: all, unless rounding it up would waste more than an eighth.
fn piece_len(rest: usize) -> usize {
    let page = (rest + PAGE_OVERHEAD).next_power_of_two();
    if page <= PAGE || (page <= PIECE_MAX && page - PAGE_OVERHEAD - rest <= rest / 8) {
        return rest;
    }
    (page / 2).min(PIECE_MAX) - PAGE_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::engine::rules::record::Numbers;
    use crate::engine::rules::record::QueueCounters;
    use crate::engine::rules::record::QueueId;
    use crate::engine::store::in_place;
    use crate::engine::store::in_place::Epoch;
    use crate::engine::store::journal_row::RowWriter;
    use crate::engine::store::meta::QueueChange;
    use crate::engine::store::stamp::WallRecord;

    fn header() -> JournalHeader {
        JournalHeader {
            position: 300,
            previous: 7,
            time: Timestamp::from_millis(1_000_000),
            numbers: Numbers { next_sequence: 5, next_ticket: 2, next_queue: 1 },
            counters: vec![(QueueId(1), QueueCounters::default())],
            wall: WallRecord { wall: Timestamp::from_millis(300), ..WallRecord::default() },
        }
    }

    fn row() -> Vec<u8> {
        let mut row = RowWriter::new(&header(), Vec::new());
        row.begin_table(4);
        row.write(&QueueId(1), &9_u64, Some(&"kept"));
        row.write(&QueueId(1), &10_u64, None::<&u8>);
        row.end_table();
        row.finish().0
    }

    #[test]
    fn a_row_is_read_back_as_it_was_written() {
        let bytes = row();
        let (read, _, mut row) = RowReader::open(&bytes).unwrap();
        assert_eq!(read, header());
        assert_eq!(row.next_table().unwrap(), Some(4));
        let key = |rank: u8| [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, rank];
        assert_eq!(row.next_row().unwrap(), Some((&key(9)[..], Some(&b"\x04kept"[..]))));
        assert_eq!(row.next_row().unwrap(), Some((&key(10)[..], None)));
        assert_eq!(row.next_row().unwrap(), None);
        assert_eq!(row.next_table().unwrap(), None);
    }

    #[test]
    fn the_bytes_of_a_row_are_what_they_were() {
        let hex: String = row().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN, "stored bytes have changed: raise the format");
    }

    const GOLDEN: &str = "ac0207c0843d05020101010000000000000000000000000000000000ac020000000000040c0000000001000000000000000905000000046b6570740c0000000001000000000000000affffffffffffffd76d67f52b8df9c8";

    #[test]
    fn the_bytes_of_what_is_written_in_place_are_what_they_were() {
        let mut row = RowWriter::new(&header(), Vec::new());
        let epoch = Epoch { number: 3, holder: 300 };
        in_place::write(&mut row, epoch, &[QueueChange::Gone(QueueId(7))]);
        let (bytes, checksum) = row.finish();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN_IN_PLACE, "stored bytes have changed: raise the format");
        let (read, of_bytes, in_place, mut row) = RowReader::open_whole(&bytes).unwrap();
        assert_eq!((read, of_bytes, in_place.epoch), (header(), checksum, Some(epoch)));
        assert!(matches!(in_place.queue_changes[..], [QueueChange::Gone(QueueId(7))]));
        assert_eq!(row.next_table().unwrap(), None);
        let (_, _, mut row) = RowReader::open(&bytes).unwrap();
        assert_eq!(row.next_table().unwrap(), None, "whoever wants rows of tables need not know of it");
    }

    const GOLDEN_IN_PLACE: &str = "ac0207c0843d05020101010000000000000000000000000000000000ac020000000000fe00000300000003ac02fffffd040000000007ffffffffffffff42d501ac52c3beaf";

    #[test]
    fn a_flipped_bit_or_a_missing_byte_is_noticed() {
        let bytes = row();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(RowReader::open(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(RowReader::open(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn pieces_waste_little_and_make_up_the_row() {
        for len in (1..2_000_000).step_by(9_973) {
            let (mut rest, mut pages, mut pieces) = (len, 0, 0);
            while rest > 0 {
                let piece = piece_len(rest);
                assert!(piece > 0 && piece <= rest);
                pages += (piece + PAGE_OVERHEAD).next_power_of_two().max(PAGE);
                (rest, pieces) = (rest - piece, pieces + 1);
            }
            assert!(pages <= len + len / 4 + 2 * PAGE, "{len} bytes take {pages}");
            assert!(pieces <= 8 + len / PIECE_MAX, "{len} bytes are {pieces} pieces");
        }
    }
}
