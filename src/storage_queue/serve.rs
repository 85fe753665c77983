//! Where this endpoint listens, and how it stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::response::IntoResponse;
use axum::response::Response;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::definition::DefiningFile;
use crate::error::Unavailable;
use crate::inbound::accept::accept_streams;
use crate::inbound::accept::is_unprotected;
use crate::inbound::accept::listen;
use crate::inbound::connection::Connections;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::live_value::LiveValue;
use crate::inbound::timeouts::Timeouts;
use crate::intake::Intake;
use crate::limits;
use crate::sas::Keys;
use crate::sas::Signatures;
use crate::storage_queue::answer::headed;
use crate::storage_queue::meters::StorageMeters;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::request_id::request_id;
use crate::storage_queue::route::router;
use crate::storage_queue::shared::SharedStorage;
use crate::storage_queue::shared::StorageState;

/// The account for development and its key, which everybody knows: all emulators have them.
const EVERYBODYS_ACCOUNT: &str = "devstoreaccount1";
const EVERYBODYS_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Where and how this endpoint listens.
#[derive(Clone, Debug)]
pub(crate) struct StorageQueueOptions {
    /// The address; port 0 takes any that is free.
    pub(crate) address: SocketAddr,
    /// The accounts: each key that the daemon knows the text of. Without keys, everybody on this machine may do
    /// everything.
    pub(crate) keys: LiveValue<Keys>,
    /// The certificate for TLS, if there is one, as it is in force.
    pub(crate) tls: Arc<ArcSwapOption<ServerConfig>>,
}

/// Why this endpoint cannot start.
#[derive(Debug, Error)]
pub(crate) enum StorageQueueError {
    /// The address cannot be had.
    #[error("cannot listen on {0} for storage queues: {1}")]
    Bind(SocketAddr, #[source] io::Error),
    /// Other machines could come in without a key, or read the traffic.
    #[error(
        "cannot listen on {0} for storage queues: other machines can reach this address, so keys and TLS are needed; give a \
         keys file, a certificate and its private key, or listen on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// The engine is closed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The endpoint, listening.
pub(crate) struct StorageQueues {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ArcSwapOption<ServerConfig>>,
    shared: SharedStorage,
}

impl StorageQueues {
    /// Listens; nothing is answered before [`StorageQueues::run`].
    pub(crate) async fn bind(
        options: StorageQueueOptions,
        intake: Intake,
        defined: DefiningFile,
        clock: Arc<dyn Clock>,
        meters: StorageMeters,
    ) -> Result<StorageQueues, StorageQueueError> {
        let StorageQueueOptions { address, keys, tls } = options;
        if is_unprotected(address, keys.load().is_some(), tls.load().is_some()) {
            return Err(StorageQueueError::Unprotected(address));
        }
        let listening = listen(address).await;
        let (listener, address) = listening.map_err(|error| StorageQueueError::Bind(address, error))?;
        RECORDS.open(intake.client()).await?;
        let reading = Arc::new(BodyLimits::new(limits::STORAGE_BODIES_BYTES, Timeouts::default()));
        let shared = Arc::new(StorageState {
            intake,
            keys,
            everybodys: Signatures::of_everybody(EVERYBODYS_ACCOUNT, EVERYBODYS_KEY),
            defined,
            reading,
            clock,
            meters,
            changing: Default::default(),
        });
        Ok(StorageQueues { listener, address, tls, shared })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopping` is set; then requests end, after a limited time in any case.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        let connections =
            Connections::new(router(&self.shared), refuse_head, Timeouts::default(), stopping.clone())
                .head_bytes_max(limits::STORAGE_HEAD_BYTES_MAX);
        accept_streams(self.listener, &self.tls, &self.shared.meters.places, &connections, &stopping).await;
        connections.end().await;
    }
}

fn refuse_head(why: &'static str) -> Response {
    // Nothing is known of a request whose head means nothing, and this has no clock.
    let request_id = request_id(Timestamp::default());
    headed(StorageRefusal::bad("InvalidInput", why).into_response(), [("x-ms-request-id", request_id)])
}
