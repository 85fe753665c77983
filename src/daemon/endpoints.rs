//! The endpoint for storage queues, if it is wanted: what it is given, and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::daemon::daemon_state::DaemonState;
use crate::daemon::error::DaemonError;
use crate::definition::DefiningFile;
use crate::id::QueueName;
use crate::inbound::tls::TlsFiles;
use crate::sas::Keys;
use crate::server::ServerCredentials;
use crate::storage_queue::StorageQueueOptions;
use crate::storage_queue::StorageQueues;
use crate::task;

/// The endpoint, serving.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Serving {
    /// Begins to serve storage queues.
    pub(crate) fn begin(queues: StorageQueues, stopping: CancellationToken) -> Serving {
        Serving { address: queues.address(), task: task::spawn(queues.run(stopping)) }
    }

    /// Waits until it has stopped.
    pub(crate) async fn end(self) {
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "failed to stop the endpoint for storage queues in order");
        }
    }
}

impl DaemonState {
    /// The endpoint for storage queues, if an address was given for it.
    pub(crate) async fn storage_queues(
        self: &Arc<DaemonState>,
        ServerCredentials { keys, tls }: ServerCredentials,
    ) -> Result<Option<StorageQueues>, DaemonError> {
        let Some(address) = self.options.storage_queue else { return Ok(None) };
        let options = StorageQueueOptions { address, keys, tls };
        let (clock, meters) = (self.clock.clone(), self.storage_queue_meters.clone());
        let queues = StorageQueues::bind(options, self.intake.clone(), self.defined(), clock, meters).await;
        queues.map(Some).map_err(|error| DaemonError::Server(error.to_string()))
    }

    /// Says which file defines a queue, as long as the daemon runs.
    pub(crate) fn defined(self: &Arc<DaemonState>) -> DefiningFile {
        let definitions = Arc::downgrade(self);
        Arc::new(move |queue: &QueueName| {
            let daemon_state = definitions.upgrade()?;
            let definitions = daemon_state.definitions.load();
            definitions.get(queue.as_str()).map(|definition| definition.file.display().to_string())
        })
    }

    /// The keys of the keys file, if there is one.
    pub(crate) fn keys(&self) -> Result<Option<Keys>, DaemonError> {
        let keys = self.options.keys.as_ref().map(|file| Keys::read(file, |name| std::env::var(name).ok()));
        keys.transpose().map_err(|error| DaemonError::Server(error.to_string()))
    }

    /// Certificate and key, if there are any.
    pub(crate) fn tls(&self) -> Option<TlsFiles> {
        let files = self.options.tls.clone();
        files.map(|(certificate, key)| TlsFiles { certificate, key, client_ca: None })
    }
}
