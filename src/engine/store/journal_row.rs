//! The bytes of a journal row: header, rows table by table, checksum (see `journal` for what they say).

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::store::checksum::damaged;
use crate::engine::store::codec;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::key::KeyPart;
use crate::engine::store::key::put_key;
use crate::engine::store::stamp::WallRecord;
use crate::error::Fault;

const CHECKSUM_LEN: usize = 8;

/// Ends the tables of a row.
const END: u8 = u8::MAX;

/// Ends the rows of a table: no key is as long.
const END_OF_TABLE: u16 = u16::MAX;

/// Stands for the length of a value that is deleted.
const DELETED: u32 = u32::MAX;

/// What a journal row says beside the rows that have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalHeader {
    pub(crate) position: u64,
    /// The checksum of the row before.
    pub(crate) previous: u64,
    pub(crate) time: Timestamp,
    pub(crate) numbers: Numbers,
    pub(crate) counters: Vec<(QueueId, QueueCounters)>,
    pub(crate) wall: WallRecord,
}

/// Puts a journal row together.
pub(crate) struct RowWriter {
    bytes: Vec<u8>,
}

impl RowWriter {
    /// Begins a row in empty room.
    pub(crate) fn new(header: &JournalHeader, mut room: Vec<u8>) -> RowWriter {
        codec::encode_to(header, &mut room);
        RowWriter { bytes: room }
    }

    #[inline]
    pub(crate) fn begin_table(&mut self, number: u8) {
        self.bytes.push(number);
    }

    /// Writes a row that is put, or deleted.
    #[inline]
    pub(crate) fn write(
        &mut self,
        prefix: &impl KeyPart,
        key: &impl KeyPart,
        value: Option<&impl Serialize>,
    ) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        put_key(prefix, key, &mut self.bytes);
        let key_len = u16::try_from(self.bytes.len() - at - 2).expect("keys are made of limited parts");
        self.fill(at, key_len.to_le_bytes());
        let Some(value) = value else {
            self.bytes.extend_from_slice(&DELETED.to_le_bytes());
            return;
        };
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        codec::encode_to(value, &mut self.bytes);
        let value_len = u32::try_from(self.bytes.len() - at - 4).expect("records are of limited size");
        self.fill(at, value_len.to_le_bytes());
    }

    /// Puts a number to a place that was left for it.
    #[inline]
    fn fill<const LEN: usize>(&mut self, at: usize, number: [u8; LEN]) {
        *self.bytes[at..].first_chunk_mut().expect("its place was left") = number;
    }

    pub(crate) fn end_table(&mut self) {
        self.bytes.extend_from_slice(&END_OF_TABLE.to_le_bytes());
    }

    /// The checksummed bytes, and the checksum.
    pub(crate) fn finish(mut self) -> (Vec<u8>, u64) {
        self.bytes.push(END);
        let checksum = xxh3_64(&self.bytes);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        (self.bytes, checksum)
    }
}

/// Reads a journal row.
pub(crate) struct RowReader<'a> {
    rest: &'a [u8],
}

impl<'a> RowReader<'a> {
    /// Checks the checksum, and reads a header. Returns the checksum too.
    pub(crate) fn open_as<H: DeserializeOwned>(
        checksummed: &'a [u8],
    ) -> Result<(H, u64, RowReader<'a>), Fault> {
        let split =
            checksummed.len().checked_sub(CHECKSUM_LEN).and_then(|at| checksummed.split_at_checked(at));
        let Some((bytes, checksum)) =
            split.filter(|(bytes, checksum)| xxh3_64(bytes).to_le_bytes() == **checksum)
        else {
            return Err(damaged(&JOURNAL, "a checksum does not fit"));
        };
        let (header, rest) = codec::decode_first(bytes).ok_or_else(nonsense)?;
        let checksum = checksum.try_into().map(u64::from_le_bytes).map_err(|_| nonsense())?;
        Ok((header, checksum, RowReader { rest }))
    }

    /// Begins a table if it is the next.
    pub(crate) fn begins(&mut self, table: u8) -> bool {
        let rest = self.rest.strip_prefix(&[table]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The number of the next table; `None` at the end.
    pub(crate) fn next_table(&mut self) -> Result<Option<u8>, Fault> {
        match self.take(1)? {
            [END] if self.rest.is_empty() => Ok(None),
            [END] => Err(nonsense()),
            table => Ok(table.first().copied()),
        }
    }

    /// The next row of the table: its key, and its value unless it is deleted.
    #[expect(clippy::type_complexity, reason = "a key and a value, both borrowed")]
    pub(crate) fn next_row(&mut self) -> Result<Option<(&'a [u8], Option<&'a [u8]>)>, Fault> {
        let key_len = self.number::<2>().map(u16::from_le_bytes)?;
        if key_len == END_OF_TABLE {
            return Ok(None);
        }
        let key = self.take(usize::from(key_len))?;
        let value_len = self.number::<4>().map(u32::from_le_bytes)?;
        let value = match value_len {
            DELETED => None,
            len => Some(self.take(usize::try_from(len).map_err(|_| nonsense())?)?),
        };
        Ok(Some((key, value)))
    }

    fn number<const LEN: usize>(&mut self) -> Result<[u8; LEN], Fault> {
        self.take(LEN)?.try_into().map_err(|_| nonsense())
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(nonsense)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// The checksum with which a whole row ends.
pub(crate) fn checksum_of(row: &[u8]) -> u64 {
    u64::from_le_bytes(*row.last_chunk().expect("a row is longer than its checksum"))
}

pub(crate) fn nonsense() -> Fault {
    damaged(&JOURNAL, "a row makes no sense")
}
