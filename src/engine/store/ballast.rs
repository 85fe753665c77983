//! The room on a real disk, and the file that keeps some of it.

use std::fs::File;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::FallocateFlags;
use rustix::fs::fallocate;
use rustix::fs::statvfs;
use rustix::io::Errno;

use crate::engine::store::lock_file::folder_of;
use crate::engine::store::lock_file::private;
use crate::engine::store::lock_file::sibling;
use crate::engine::store::space::Outlay;
use crate::engine::store::space::Space;

/// What file systems count blocks in.
const BLOCK_BYTES: u64 = 512;

/// What is written at once where room cannot just be set aside.
const PIECE: usize = 1024 * 1024;

/// The file system of an engine's file.
pub(crate) struct Volume {
    store: PathBuf,
    folder: PathBuf,
    ballast: PathBuf,
}

impl Volume {
    /// The file system on which an engine's file is, or will be.
    pub(crate) fn of(path: &Path) -> Volume {
        let (store, folder) = (path.to_owned(), folder_of(path).to_owned());
        Volume { store, folder, ballast: sibling(path, ".ballast") }
    }
}

/// Bytes that are free on the file system of a folder.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let about = statvfs(folder)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

impl Space for Volume {
    fn free(&self) -> io::Result<u64> {
        free_bytes(&self.folder)
    }

    fn has_ballast(&self, bytes: u64) -> bool {
        let is_whole = std::fs::symlink_metadata(&self.ballast)
            .is_ok_and(|about| about.is_file() && about.len() == bytes);
        if !is_whole {
            // One of another size, or half of one.
            let _ = std::fs::remove_file(&self.ballast);
        }
        is_whole
    }

    fn make_ballast(&self, bytes: u64) -> io::Result<()> {
        let made = private().create(true).truncate(true).open(&self.ballast);
        let made = made.and_then(|file| fill(&file, bytes));
        made.inspect_err(|_| drop(std::fs::remove_file(&self.ballast)))
    }

    fn drop_ballast(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.ballast) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Some file systems give room free only once the deletion is on disk. The file is gone whatever comes of that.
        if let Err(error) = File::open(&self.folder).and_then(|folder| folder.sync_all()) {
            tracing::warn!(%error, "the ballast file is deleted, and that may take a while to make room");
        }
        Ok(())
    }

    fn copy(&self, target: &Path) -> io::Result<Outlay> {
        let (store, folder) = (self.store.metadata()?, Volume::of(target).folder);
        Ok(Outlay {
            // Blocks in use: a file may be longer than what is in it.
            needed_bytes: store.blocks().saturating_mul(BLOCK_BYTES),
            free_bytes: free_bytes(&folder)?,
            is_same_disk: folder.metadata()?.dev() == store.dev(),
        })
    }
}

fn fill(mut file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            let zeros = vec![0; PIECE];
            let mut left = bytes;
            while left > 0 {
                let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                file.write_all(&zeros[..piece])?;
                left -= piece as u64;
            }
        }
        done => done?,
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ballast_that_is_gone_already_counts_as_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::of(&folder.path().join("a.redb"));
        volume.make_ballast(4096).unwrap();
        assert!(volume.has_ballast(4096));
        volume.drop_ballast().unwrap();
        assert!(!volume.has_ballast(4096));
        volume.drop_ballast().expect("whoever tries again has what was wanted");
    }
}
