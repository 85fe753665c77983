//! Files that a verb writes: for nobody else on this machine, and on disk before it is said that they are there.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How files with what is in a store are made: for nobody else on this machine.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Makes the names in a file's folder durable: a file that was made or renamed is on disk once its folder is.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Makes a folder where none is, and its name durable: a power cut would take what is in it with the name.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    sync_folder_of(folder)
}
