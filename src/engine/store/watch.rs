//! Whether the store's file is still where it was opened: what is written to a file that was deleted or replaced is on
//! disk, and gone.

use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::engine::store::lock_file::fault_of;
use crate::error::Fault;

/// Every so many looks the path itself is asked, too: the name of an open file does not tell that another folder was
/// mounted over its own.
const LOOKS_BETWEEN_PATHS: u32 = 64;

/// The place of an open file.
pub(crate) struct Watch {
    path: PathBuf,
    /// Where the store's path is a link, its own place: the file would stay, and the next start find something else.
    link: Option<(PathBuf, Option<(u64, u64)>)>,
    /// Which file it is; nothing where files have no such number.
    identity: Option<(u64, u64)>,
    /// Where the system says what the open file is called, and what it said.
    name: Option<(PathBuf, PathBuf)>,
    looks: AtomicU32,
}

impl Watch {
    /// Begins to watch an open file. The path may be relative: it is remembered as what it is now.
    pub(crate) fn begin(path: &Path, file: &File) -> Result<Watch, Fault> {
        let fault = |error: io::Error| fault_of(path, &error);
        let identity = file.metadata().map_err(fault)?;
        let given = std::fs::symlink_metadata(path).map_err(fault)?;
        let link = match given.is_symlink() {
            true => Some((std::path::absolute(path).map_err(fault)?, identity_of(&given))),
            false => None,
        };
        let path = path.canonicalize().map_err(fault)?;
        let name =
            name_place_of(file).and_then(|place| Some((place.clone(), std::fs::read_link(place).ok()?)));
        Ok(Watch { path, link, identity: identity_of(&identity), name, looks: AtomicU32::new(0) })
    }

    /// Looks whether the file is still there.
    ///
    /// # Errors
    /// [`Fault::Lost`] when it was deleted, moved or replaced, or the link that led to it was.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.check_link()?;
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if !looks.is_multiple_of(LOOKS_BETWEEN_PATHS) && self.is_called_as_before() {
            return Ok(());
        }
        let what = match std::fs::metadata(&self.path) {
            Ok(about) if identity_of(&about) == self.identity => return Ok(()),
            Ok(_) => "another file was put in its place",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "it was deleted or moved",
            Err(error) => return Err(fault_of(&self.path, &error)),
        };
        Err(Fault::Lost { path: self.path.clone(), what })
    }

    /// Whether the open file has the name that it had: it would not if it, or a folder it is in, was deleted, moved or
    /// replaced. Asked instead of the path where it can be, because asking a file for its times makes Linux give its next
    /// write a time of its own, which the next fsync then has to write to the disk, too.
    fn is_called_as_before(&self) -> bool {
        let Some((place, name)) = &self.name else { return false };
        std::fs::read_link(place).is_ok_and(|now| now == *name)
    }

    fn check_link(&self) -> Result<(), Fault> {
        let Some((path, identity)) = &self.link else { return Ok(()) };
        let what = match std::fs::symlink_metadata(path) {
            Ok(about) if identity_of(&about) == *identity => return Ok(()),
            Ok(_) => "the link to it was replaced",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "the link to it was deleted or moved",
            Err(error) => return Err(fault_of(path, &error)),
        };
        Err(Fault::Lost { path: path.clone(), what })
    }
}

#[cfg(target_os = "linux")]
fn name_place_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
}

#[cfg(not(target_os = "linux"))]
fn name_place_of(_: &File) -> Option<PathBuf> {
    None
}

/// Which file it is; nothing where files have no such number.
#[cfg(unix)]
pub(crate) fn identity_of(about: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity_of(_: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_goes_away_or_is_replaced_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
        let file = File::create(&path).unwrap();
        let watch = Watch::begin(&path, &file).unwrap();
        watch.check().unwrap();
        std::fs::rename(&path, &other).unwrap();
        assert!(watch.check().unwrap_err().to_string().contains("it was deleted or moved"));
        File::create(&path).unwrap();
        assert!(watch.check().unwrap_err().to_string().contains("another file was put in its place"));
        std::fs::rename(&other, &path).unwrap();
        watch.check().unwrap();
    }

    #[test]
    fn a_folder_of_the_file_that_goes_away_or_is_replaced_is_missed() {
        let parent = tempfile::tempdir().unwrap();
        let [folder, other] = ["folder", "other"].map(|name| parent.path().join(name));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a");
        let file = File::create(&path).unwrap();
        let watch = Watch::begin(&path, &file).unwrap();
        for _ in 0..2 * LOOKS_BETWEEN_PATHS {
            watch.check().unwrap();
        }
        std::fs::rename(&folder, &other).unwrap();
        assert!(watch.check().unwrap_err().to_string().contains("it was deleted or moved"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::hard_link(other.join("a"), &path).unwrap();
        watch.check().unwrap();
    }

    #[test]
    fn what_the_name_does_not_tell_the_path_does() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
        let file = File::create(&path).unwrap();
        let mut watch = Watch::begin(&path, &file).unwrap();
        // As if another folder had been mounted over its own: the name is as before, and the path leads elsewhere.
        watch.name = Some((other.clone(), path.clone()));
        std::os::unix::fs::symlink(&path, &other).unwrap();
        std::fs::rename(&path, folder.path().join("c")).unwrap();
        let missed = (0..LOOKS_BETWEEN_PATHS).filter(|_| watch.check().is_err()).count();
        assert_eq!(missed, 1);
    }

    #[test]
    fn a_link_to_the_file_that_goes_away_or_is_replaced_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link, other] = ["a", "link", "other"].map(|name| folder.path().join(name));
        let file = File::create(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let watch = Watch::begin(&link, &file).unwrap();
        watch.check().unwrap();
        std::fs::rename(&link, &other).unwrap();
        let missed = watch.check().unwrap_err().to_string();
        assert!(missed.contains("the link to it was deleted or moved"), "{missed}");
        File::create(&link).unwrap();
        assert!(watch.check().unwrap_err().to_string().contains("the link to it was replaced"));
        std::fs::rename(&other, &link).unwrap();
        watch.check().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(watch.check().unwrap_err().to_string().contains("it was deleted or moved"));
    }
}
