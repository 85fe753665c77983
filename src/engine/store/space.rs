//! The disk as the room on it is judged by: how much is free, the ballast, and what a copy of the file needs.

use std::io;
use std::path::Path;

use crate::error::OperateRefusal;

/// The disk, as far as its room goes.
pub(crate) trait Space: Send + Sync + 'static {
    /// Bytes that are free.
    fn free(&self) -> io::Result<u64>;

    /// Whether there is a ballast of this size.
    fn has_ballast(&self, bytes: u64) -> bool;

    /// Whether the ballast of this size is still there, as far as a glance tells.
    fn keeps_ballast(&self, bytes: u64) -> bool;

    /// Makes the ballast, or leaves nothing.
    fn make_ballast(&self, bytes: u64) -> io::Result<()>;

    /// Deletes the ballast.
    fn drop_ballast(&self) -> io::Result<()>;

    /// What a copy of the file needs, and what is free where it goes.
    fn copy(&self, target: &Path) -> io::Result<Outlay>;
}

/// How much room there is on the disk of an engine's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorageRoom {
    /// Free bytes, the head room included.
    pub free_bytes: u64,
    /// Bytes that are kept free for receiving, settling and purging.
    pub head_room_bytes: u64,
    /// Whether the disk is so full that sends, schedules and queue definitions are refused.
    pub is_full: bool,
}

/// What a copy of the file needs.
#[derive(Clone, Copy)]
pub(crate) struct Outlay {
    pub(crate) needed_bytes: u64,
    /// What is free where it goes, whether that is the disk of the file or another.
    pub(crate) free_bytes: u64,
    pub(crate) is_same_disk: bool,
}

impl Outlay {
    /// What it takes of the disk of the file.
    pub(crate) fn of_this_disk(&self) -> u64 {
        if self.is_same_disk { self.needed_bytes } else { 0 }
    }

    /// The refusal to make the copy.
    pub(crate) fn refusal(&self) -> OperateRefusal {
        OperateRefusal::StorageFull { needed_bytes: self.needed_bytes, free_bytes: self.free_bytes }
    }
}

/// Whether a write has failed because the disk is full, or what whoever writes may have of it is used up.
pub(crate) fn is_out_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
pub(crate) mod made {
    use std::sync::Arc;
    use std::sync::Mutex;

    use super::*;

    /// What tests keep free.
    pub(crate) const HEAD_ROOM: u64 = 64 << 20;

    /// A disk whose room a test sets, and perhaps how much of it may be used.
    #[derive(Clone, Default)]
    pub(crate) struct Made(pub(crate) Arc<Mutex<(u64, bool)>>, Arc<Mutex<Option<u64>>>);

    impl Made {
        pub(crate) fn allow(&self, bytes: u64) {
            *self.1.lock().unwrap() = Some(bytes);
        }

        pub(crate) fn set_free(&self, bytes: u64) {
            self.0.lock().unwrap().0 = bytes;
        }

        pub(crate) fn has(&self) -> bool {
            self.0.lock().unwrap().1
        }
    }

    impl Space for Made {
        fn free(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().0)
        }

        fn has_ballast(&self, _: u64) -> bool {
            self.has()
        }

        fn keeps_ballast(&self, _: u64) -> bool {
            self.has()
        }

        fn make_ballast(&self, bytes: u64) -> io::Result<()> {
            let mut made = self.0.lock().unwrap();
            if self.1.lock().unwrap().is_some_and(|allowed| allowed < bytes) {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            made.0 = made.0.checked_sub(bytes).ok_or(io::ErrorKind::StorageFull)?;
            made.1 = true;
            Ok(())
        }

        fn drop_ballast(&self) -> io::Result<()> {
            let mut made = self.0.lock().unwrap();
            *made = (made.0 + HEAD_ROOM, false);
            Ok(())
        }

        fn copy(&self, _: &Path) -> io::Result<Outlay> {
            let free_bytes = self.free()?;
            Ok(Outlay { needed_bytes: HEAD_ROOM, free_bytes, is_same_disk: true })
        }
    }
}
