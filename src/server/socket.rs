//! A socket in the file system, which only who may open that file can use.

use std::fs;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use tokio::net::UnixListener;
use tokio::net::UnixStream;

/// A socket that listens; its file is removed when it is dropped.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens, in place of a socket that nobody listens to any more.
    pub(crate) async fn bind(path: &Path) -> io::Result<Socket> {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket && UnixStream::connect(path).await.is_err() {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Socket { listener, path: path.to_owned() })
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
