//! The room on a real disk, and the file that keeps some of it.

use std::fs::File;
use std::fs::Metadata;
use std::io;
use std::io::Read;
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
    /// The file system on which an engine's file is, or will be: where its path is a link, that of the file to which this leads.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn of_store(path: &Path) -> io::Result<Volume> {
        match path.canonicalize() {
            Ok(path) => Ok(Volume::of(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Volume::of(&std::path::absolute(path)?))
            }
            Err(error) => Err(error),
        }
    }

    /// The file system on which a file is.
    fn of(path: &Path) -> Volume {
        let (store, folder) = (path.to_owned(), folder_of(path).to_owned());
        Volume { store, folder, ballast: sibling(path, ".ballast") }
    }

    /// Gives back what an opening with head room has set aside.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn give_up_ballast(&self) -> io::Result<()> {
        match self.ballast_bytes() {
            Some(_) => self.drop_ballast(),
            None => Ok(()),
        }
    }

    /// How long the ballast is that is there, and how much of it takes room: less where it was copied without what is empty. What has
    /// anything but zeros at its beginning is none, and somebody else's.
    fn ballast_bytes(&self) -> Option<u64> {
        let about = std::fs::symlink_metadata(&self.ballast).ok().filter(Metadata::is_file)?;
        let mut begin = Vec::new();
        File::open(&self.ballast).ok()?.take(PIECE as u64).read_to_end(&mut begin).ok()?;
        begin
            .iter()
            .all(|byte| *byte == 0)
            .then_some(about.len().min(about.blocks().saturating_mul(BLOCK_BYTES)))
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
        match self.ballast_bytes() {
            Some(found) if found == bytes => true,
            // One of another size, or half of one.
            Some(_) => {
                let _ = std::fs::remove_file(&self.ballast);
                false
            }
            None => false,
        }
    }

    fn keeps_ballast(&self, bytes: u64) -> bool {
        self.ballast.symlink_metadata().is_ok_and(|about| about.len() == bytes)
    }

    fn make_ballast(&self, bytes: u64) -> io::Result<()> {
        if self.ballast_bytes().is_some() {
            std::fs::remove_file(&self.ballast)?;
        }
        let file = private().create_new(true).open(&self.ballast)?;
        let filled = fill(&file, bytes).and_then(|()| match self.ballast_bytes() {
            Some(found) if found == bytes => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the file system keeps no room for a file of zeros",
            )),
        });
        filled.inspect_err(|_| drop(std::fs::remove_file(&self.ballast)))
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
    use crate::engine::store::Store;
    use crate::engine::store::StoreOptions;
    use crate::error::OpenError;
    use crate::limits;

    fn open(path: &Path, head_room_bytes: u64) -> Result<Store, OpenError> {
        Store::open(path, StoreOptions { head_room_bytes, ..StoreOptions::default() })
    }

    #[test]
    fn a_second_opening_through_a_link_is_refused_and_leaves_the_ballast_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["a.redb", "b.redb"].map(|name| folder.path().join(name));
        let store = open(&path, limits::HEAD_ROOM_BYTES_MIN).unwrap();
        let volume = Volume::of_store(&path).unwrap();
        assert_eq!(volume.ballast_bytes(), Some(limits::HEAD_ROOM_BYTES_MIN));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for bytes in [0, 2 * limits::HEAD_ROOM_BYTES_MIN] {
            let refused = open(&link, bytes);
            assert!(matches!(refused, Err(OpenError::Held { ref holder, .. }) if holder == "this process"));
            assert_eq!(volume.ballast_bytes(), Some(limits::HEAD_ROOM_BYTES_MIN));
        }
        drop(store);
        open(&link, limits::HEAD_ROOM_BYTES_MIN).unwrap();
    }

    #[test]
    fn once_head_room_is_turned_off_its_ballast_goes_and_nothing_of_anybody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        drop(open(&path, limits::HEAD_ROOM_BYTES_MIN).unwrap());
        let volume = Volume::of_store(&path).unwrap();
        assert!(volume.ballast.exists(), "it stays while the engine is closed");
        drop(open(&path, 0).unwrap());
        assert!(!volume.ballast.exists());
        std::fs::write(&volume.ballast, "kept").unwrap();
        drop(open(&path, 0).unwrap());
        assert_eq!(std::fs::read_to_string(&volume.ballast).unwrap(), "kept");
    }

    #[test]
    fn somebody_elses_file_is_no_ballast_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::of(&folder.path().join("a.redb"));
        for text in ["kept", "kept as well"] {
            std::fs::write(&volume.ballast, text).unwrap();
            assert!(!volume.has_ballast(4));
            assert!(volume.make_ballast(4096).is_err());
            assert_eq!(std::fs::read_to_string(&volume.ballast).unwrap(), text);
        }
        for left in [0, 4095, 4097] {
            std::fs::write(&volume.ballast, vec![0; left]).unwrap();
            assert!(!volume.has_ballast(4096) && !volume.ballast.exists(), "half of one is");
        }
        File::create(&volume.ballast).unwrap().set_len(1 << 20).unwrap();
        assert!(volume.keeps_ballast(1 << 20) && !volume.has_ballast(1 << 20), "one without room is");
    }

    #[test]
    fn where_a_store_is_a_link_its_disk_is_that_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let [elsewhere, link] = ["elsewhere", "a.redb"].map(|name| folder.path().join(name));
        let path = elsewhere.join("b.redb");
        std::fs::create_dir(&elsewhere).unwrap();
        assert_eq!(Volume::of_store(&path).unwrap().folder, elsewhere, "it will be made there");
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let volume = Volume::of_store(&link).unwrap();
        assert_eq!(
            (volume.folder, volume.store),
            (elsewhere.canonicalize().unwrap(), path.canonicalize().unwrap())
        );
    }

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
