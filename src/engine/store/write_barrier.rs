//! A gate before the file: until the file is known to be ours, nothing is written to it.
//!
//! redb may repair a file as soon as it opens it. Behind the gate it repairs a copy in memory; once the format has been
//! read and accepted, what it wrote goes to the file in the same order, and from then on straight through. A file that
//! is refused is left as it was.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redb::BackendError;
use redb::StorageBackend;
use redb::backends::FileBackend;

use crate::engine::store::room::DiskRoom;
use crate::engine::store::space::is_out_of_room;
use crate::mutex::Mutex;

/// What the held-back copy is kept in pieces of.
const PIECE: usize = 4096;

/// One operation that is held back.
#[derive(Debug)]
enum WriteOperation {
    Write { offset: u64, data: Vec<u8> },
    SetLen(u64),
    Sync,
}

/// What was written behind the closed gate: in order, and as the file would look.
#[derive(Debug, Default)]
struct PendingWrites {
    operations: Vec<WriteOperation>,
    pieces: BTreeMap<u64, Vec<u8>>,
    len: Option<u64>,
}

/// A file behind a gate.
#[derive(Clone, Debug)]
pub(crate) struct GatedFile {
    file: Arc<FileBackend>,
    /// Whether it takes shared locks only: a file that is open for reading has no others.
    shared: bool,
    open: Arc<AtomicBool>,
    held_back: Arc<Mutex<PendingWrites>>,
    /// By how much every sync is made longer.
    sync_delay: Duration,
    /// Bytes that were written.
    written: Arc<AtomicU64>,
    /// Where a write that finds no room gets some, if that is looked after.
    room: Option<DiskRoom>,
}

impl GatedFile {
    /// A closed gate before a file, which adds up what is written.
    pub(crate) fn closed(
        file: FileBackend,
        sync_delay: Duration,
        written: Arc<AtomicU64>,
        room: Option<DiskRoom>,
    ) -> GatedFile {
        let (open, held_back) = (Arc::default(), Arc::default());
        GatedFile { file: Arc::new(file), shared: false, open, held_back, sync_delay, written, room }
    }

    /// A gate before a file that is only looked at: it never opens, and shares the file with others who look.
    pub(crate) fn for_looking(file: FileBackend) -> GatedFile {
        GatedFile { shared: true, ..GatedFile::closed(file, Duration::ZERO, Arc::default(), None) }
    }

    /// Opens the gate: what was held back goes to the file, in order.
    pub(crate) fn open(&self) -> io::Result<()> {
        let mut held_back = self.held_back.lock();
        for operation in held_back.operations.drain(..) {
            match operation {
                WriteOperation::Write { offset, data } => self.write_to_file(offset, &data)?,
                WriteOperation::SetLen(len) => self.file.set_len(len)?,
                WriteOperation::Sync => self.file.sync_data()?,
            }
        }
        held_back.pieces.clear();
        self.open.store(true, Ordering::Release);
        Ok(())
    }

    fn write_to_file(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match (self.file.write(offset, data), &self.room) {
            // Somebody else on the disk was faster than every look.
            (Err(error), Some(room)) if is_out_of_room(&error) && room.rescue() => {
                self.file.write(offset, data)
            }
            (written, _) => written,
        }
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// A piece as the file would have it; beyond the file's end it is zero.
    fn piece_of_file(&self, index: u64) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; PIECE];
        let offset = index * PIECE as u64;
        let available = self.file.len()?.saturating_sub(offset).min(PIECE as u64);
        let available = usize::try_from(available).unwrap_or(PIECE);
        if available > 0 {
            self.file.read(offset, &mut piece[..available])?;
        }
        Ok(piece)
    }

    /// Calls `work` with each piece that a range touches, where in the piece, and where in the range.
    fn for_each_piece(
        offset: u64,
        len: usize,
        mut work: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let index = at / PIECE as u64;
            let within = usize::try_from(at % PIECE as u64).unwrap_or(0);
            let count = (PIECE - within).min(len - done);
            work(index, within..within + count, done..done + count)?;
            done += count;
        }
        Ok(())
    }
}

impl StorageBackend for GatedFile {
    fn len(&self) -> io::Result<u64> {
        match self.held_back.lock().len {
            Some(len) if !self.is_open() => Ok(len),
            _ => self.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.is_open() {
            return self.file.read(offset, out);
        }
        if offset + out.len() as u64 > self.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let held_back = self.held_back.lock();
        let pieces = offset / PIECE as u64..=(offset + out.len() as u64) / PIECE as u64;
        if held_back.pieces.range(pieces).next().is_none() && offset + out.len() as u64 <= self.file.len()? {
            return self.file.read(offset, out);
        }
        GatedFile::for_each_piece(offset, out.len(), |index, within, place| {
            match held_back.pieces.get(&index) {
                Some(piece) => out[place].copy_from_slice(&piece[within]),
                None => out[place].copy_from_slice(&self.piece_of_file(index)?[within]),
            }
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.is_open() {
            return self.file.set_len(len);
        }
        let mut held_back = self.held_back.lock();
        held_back.operations.push(WriteOperation::SetLen(len));
        held_back.pieces.retain(|index, _| index * (PIECE as u64) < len);
        held_back.len = Some(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_open() {
            wait(self.sync_delay);
            return self.file.sync_data();
        }
        self.held_back.lock().operations.push(WriteOperation::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        if self.is_open() {
            return self.write_to_file(offset, data);
        }
        let mut held_back = self.held_back.lock();
        GatedFile::for_each_piece(offset, data.len(), |index, within, place| {
            let mut piece = match held_back.pieces.remove(&index) {
                Some(piece) => piece,
                None => self.piece_of_file(index)?,
            };
            piece[within].copy_from_slice(&data[place]);
            held_back.pieces.insert(index, piece);
            Ok(())
        })?;
        held_back.operations.push(WriteOperation::Write { offset, data: data.to_vec() });
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.shared {
            return self.file.try_lock_shared_range(start, end);
        }
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.shared {
            return self.file.lock_shared_range(start, end);
        }
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

/// Makes a sync as slow as that of another disk.
#[expect(clippy::disallowed_methods, reason = "a slow disk is exactly what is asked for")]
fn wait(sync_delay: Duration) {
    if !sync_delay.is_zero() {
        std::thread::sleep(sync_delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_is_used_up_is_a_full_disk() {
        let full = [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT].map(io::Error::from);
        assert!(full.iter().all(is_out_of_room));
        assert!(!is_out_of_room(&io::ErrorKind::PermissionDenied.into()));
    }
}
