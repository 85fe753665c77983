//! A node of a cluster as what keeps the daemon's messages.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::cluster::ClusterHandle;
use crate::cluster::ClusterNode;
use crate::cluster::ClusterOptions;
use crate::cluster::PartitionState;
use crate::daemon::data_dir::PARTITIONS;
use crate::daemon::data_dir::pause;
use crate::daemon::error::DaemonError;
use crate::engine::Client;
use crate::limits;

/// Name of the file in the folder of partitions whose lock says that a daemon uses it.
const LOCK: &str = "lock";

/// A node of a cluster as what keeps the daemon's messages.
pub(crate) struct ClusterStore {
    node: ClusterNode,
    /// Held as long as the node runs: whoever has it is the only one whose handlers may live.
    _lock: File,
}

impl ClusterStore {
    /// Starts the node of a data folder.
    ///
    /// # Errors
    /// [`DaemonError`]; also when another daemon uses the folder.
    pub(crate) async fn open(folder: &Path, options: &ClusterOptions) -> Result<ClusterStore, DaemonError> {
        let mut options = options.clone();
        options.folder = folder.join(PARTITIONS);
        let unusable = |error| DaemonError::Data(folder.to_owned(), error);
        std::fs::create_dir_all(&options.folder).map_err(unusable)?;
        let lock = lock(&options.folder).await.map_err(unusable)?;
        Ok(ClusterStore { node: ClusterNode::start(options).await?, _lock: lock })
    }

    pub(crate) fn client(&self) -> &Client {
        self.node.client()
    }

    pub(crate) fn handle(&self) -> ClusterHandle {
        self.node.handle()
    }

    /// Gives the partitions to other nodes, one after the other, and ends the node.
    pub(crate) async fn close(self) {
        self.node.drain();
        let owns_some = || self.node.status().iter().any(|status| status.state == PartitionState::Owner);
        let mut looks = 0;
        while owns_some() && looks < limits::DRAIN_LOOKS {
            looks += 1;
            pause().await;
        }
        self.node.close().await;
    }
}

/// Locks a folder. A handler that was being started when its daemon was killed has the lock for a moment still.
async fn lock(folder: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).open(folder.join(LOCK))?;
    for _ in 0..limits::LOCK_LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => pause().await,
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("another daemon is using it"))
}
