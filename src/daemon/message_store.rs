//! What keeps the daemon's messages: an engine with a file of its own, or a node of a cluster.

use std::io;
use std::path::Path;

#[cfg(feature = "cluster")]
use crate::daemon::cluster_store::ClusterStore;
use crate::daemon::data_dir::PARTITIONS;
use crate::daemon::data_dir::STORE_FILE;
use crate::daemon::data_dir::pause;
use crate::daemon::error::DaemonError;
use crate::daemon::membership::Membership;
use crate::daemon::options::DaemonOptions;
use crate::engine::Client;
use crate::engine::Engine;
use crate::error::OpenError;
use crate::limits;

/// What keeps the daemon's messages.
pub(crate) enum MessageStore {
    Engine(Engine),
    #[cfg(feature = "cluster")]
    Node(ClusterStore),
}

impl MessageStore {
    /// Opens what the options ask for.
    ///
    /// # Errors
    /// [`DaemonError`]; also when the folder has messages of the other kind of store, which would be left where they are.
    pub(crate) async fn open(folder: &Path, options: &DaemonOptions) -> Result<MessageStore, DaemonError> {
        let other = |what: &str| DaemonError::Data(folder.to_owned(), io::Error::other(what.to_owned()));
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &options.cluster {
            if folder.join(STORE_FILE).exists() {
                return Err(other(
                    "it has the messages of a daemon without a cluster, which a cluster does not read; give the node \
                     another folder, and bring them with `seriatim export` and `import`",
                ));
            }
            let node = ClusterStore::open(folder, cluster).await?;
            return Ok(MessageStore::Node(node));
        }
        if folder.join(PARTITIONS).exists() {
            return Err(other("it is the folder of a node of a cluster, which is not named: give --cluster"));
        }
        Ok(MessageStore::Engine(open(&folder.join(STORE_FILE), options).await?))
    }

    pub(crate) fn client(&self) -> &Client {
        match self {
            MessageStore::Engine(engine) => engine.client(),
            #[cfg(feature = "cluster")]
            MessageStore::Node(node) => node.client(),
        }
    }

    /// What is known of the cluster, if there is one.
    pub(crate) fn membership(&self) -> Membership {
        match self {
            MessageStore::Engine(_) => Membership::default(),
            #[cfg(feature = "cluster")]
            MessageStore::Node(node) => Membership { handle: Some(node.handle()) },
        }
    }

    /// Whether a fault has stopped it.
    pub(crate) fn has_failed(&self) -> bool {
        self.client().fault().is_some()
    }

    /// Ends it in good order; a node gives its partitions to others before.
    pub(crate) async fn close(self) {
        match self {
            MessageStore::Engine(engine) => engine.close().await,
            #[cfg(feature = "cluster")]
            MessageStore::Node(node) => node.close().await,
        }
    }
}

/// Opens the store. A daemon that was killed while it started a child leaves the lock with that child for the moment until
/// it becomes another program, so a lock that is held is looked at again for a while.
async fn open(store: &Path, options: &DaemonOptions) -> Result<Engine, OpenError> {
    let builder = || {
        let builder = Engine::builder(store).durability(options.durability);
        match options.head_room_bytes {
            0 => builder,
            bytes => builder.head_room(bytes),
        }
    };
    for _ in 0..limits::LOCK_LOOKS {
        match builder().open().await {
            Err(OpenError::Held { .. }) => pause().await,
            opened => return opened,
        }
    }
    builder().open().await
}
