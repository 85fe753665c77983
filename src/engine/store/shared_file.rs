//! One file for two who write it: redb, and the margin.
//!
//! redb stops when a sync of its own has failed: what the kernel had not written yet may be lost, although a later sync succeeds. A sync that
//! the margin has asked for loses what redb has written as well, and redb would close the file as if it were there.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use redb::BackendError;
use redb::StorageBackend;

/// A file. Its clones are the same file.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    file: Arc<dyn StorageBackend>,
    is_given_up: Arc<AtomicBool>,
}

impl SharedFile {
    pub(crate) fn new(file: impl StorageBackend) -> SharedFile {
        SharedFile { file: Arc::new(file), is_given_up: Arc::default() }
    }

    /// Writes a piece, and returns once that is on the disk. If that fails, nobody reads or writes the file any more.
    pub(crate) fn write_for_good(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let written = self.write(offset, data).and_then(|()| self.sync_data());
        if written.is_err() {
            self.is_given_up.store(true, Ordering::Release);
        }
        written
    }

    /// The file, unless it was given up: what is read of it may not be what was written.
    fn usable(&self) -> io::Result<&dyn StorageBackend> {
        match self.is_given_up.load(Ordering::Acquire) {
            true => Err(io::Error::other("an earlier write has failed")),
            false => Ok(&*self.file),
        }
    }
}

impl StorageBackend for SharedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.usable()?.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.usable()?.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.usable()?.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.usable()?.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
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
