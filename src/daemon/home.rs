//! The data folder: where the store is, and what its children are known by.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::error::Misuse;

/// Name of the store's file in the data folder.
pub(crate) const STORE_FILE: &str = "seriatim.redb";

/// Name of the folder of backups in the data folder.
const BACKUPS: &str = "backups";

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

    /// Where a backup of this name is written.
    ///
    /// # Errors
    /// [`Misuse`] when there is one of this name, or the folder of backups cannot be made.
    pub(crate) fn backup(&self, name: &str) -> Result<PathBuf, Misuse> {
        let folder = self.folder.join(BACKUPS);
        std::fs::create_dir_all(&folder)
            .map_err(|error| Misuse::new("path", format!("cannot be used: {error}")))?;
        let path = folder.join(name);
        match path.exists() {
            true => Err(Misuse::new("path", format!("is taken: {} is there already", path.display()))),
            false => Ok(path),
        }
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
