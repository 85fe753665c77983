//! The margin: short journal rows at the front of the file, written without redb.
//!
//! For a commit that writes nothing but a short row of the journal, redb writes pages that lie scattered: the row's, those that lead to
//! it, and the header. The margin takes such a row in one piece, behind the one before it, with one fsync. The next commit of redb puts
//! all that is in the margin into the journal, where it belongs, and the margin begins anew, in another round; what a crash leaves in it
//! gets there when the file is opened.
//!
//! Source: in redb's files each region begins with header pages, as many as the file's header says (`region_header_pages`). redb 4 finds
//! its pages behind them, and neither writes nor reads them: older versions kept there which pages are free. So a file whose first
//! region has some is redb's in every respect (`write_empty_with_margin`). A file without has no margin.
//!
//! A row stands at the beginning of a page: its length, its round, its bytes. A round is named by the checksum of the entry before its first
//! row, which nobody who sends a message knows: a body cannot pass for a row.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::sync::Arc;
use std::sync::MutexGuard;

use redb::Database;
use redb::StorageBackend;
use redb::WriteTransaction;
use redb::backends::InMemoryBackend;

use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::header::REGION_HEADER_PAGES;
use crate::engine::store::journal;
use crate::engine::store::journal_row;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::log::Entry;
use crate::engine::store::log::LogPlace;
use crate::engine::store::shared_file::SharedFile;
use crate::error::Fault;
use crate::mutex::Mutex;

/// What redb's header takes, and where its first region begins; every page has so many bytes.
const PAGE: usize = 4096;

/// The pages of a new file's margin, 2 MiB of it. When they are used up, the next commit takes as long as one without a margin: fewer than one
/// message in a hundred waits for that, of those with a short body that need two commits each.
pub(crate) const PAGES: usize = if cfg!(test) { 6 } else { 512 };

/// Most bytes of a row that goes to the margin. It is written once more when it is put into the journal, and with longer rows that takes
/// longer than what redb writes beside them.
const ROW_BYTES_MAX: usize = if cfg!(test) { 8 * 1024 } else { 32 * 1024 };

/// What stands before a row: its length in four bytes, and its round.
pub(crate) const FRAME_BYTES: usize = 12;

/// What is to become of a margin whose rows are put into the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarginUse {
    /// More rows may come: nobody may open the file who does not know of it.
    GoesOn,
    /// None come any more.
    Ends,
}

/// The margin of a file that is open.
pub(crate) struct Margin {
    file: SharedFile,
    pages: usize,
    /// What is in it and not in the journal, in order.
    rows: Vec<MarginRow>,
    pages_used: usize,
    /// The checksum of the entry before the first of these rows.
    round: u64,
    /// What the file says of it, since it was opened.
    declared: MarginUse,
}

/// A margin that several write, one after the other.
#[derive(Clone)]
pub(crate) struct SharedMargin(Arc<Mutex<Margin>>);

impl SharedMargin {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Margin> {
        self.0.lock()
    }
}

/// A row in the margin.
#[derive(Clone)]
pub(crate) struct MarginRow {
    position: u64,
    bytes: Vec<u8>,
}

impl MarginRow {
    /// The same as an entry.
    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry { position: self.position, bytes: &self.bytes }
    }
}

impl Margin {
    /// The margin of a file of redb, without a look at what is in it; `None` when it has none.
    ///
    /// # Errors
    /// The fault of the disk.
    pub(crate) fn of(file: SharedFile) -> Result<Option<Margin>, Fault> {
        let pages = header_pages(&file).map_err(file_fault)?;
        let margin =
            Margin { file, pages, rows: Vec::new(), pages_used: 0, round: 0, declared: MarginUse::Ends };
        Ok((pages > 0).then_some(margin))
    }

    /// Whether a row can be appended now.
    pub(crate) fn takes(&self, row: &[u8]) -> bool {
        let has_room = self.pages_used + pages_of(row.len()) <= self.pages;
        self.is_in_use() && row.len() <= ROW_BYTES_MAX && has_room
    }

    /// Appends a row that it takes, and returns once that is on the disk.
    ///
    /// # Errors
    /// The fault of the disk; it is unknown then whether the row is there.
    pub(crate) fn append(&mut self, Entry { position, bytes }: Entry<'_>) -> Result<(), Fault> {
        let len = u32::try_from(bytes.len()).expect("the rows of a margin are short");
        let framed = [&len.to_le_bytes(), &self.round.to_le_bytes()[..], bytes].concat();
        let offset = PAGE * (1 + self.pages_used);
        match self.file.write_for_good(offset as u64, &framed) {
            Ok(()) => {
                self.keep(position, bytes);
                Ok(())
            }
            Err(error) => {
                self.stop();
                Err(file_fault(error))
            }
        }
    }

    fn keep(&mut self, position: u64, bytes: &[u8]) {
        self.rows.push(MarginRow { position, bytes: bytes.to_vec() });
        self.pages_used += pages_of(bytes.len());
    }

    /// Finds what was left in it when the file was not closed: the rows behind the last entry of the journal. Returns whether there are
    /// any.
    ///
    /// # Errors
    /// [`Fault::Damaged`] when a row is missing before one that is there; the fault of the disk.
    pub(crate) fn find_left(&mut self, mut last: LogPlace) -> Result<bool, Fault> {
        self.round = last.checksum;
        let mut margin = vec![0; self.pages * PAGE];
        self.file.read(PAGE as u64, &mut margin).map_err(file_fault)?;
        let mut page = 0;
        while page < self.pages {
            let Some(row) = FoundRow::at(&margin[page * PAGE..]) else {
                page += 1;
                continue;
            };
            let JournalHeader { position, previous, .. } = row.header;
            // Each round begins with the first page, and what stands there was put there by a margin.
            if position <= last.position || (row.round != self.round && page > 0) {
                page += 1;
            } else if position == last.position + 1 && previous == last.checksum {
                self.keep(position, row.bytes);
                last = LogPlace { position, checksum: row.checksum };
                page = self.pages_used;
            } else {
                return Err(damaged(&JOURNAL, "a row is missing before one at the front of the file"));
            }
        }
        Ok(!self.rows.is_empty())
    }

    /// Whether the file says this of it already.
    pub(crate) fn is_declared(&self, as_what: MarginUse) -> bool {
        self.declared == as_what
    }

    /// Whether rows may be in it that are not in the journal, as the file says.
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_declared(MarginUse::GoesOn)
    }

    /// What is in it and not in the journal, in order.
    pub(crate) fn rows(&self) -> &[MarginRow] {
        &self.rows
    }

    /// How many bytes these have, in whole pages.
    pub(crate) fn bytes(&self) -> u64 {
        (self.pages_used * PAGE) as u64
    }

    /// Puts all that is in it into the journal.
    pub(crate) fn put_into_journal(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
        journal::append(transaction, self.rows.iter().map(MarginRow::entry))
    }

    /// Begins it anew, once all that was in it is committed, and behind it the row of an entry.
    pub(crate) fn begin_anew(&mut self, declared: MarginUse, row: Option<&[u8]>) {
        if let Some(last) = row.or(self.rows.last().map(|row| &row.bytes[..])) {
            self.round = journal_row::checksum_of(last);
        }
        self.rows.clear();
        (self.pages_used, self.declared) = (0, declared);
    }

    /// Takes nothing before a commit has succeeded: after one that failed it is not known whether what is in it is in the journal.
    pub(crate) fn stop(&mut self) {
        self.pages_used = self.pages;
    }

    /// The same for those who write the file from now on, once what was left in it is in the journal.
    pub(crate) fn shared(mut self) -> SharedMargin {
        self.begin_anew(MarginUse::Ends, None);
        SharedMargin(Arc::new(Mutex::new(self)))
    }
}

/// A row that stands in the margin, be it of this round or of one before.
struct FoundRow<'a> {
    round: u64,
    header: JournalHeader,
    checksum: u64,
    bytes: &'a [u8],
}

impl<'a> FoundRow<'a> {
    /// The row at the beginning of these bytes, if one is there and whole.
    fn at(margin: &'a [u8]) -> Option<FoundRow<'a>> {
        let (len, rest) = margin.split_first_chunk::<4>()?;
        let (round, rest) = rest.split_first_chunk::<8>()?;
        let bytes = rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
        let (header, checksum, _) = RowReader::open(bytes).ok()?;
        Some(FoundRow { round: u64::from_le_bytes(*round), header, checksum, bytes })
    }
}

/// How many pages a row of this length takes.
fn pages_of(row_len: usize) -> usize {
    (FRAME_BYTES + row_len).div_ceil(PAGE)
}

/// Writes an empty database with a margin to a file that is empty. What a crash leaves of it is no database.
pub(crate) fn write_empty_with_margin(file: &dyn StorageBackend) -> Result<(), Fault> {
    let made = SharedFile::new(InMemoryBackend::new());
    drop(Database::builder().create_with_backend(made.clone()).map_err(store_fault)?);
    copy_with_margin(&made, file).map_err(file_fault)
}

/// Copies a database that has no header pages, with some.
fn copy_with_margin(from: &dyn StorageBackend, to: &dyn StorageBackend) -> io::Result<()> {
    let mut bytes = vec![0; usize::try_from(from.len()?).map_err(io::Error::other)?];
    from.read(0, &mut bytes)?;
    let behind = bytes.split_off(PAGE);
    bytes[REGION_HEADER_PAGES..REGION_HEADER_PAGES + 4].copy_from_slice(&(PAGES as u32).to_le_bytes());
    // Zeros are written and not left out, so that the file system has given the room when a row comes.
    bytes.resize(PAGE * (1 + PAGES), 0);
    bytes.extend(behind);
    to.set_len(bytes.len() as u64)?;
    // One page after the other, as the margin is written: a kernel that has cached them as one long piece goes through all of it with
    // each sync.
    for (index, page) in bytes.chunks(PAGE).enumerate().skip(1) {
        to.write((index * PAGE) as u64, page)?;
    }
    to.sync_data()?;
    // What makes a database of it comes last.
    to.write(0, &bytes[..PAGE])?;
    to.sync_data()
}

/// How many pages are before the first region's own.
fn header_pages(file: &dyn StorageBackend) -> io::Result<usize> {
    let mut pages = [0; 4];
    file.read(REGION_HEADER_PAGES as u64, &mut pages)?;
    usize::try_from(u32::from_le_bytes(pages)).map_err(io::Error::other)
}

/// Whether a file has a margin into which no row was ever written.
pub(crate) fn has_unused_margin(file: &mut File) -> io::Result<bool> {
    let (mut pages, mut frame) = ([0; 4], [0; FRAME_BYTES]);
    file.seek(SeekFrom::Start(REGION_HEADER_PAGES as u64))?;
    file.read_exact(&mut pages)?;
    file.seek(SeekFrom::Start(PAGE as u64))?;
    file.read_exact(&mut frame)?;
    Ok(pages != [0; 4] && frame == [0; FRAME_BYTES])
}
