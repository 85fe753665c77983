//! The endpoint: it listens, and gives every connection a task of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::join_all;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::inbound::accept::accept_each;
use crate::inbound::accept::is_unprotected;
use crate::inbound::live_value::LiveValue;
use crate::intake::Intake;
use crate::limits;
use crate::sas::Keys;
use crate::service_bus::accepted_connection::AcceptedConnection;
use crate::service_bus::arrival::Arrivals;
use crate::service_bus::config::Configuration;
use crate::service_bus::configure::configure;
use crate::service_bus::description_ends::forget_all_deleted;
use crate::service_bus::description_ends::forget_deleted;
use crate::service_bus::description_news::follow;
use crate::service_bus::endpoint_error::EndpointError;
use crate::service_bus::forwarding::forward;
use crate::service_bus::listening::listen;
use crate::service_bus::meters::Meters;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::shared::Owners;
use crate::task::boxed;

/// Where an endpoint listens, and what it serves.
#[derive(Clone, Debug)]
pub(crate) struct EndpointOptions {
    /// The addresses; port 0 takes any that is free.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Who may do what; without keys, everybody who may come in may do everything.
    pub(crate) keys: LiveValue<Keys>,
    /// The certificate for TLS, if there is one, as it is in force.
    pub(crate) tls: Arc<ArcSwapOption<ServerConfig>>,
    /// Whether other machines may come in although nothing is encrypted.
    pub(crate) is_insecure: bool,
    /// An emulator's file of queues.
    pub(crate) config: Option<PathBuf>,
    /// How many connections may be open at once.
    pub(crate) connections_max: usize,
    /// How long a connection may take until it is known what it speaks.
    pub(crate) arrival_max: Duration,
}

impl EndpointOptions {
    pub(crate) fn new(address: SocketAddr) -> EndpointOptions {
        EndpointOptions {
            addresses: vec![address],
            keys: LiveValue::default(),
            tls: Arc::default(),
            is_insecure: false,
            config: None,
            connections_max: limits::SERVICE_BUS_CONNECTIONS_MAX,
            arrival_max: limits::AMQP_ARRIVAL_MAX,
        }
    }

    /// Whether the addresses may be listened at: where other machines reach one, only with keys and TLS, or on request, which
    /// the log repeats.
    fn check_addresses(&self) -> Result<(), EndpointError> {
        let (has_keys, has_tls) = (self.keys.load().is_some(), self.tls.load().is_some());
        for address in self.addresses.iter().filter(|address| !address.ip().is_loopback()) {
            if is_unprotected(*address, has_keys, has_tls) && !self.is_insecure {
                return Err(EndpointError::Unprotected(*address));
            }
            let who = if has_keys { "whoever has a key" } else { "everybody who reaches it" };
            if self.is_insecure {
                tracing::warn!(
                    "listening on {address} for AMQP that may come without TLS: {who} may use the queues, and everybody on \
                     the way can read what comes so"
                );
            }
        }
        Ok(())
    }

    fn is_for_others(&self) -> bool {
        self.addresses.iter().any(|address| !address.ip().is_loopback())
    }
}

/// An endpoint that listens.
pub(crate) struct Endpoint {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    places: Arc<Semaphore>,
    arrivals: Arc<Arrivals>,
    shared: Arc<EndpointState>,
}

/// The connections of an endpoint: what ends them, and waits for their end.
#[derive(Default)]
struct EndpointConnections {
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl Endpoint {
    /// Listens, and makes the queues of the configuration; nothing is answered before [`Endpoint::run`].
    pub(crate) async fn bind(
        options: EndpointOptions,
        intake: Intake,
        owners: Owners,
        clock: Arc<dyn Clock>,
        meters: Meters,
    ) -> Result<Endpoint, EndpointError> {
        options.check_addresses()?;
        let is_for_others = options.is_for_others();
        let shared = EndpointState::new(intake, owners, clock, meters, options.keys, is_for_others);
        let shared = Arc::new(shared);
        shared.descriptions.open().await?;
        if let Err(error) = forget_all_deleted(&shared).await {
            tracing::debug!(%error, "descriptions of deleted entities are kept until the next start");
        }
        if let Some(path) = &options.config {
            configure(&shared, Configuration::read(path)?).await?;
        }
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for address in options.addresses {
            let listening = listen(address);
            let (listener, address) = listening.map_err(|error| EndpointError::Bind(address, error))?;
            listeners.push(listener);
            addresses.push(address);
        }
        let arrivals = Arrivals::new(shared.clone(), options.tls, options.is_insecure, options.arrival_max);
        let places = Arc::new(Semaphore::new(options.connections_max));
        Ok(Endpoint { listeners, addresses, places, arrivals: Arc::new(arrivals), shared })
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `stopping` is set; then every connection is closed, and cut off if its client does not end it.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        let connections = EndpointConnections::default();
        connections.tracker.spawn(boxed(forward(self.shared.clone(), stopping.clone())));
        connections.tracker.spawn(boxed(follow(self.shared.clone(), stopping.clone())));
        connections.tracker.spawn(boxed(forget_deleted(self.shared.clone(), stopping.clone())));
        let open = |stream, peer| self.open(stream, peer, &connections);
        join_all(self.listeners.iter().map(|listener| accept_each(listener, &stopping, open))).await;
        self.shared.stopping.cancel();
        connections.tracker.close();
        if tokio::time::timeout(limits::AMQP_DRAIN_MAX, connections.tracker.wait()).await.is_err() {
            connections.cut.cancel();
            connections.tracker.wait().await;
        }
    }

    fn open(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        EndpointConnections { tracker, cut }: &EndpointConnections,
    ) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!("turned an AMQP connection away: there are as many as there may be");
            return;
        };
        // Frames are written whole; waiting for more of them would only delay them.
        let _ = stream.set_nodelay(true);
        let open = self.shared.meters.open();
        let accepted = AcceptedConnection::new(peer.ip(), place, open, tracker.token(), cut.clone());
        let arrivals = self.arrivals.clone();
        tracker.spawn(boxed(async move { arrivals.serve(stream, accepted).await }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::tls::TlsFiles;
    use crate::sas::Keys;

    #[test]
    fn other_machines_come_in_only_where_that_is_allowed() {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 5672));
        let refused = EndpointOptions::new(everywhere).check_addresses().unwrap_err().to_string();
        assert!(refused.contains("--insecure-network") && refused.contains("TLS"), "{refused}");
        let options = EndpointOptions { is_insecure: true, ..EndpointOptions::new(everywhere) };
        assert!(options.check_addresses().is_ok());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata");
        let (certificate, key) = (format!("{folder}/certificate.pem"), format!("{folder}/key.pem"));
        let files = TlsFiles { certificate: certificate.into(), key: key.into(), client_ca: None };
        let tls = Arc::new(ArcSwapOption::new(Some(files.read().unwrap())));
        let encrypted = EndpointOptions { tls, ..EndpointOptions::new(everywhere) };
        assert!(encrypted.check_addresses().is_err(), "without keys, everybody could do everything");
        let keys = LiveValue::new(Some(Keys::of_everybody("name", "a-text-that-nobody-guesses")));
        assert!(EndpointOptions { keys, ..encrypted }.check_addresses().is_ok());
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        assert!(EndpointOptions::new(here).check_addresses().is_ok());
        let both = EndpointOptions { addresses: vec![here, everywhere], ..EndpointOptions::new(here) };
        assert!(both.check_addresses().is_err() && both.is_for_others());
    }
}
