//! A disk in memory that writes down what is done to it, and can be told to fail.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use crate::engine::tests::crash::image::Image;
use crate::mutex::Mutex;

/// One thing that was done to a disk.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Write { offset: usize, data: Arc<[u8]> },
    SetLen(usize),
    Sync,
}

/// How a disk fails. Operations are counted from 0: writes, changes of length and syncs together, reads apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The operation fails once.
    ErrorAt(usize),
    /// From this operation on there is no room; syncs succeed.
    FullFrom(usize),
    /// The first sync from this operation on fails, and everything written since the sync before it is gone.
    SyncLosesAt(usize),
    /// The read brings only a part.
    ShortReadAt(usize),
    /// The power is cut: from this operation on nothing is done.
    GoneFrom(usize),
}

/// A disk. Its clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug)]
struct Platter {
    image: Image,
    /// What a power cut would leave for certain.
    synced: Image,
    log: Option<Vec<Op>>,
    ops: usize,
    reads: usize,
    trouble: Option<Trouble>,
    has_failed: bool,
}

impl Disk {
    /// A healthy disk with this content.
    pub(crate) fn new(image: Image) -> Disk {
        Disk::made(image, None, None)
    }

    /// A healthy disk that writes down what is done to it.
    pub(crate) fn recording(image: Image) -> Disk {
        Disk::made(image, Some(Vec::new()), None)
    }

    /// An empty disk that will fail.
    pub(crate) fn failing(trouble: Trouble) -> Disk {
        Disk::made(Image::default(), None, Some(trouble))
    }

    fn made(image: Image, log: Option<Vec<Op>>, trouble: Option<Trouble>) -> Disk {
        let synced = image.clone();
        let platter = Platter { image, synced, log, ops: 0, reads: 0, trouble, has_failed: false };
        Disk(Arc::new(Mutex::new(platter)))
    }

    /// What is on it, synced or not.
    pub(crate) fn image(&self) -> Image {
        self.0.lock().image.clone()
    }

    /// What was on it at the last sync.
    pub(crate) fn synced(&self) -> Image {
        self.0.lock().synced.clone()
    }

    /// How many operations were done, reads not counted.
    pub(crate) fn ops(&self) -> usize {
        self.0.lock().ops
    }

    /// How many reads were done.
    pub(crate) fn reads(&self) -> usize {
        self.0.lock().reads
    }

    /// Cuts the power after so many more operations.
    pub(crate) fn cut_after(&self, ops: usize) {
        let mut platter = self.0.lock();
        platter.trouble = Some(Trouble::GoneFrom(platter.ops + ops));
    }

    /// Whether it has failed as it was told to.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.lock().has_failed
    }

    /// What was done to it, from the start.
    pub(crate) fn take_log(&self) -> Vec<Op> {
        self.0.lock().log.take().unwrap_or_default()
    }
}

impl Platter {
    fn fail(&mut self, kind: io::ErrorKind) -> io::Result<()> {
        self.has_failed = true;
        Err(kind.into())
    }

    /// Counts an operation and fails it if that was asked for.
    fn count(&mut self, is_sync: bool) -> io::Result<()> {
        let op = self.ops;
        self.ops += 1;
        match self.trouble {
            Some(Trouble::ErrorAt(at)) if op == at => self.fail(io::ErrorKind::Other),
            Some(Trouble::GoneFrom(from)) if op >= from => self.fail(io::ErrorKind::NotConnected),
            Some(Trouble::FullFrom(from)) if op >= from && !is_sync => self.fail(io::ErrorKind::StorageFull),
            Some(Trouble::SyncLosesAt(from)) if op >= from && is_sync && !self.has_failed => {
                self.image = self.synced.clone();
                self.fail(io::ErrorKind::Other)
            }
            _ => Ok(()),
        }
    }

    fn record(&mut self, op: impl FnOnce() -> Op) {
        if let Some(log) = &mut self.log {
            log.push(op());
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().image.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut platter = self.0.lock();
        let read = platter.reads;
        platter.reads += 1;
        if platter.trouble == Some(Trouble::ShortReadAt(read)) {
            let half = out.len() / 2;
            platter.image.read(place(offset), &mut out[..half])?;
            return platter.fail(io::ErrorKind::UnexpectedEof);
        }
        platter.image.read(place(offset), out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut platter = self.0.lock();
        platter.count(false)?;
        platter.record(|| Op::SetLen(place(len)));
        platter.image.set_len(place(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.0.lock();
        platter.count(true)?;
        platter.record(|| Op::Sync);
        platter.synced = platter.image.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut platter = self.0.lock();
        platter.count(false)?;
        platter.record(|| Op::Write { offset: place(offset), data: data.into() });
        platter.image.write(place(offset), data);
        Ok(())
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("a disk of a test is small")
}
