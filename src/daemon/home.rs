//! The data folder: where the store is, and what its children are known by.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

/// Name of the store's file in the data folder.
pub(crate) const STORE_FILE: &str = "seriatim.redb";

/// The data folder.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    folder: PathBuf,
    store_id: String,
}

impl Home {
    /// Finds the folder, or makes it.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn open(folder: &Path) -> io::Result<Home> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let about = folder.metadata()?;
        // The inode as well, because two containers may know two folders by one path.
        let store_id = format!("{}#{}-{}", folder.display(), about.dev(), about.ino());
        Ok(Home { folder, store_id })
    }

    /// The store's file.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join(STORE_FILE)
    }

    /// What every child of a daemon on this folder carries in its environment.
    pub(crate) fn store_id(&self) -> &str {
        &self.store_id
    }

    /// Size of the store's file; zero when it cannot be told.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.store().metadata().map_or(0, |about| about.len())
    }
}
