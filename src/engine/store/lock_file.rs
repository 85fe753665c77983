//! The lock beside the file: one engine at a time, and it says who.

use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Fault;
use crate::error::OpenError;

/// The longest text a lock file is read for: a process number.
const HOLDER_BYTES_MAX: u64 = 32;

/// The lock of an engine's file, as an engine has it while the file is open: for whoever moves or replaces the file.
///
/// It is a file beside that, to which a link leads, with `.lock` behind its name, and says which process has it. The lock goes when this
/// is dropped, and with the process, however it ends; the file of the lock stays.
///
/// ```
/// use seriatim::store::LockFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.redb");
/// let lock = LockFile::take(&path)?;
/// assert!(LockFile::take(&path).is_err(), "one at a time");
/// drop(lock);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LockFile {
    file: File,
}

impl LockFile {
    /// Takes the lock of the engine's file, which need not be there.
    ///
    /// # Errors
    /// [`OpenError::Held`] names the holder; [`OpenError::Fault`] when the file of the lock cannot be written.
    pub fn take(path: &Path) -> Result<LockFile, OpenError> {
        let lock_path = lock_path(path);
        check_is_file(&lock_path)?;
        let fault = |error| fault_of(&lock_path, &error);
        let opened = private().read(true).create(true).truncate(false).open(&lock_path);
        let mut file = opened.map_err(fault)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(path, &mut file)),
            Err(TryLockError::Error(error)) => return Err(fault(error).into()),
        }
        write_holder(&mut file).map_err(fault)?;
        Ok(LockFile { file })
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Beside the file itself, so that one lock is for all who open it, through whatever link.
fn lock_path(path: &Path) -> PathBuf {
    sibling(&path.canonicalize().unwrap_or_else(|_| path.to_owned()), ".lock")
}

fn write_holder(file: &mut File) -> std::io::Result<()> {
    let holder = std::process::id().to_string();
    // In place, and cut afterwards: a disk that is full has room for what is there already, and perhaps for nothing else.
    file.seek(SeekFrom::Start(0))?;
    file.write_all(holder.as_bytes())?;
    file.set_len(holder.len() as u64)
}

/// The refusal to look at a file that somebody has open.
pub(crate) fn held_by_another(path: &Path) -> OpenError {
    match File::open(lock_path(path)) {
        Ok(mut file) => held(path, &mut file),
        Err(_) => OpenError::Held { path: path.to_owned(), holder: "another process".to_owned() },
    }
}

/// The refusal that names who has the file open.
fn held(path: &Path, file: &mut File) -> OpenError {
    let mut text = String::new();
    let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
    let holder = match text.trim().parse::<u32>() {
        Ok(id) if read.is_ok() && id == std::process::id() => "this process".to_owned(),
        Ok(id) if read.is_ok() => format!("process {id}"),
        _ => "another process".to_owned(),
    };
    OpenError::Held { path: path.to_owned(), holder }
}

/// What follows the name of a file as long as it is made.
pub(crate) const NEW: &str = ".new";

/// Whether a file is named as what is made beside a store: who makes such a thing would take the file for it.
pub(crate) fn is_beside_a_store(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    [NEW, ".part", ".lock", ".ballast"].into_iter().any(|suffix| name.ends_with(suffix.as_bytes()))
}

/// The folder in which a file is.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The path of a file beside the engine's file.
pub(crate) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Refuses what is there and is no file: who opens a pipe waits for its other end, for ever perhaps, and a link to what is not
/// there may be one to a disk that is not mounted.
pub(crate) fn check_is_file(path: &Path) -> Result<(), OpenError> {
    let kind = match std::fs::metadata(path) {
        Ok(about) => about.file_type(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !path.is_symlink() => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let detail = "it is a link to a file that is not there".to_owned();
            return Err(OpenError::Foreign { path: path.to_owned(), detail });
        }
        Err(error) => return Err(fault_of(path, &error).into()),
    };
    let detail = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "it is a folder",
        _ => "it is a pipe, a socket or a device, no file",
    };
    Err(OpenError::Foreign { path: path.to_owned(), detail: detail.to_owned() })
}

/// How files of the store are made: what is in them is for nobody else on this machine.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A failure of the operating system with a file, as a fault that names it.
pub(crate) fn fault_of(path: &Path, error: &std::io::Error) -> Fault {
    file_fault(std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// A failure of the operating system as a fault.
pub(crate) fn file_fault(error: std::io::Error) -> Fault {
    Fault::File(Arc::new(error))
}
