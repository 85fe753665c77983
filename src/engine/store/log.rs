//! The log: where the order of commits is decided and kept.
//!
//! Without another, the journal of the file is the log: the entry is a row of it, in the transaction that writes what
//! follows from the entry, with one fsync for both (`local_log`); if nothing follows, on its way there (`margin`). With
//! another before it, the file is no more than a copy of the log that is quick to read: an entry is appended there first, nothing
//! is answered before that is acknowledged, and the file is committed without an fsync. Any other file can follow the same entries
//! (`follow`).

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::engine::store::journal_row::RowReader;
use crate::error::Fault;

/// An entry: the journal row of one commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Its place: the first is 1, and each follows the one before.
    pub(crate) position: u64,
    /// Its bytes, which name the checksum of the entry before and end with its own.
    pub(crate) bytes: &'a [u8],
}

impl Entry<'_> {
    /// Whether these are the bytes of an entry at this position, as they were written.
    pub(crate) fn is_sound(self) -> bool {
        self.checksum().is_some()
    }

    /// Its checksum, if it is sound.
    pub(crate) fn checksum(self) -> Option<u64> {
        let (header, checksum, _) = RowReader::open(self.bytes).ok()?;
        (header.position == self.position).then_some(checksum)
    }
}

/// Which entry is the last that something includes: its position and its checksum, both zero without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPlace {
    pub(crate) position: u64,
    pub(crate) checksum: u64,
}

impl fmt::Display for LogPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "entry {} with the checksum {:016x}", self.position, self.checksum)
    }
}

/// What is done with each entry that is read.
pub(crate) type EachEntry<'a> = dyn FnMut(Entry<'_>) -> Result<(), Fault> + 'a;

/// A log.
pub(crate) trait Log: Send + Sync {
    /// Appends an entry, and returns once it is durable.
    ///
    /// An entry that is there already, byte for byte, is acknowledged as the first time.
    ///
    /// # Errors
    /// [`Fault::Deposed`] when another entry stands in its place, [`Fault::Replaced`] when its place was given up; [`Fault::Log`] when the entry before it is not there. After any
    /// fault it is unknown whether the entry is there, and nothing may be appended behind it by this writer.
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault>;

    /// Calls `each` with the entries from a position on, or from the first that is kept, in order, to where the log ends
    /// now or a little before. The log has, or had, an entry at that position, unless it is zero.
    ///
    /// # Errors
    /// The fault of the log, or of `each`.
    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), Fault>;

    /// Gives up the entries up to a position; the last entry is kept whatever the position is.
    ///
    /// # Errors
    /// The fault of the log.
    #[cfg_attr(not(any(test, feature = "cluster")), allow(dead_code, reason = "only snapshots trim a log"))]
    fn trim(&self, through: u64) -> Result<(), Fault>;
}
