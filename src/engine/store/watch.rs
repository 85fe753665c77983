//! Whether the store's file is still where it was opened: what is written to a file that was deleted or replaced is on
//! disk, and gone.

use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::engine::store::lock_file::fault_of;
use crate::error::Fault;

/// The place of an open file.
pub(crate) struct Watch {
    path: PathBuf,
    /// Where the store's path is a link, its own place: the file would stay, and the next start find something else.
    link: Option<(PathBuf, Option<(u64, u64)>)>,
    /// Which file it is; nothing where files have no such number.
    identity: Option<(u64, u64)>,
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
        Ok(Watch { path, link, identity: identity_of(&identity) })
    }

    /// Looks whether the file is still there.
    ///
    /// # Errors
    /// [`Fault::Lost`] when it was deleted, moved or replaced, or the link that led to it was.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.check_link()?;
        let what = match std::fs::metadata(&self.path) {
            Ok(about) if identity_of(&about) == self.identity => return Ok(()),
            Ok(_) => "another file was put in its place",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "it was deleted or moved",
            Err(error) => return Err(fault_of(&self.path, &error)),
        };
        Err(Fault::Lost { path: self.path.clone(), what })
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

#[cfg(unix)]
fn identity_of(about: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity_of(_: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, unix))]
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
