//! The folder a run writes to.

use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::bench::error::BenchError;

/// A new folder that is removed with all it holds when this is dropped.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a folder in `parent`, or where temporary files go.
    pub(crate) fn make(parent: Option<&Path>) -> Result<Folder, BenchError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("seriatim-bench-{}-{number}", std::process::id());
        let path = parent.map_or_else(std::env::temp_dir, Path::to_owned).join(name);
        let what = format!("make the folder {}", path.display());
        std::fs::create_dir_all(&path).map_err(BenchError::system(what))?;
        Ok(Folder { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
