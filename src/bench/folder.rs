//! A folder that is gone when whoever made it is done.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::bench::error::BenchError;

/// Names that are tried: a process of the same number that was killed may have left folders behind.
const NAMES_TRIED: usize = 100;

/// A new folder that is removed with all it holds when this is dropped.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a folder for a run in `parent`, or where temporary files go.
    pub(crate) fn make(parent: Option<&Path>) -> Result<Folder, BenchError> {
        Folder::make_for("bench", parent)
    }

    /// Makes a folder for another purpose, which is in its name.
    pub(crate) fn make_for(purpose: &str, parent: Option<&Path>) -> Result<Folder, BenchError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let name = || {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            format!("seriatim-{purpose}-{}-{number}", std::process::id())
        };
        let what = format!("make a folder in {}", parent.display());
        let names = std::iter::repeat_with(name).take(NAMES_TRIED);
        Ok(Folder { path: fresh(&parent, names).map_err(BenchError::system(what))? })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A folder that was not there before and that nobody else may look into: where all may write, somebody could have put one
/// there with what he wants us to run, or links to what he wants us to write.
fn fresh(parent: &Path, names: impl Iterator<Item = String>) -> io::Result<PathBuf> {
    std::fs::create_dir_all(parent)?;
    for name in names {
        let path = parent.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_somebody_else_has_put_there_is_not_taken() {
        let parent = Folder::make(None).unwrap();
        let (elsewhere, planted) = (parent.path().join("elsewhere"), parent.path().join("a"));
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &planted).unwrap();
        let names = |names: &'static [&str]| names.iter().map(|name| (*name).to_owned());
        let made = fresh(parent.path(), names(&["a", "elsewhere", "b"])).unwrap();
        assert_eq!(made, parent.path().join("b"));
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let refused = fresh(parent.path(), names(&["a", "b"])).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    }
}
