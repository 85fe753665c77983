//! The endpoint: it listens, and gives every connection a task of its own.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::amqp::Connection;
use crate::amqp::ConnectionOptions;
use crate::clock::Clock;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::inbound::accept::listen;
use crate::inbound::accept::wait_after;
use crate::intake::Intake;
use crate::limits;
use crate::sas::Keys;
use crate::sas::Signatures;
use crate::service_bus::config::Configuration;
use crate::service_bus::config::ConfigurationError;
use crate::service_bus::config::ConfiguredQueue;
use crate::service_bus::meters::Meters;
use crate::service_bus::shared::IsOpen;
use crate::service_bus::shared::Shared;
use crate::service_bus::talk::Talk;
use crate::service_bus::talk::elapsed_ms;

/// Where an endpoint listens, and what it serves.
#[derive(Clone, Debug)]
pub(crate) struct EndpointOptions {
    /// The address; port 0 takes any that is free.
    pub(crate) address: SocketAddr,
    /// Who may do what; without keys, everybody on this machine may do everything.
    pub(crate) keys: Option<Keys>,
    /// An emulator's file of queues.
    pub(crate) config: Option<PathBuf>,
    /// How many connections may be open at once.
    pub(crate) connections_max: usize,
}

impl EndpointOptions {
    pub(crate) fn new(address: SocketAddr) -> EndpointOptions {
        EndpointOptions {
            address,
            keys: None,
            config: None,
            connections_max: limits::SERVICE_BUS_CONNECTIONS_MAX,
        }
    }
}

/// Why an endpoint cannot start.
#[derive(Debug, Error)]
pub(crate) enum EndpointError {
    /// The address cannot be had.
    #[error("listen on {0} for AMQP: {1}")]
    Bind(SocketAddr, io::Error),
    /// Other machines could come in.
    #[error(
        "listen on {0} for AMQP: other machines can reach this address, and this endpoint has no TLS; listen on \
         127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// The file of queues cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// A queue of the file cannot be made.
    #[error("make queue {0}: {1}")]
    Queue(String, QueueError),
}

/// An endpoint that listens.
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    places: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Endpoint {
    /// Listens, and makes the queues of the configuration; nothing is answered before [`Endpoint::run`].
    pub(crate) async fn bind(
        options: EndpointOptions,
        intake: Intake,
        is_open: IsOpen,
        clock: Arc<dyn Clock>,
        meters: Meters,
    ) -> Result<Endpoint, EndpointError> {
        let address = options.address;
        if !address.ip().is_loopback() {
            return Err(EndpointError::Unprotected(address));
        }
        let signatures = options.keys.map(Signatures::new);
        let shared = Arc::new(Shared::new(intake, is_open, clock, meters, signatures));
        if let Some(path) = &options.config {
            configure(&shared, Configuration::read(path)?).await?;
        }
        let listening = listen(address).await;
        let (listener, address) = listening.map_err(|error| EndpointError::Bind(address, error))?;
        Ok(Endpoint { listener, address, places: Arc::new(Semaphore::new(options.connections_max)), shared })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopping` is set; then every client is told, and cut off if it does not end.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        let (tracker, cut) = (TaskTracker::new(), CancellationToken::new());
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stopping.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => self.open(stream, &tracker, &cut),
                Err(error) => wait_after(&error).await,
            }
        }
        self.shared.stopping.cancel();
        tracker.close();
        if tokio::time::timeout(limits::AMQP_DRAIN_MAX, tracker.wait()).await.is_err() {
            cut.cancel();
            tracker.wait().await;
        }
    }

    fn open(&self, stream: TcpStream, tracker: &TaskTracker, cut: &CancellationToken) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!("turn an AMQP connection away: there are as many as there may be");
            return;
        };
        // Frames are written whole; waiting for more of them would only delay them.
        let _ = stream.set_nodelay(true);
        let now_ms = elapsed_ms(&*self.shared.clock);
        let options = ConnectionOptions {
            message_bytes_max: limits::SERVICE_BUS_MESSAGE_BYTES_MAX,
            ..ConnectionOptions::default()
        };
        let (shared, cut) = (self.shared.clone(), cut.clone());
        tracker.spawn(async move {
            let _place = place;
            let _open = shared.meters.open();
            let talk = Talk::new(Connection::new(options, now_ms), shared);
            cut.run_until_cancelled(talk.over(stream)).await;
        });
    }
}

/// Makes the queues of a file; those that are there are given its options.
async fn configure(shared: &Shared, configuration: Configuration) -> Result<(), EndpointError> {
    configuration.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    for ConfiguredQueue { name, options, requires_session } in configuration.queues {
        let failed = |error| EndpointError::Queue(name.to_string(), error);
        match shared.client.create_queue(name.as_str(), options.clone()).await {
            Err(QueueError::Refused(QueueRefusal::QueueExists(_))) => {
                shared.client.change_queue(name.as_str(), options).await.map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
            Ok(_) => {}
        }
        if requires_session {
            shared.require_session(name);
        }
    }
    Ok(())
}
