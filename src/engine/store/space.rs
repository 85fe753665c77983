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
