//! Where a server listens, and how it stops.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::Router;
use axum::response::IntoResponse;
use axum::response::Response;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::engine::Client;
use crate::inbound::accept::accept_streams;
use crate::inbound::accept::is_unprotected;
use crate::inbound::accept::listen;
use crate::inbound::accept::wait_after;
use crate::inbound::connection::Connections;
use crate::inbound::live_value::LiveValue;
use crate::inbound::places::Places;
use crate::inbound::timeouts::Timeouts;
use crate::inbound::tls::TlsError;
use crate::inbound::tls::TlsFiles;
use crate::limits;
use crate::sas::Keys;
use crate::server::answer::HttpRefusal;
use crate::server::host::Host;
use crate::server::host::Placement;
use crate::server::routes::router;
use crate::server::shared::ServerState;
use crate::server::shared::SharedServer;
use crate::server::socket::Socket;

/// Where and how a server listens.
#[derive(Clone, Debug)]
pub(crate) struct ServerOptions {
    /// The address; port 0 takes any that is free.
    pub(crate) address: SocketAddr,
    /// A socket in the file system, beside the address.
    pub(crate) socket: Option<PathBuf>,
    /// Who may do what; without keys, everybody on this machine may do everything.
    pub(crate) keys: Option<Keys>,
    /// The certificate for TLS; without it, others on the way can read everything.
    pub(crate) tls: Option<TlsFiles>,
    /// How many connections may be open at once.
    pub(crate) connections_max: usize,
    /// How many of them may come from one other machine.
    pub(crate) connections_per_address_max: usize,
    /// How long it waits for the other side.
    pub(crate) timeouts: Timeouts,
}

impl ServerOptions {
    /// At an address, for this machine only.
    pub(crate) fn new(address: SocketAddr) -> ServerOptions {
        ServerOptions {
            address,
            socket: None,
            keys: None,
            tls: None,
            connections_max: limits::HTTP_CONNECTIONS_MAX,
            connections_per_address_max: limits::HTTP_CONNECTIONS_PER_ADDRESS_MAX,
            timeouts: Timeouts::default(),
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub(crate) enum ServerError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The socket cannot be had.
    #[error("cannot listen on {path}: {error}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Other machines could come in without a key, or read the traffic.
    #[error(
        "cannot listen on {0}: other machines can reach this address, so keys and TLS are needed; give a keys file, a \
         certificate and its private key, or listen on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Keys and certificate as they are in force: what is changed of them is changed for everybody who has this.
#[derive(Clone, Debug)]
pub(crate) struct ServerCredentials {
    pub(crate) keys: LiveValue<Keys>,
    pub(crate) tls: Arc<ArcSwapOption<ServerConfig>>,
}

/// Changes who may come in while a server runs.
#[derive(Clone)]
pub(crate) struct CredentialReloader {
    address: SocketAddr,
    tls: Arc<ArcSwapOption<ServerConfig>>,
    shared: SharedServer,
}

impl CredentialReloader {
    /// Takes other keys, and reads the certificate again. Connections that are open keep the certificate they have; keys
    /// are asked for with every request.
    pub(crate) fn change(&self, keys: Option<Keys>, tls: Option<&TlsFiles>) -> Result<(), ServerError> {
        if is_unprotected(self.address, keys.is_some(), tls.is_some()) {
            return Err(ServerError::Unprotected(self.address));
        }
        let tls = tls.map(TlsFiles::read).transpose()?;
        self.tls.store(tls);
        self.shared.keys.replace(keys);
        Ok(())
    }
}

/// A server that listens.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    socket: Option<Socket>,
    tls: Arc<ArcSwapOption<ServerConfig>>,
    places: Arc<Places>,
    shared: SharedServer,
    mount: Mount,
}

/// Puts something in front of the API's router.
type Mount = Box<dyn FnOnce(Router) -> Router + Send>;

impl Server {
    /// Listens; nothing is answered before [`Server::run`].
    pub(crate) async fn bind(
        options: ServerOptions,
        client: Client,
        place: Arc<dyn Placement>,
        host: Arc<dyn Host>,
    ) -> Result<Server, ServerError> {
        let address = options.address;
        if is_unprotected(address, options.keys.is_some(), options.tls.is_some()) {
            return Err(ServerError::Unprotected(address));
        }
        let tls = options.tls.as_ref().map(TlsFiles::read).transpose()?;
        let listening = listen(address).await;
        let (listener, address) = listening.map_err(|error| ServerError::Bind { address, error })?;
        let socket = match options.socket {
            None => None,
            Some(path) => Some(
                Socket::bind(&path)
                    .await
                    .map_err(|error| ServerError::Socket { path: path.clone(), error })?,
            ),
        };
        let kept = limits::HTTP_CONNECTIONS_KEPT;
        let places = Places::new(options.connections_max, kept, options.connections_per_address_max);
        let places = Arc::new(places);
        let shared = Arc::new(ServerState::new(client, place, host, options.keys, options.timeouts));
        let tls = Arc::new(ArcSwapOption::new(tls));
        Ok(Server { listener, address, socket, tls, places, shared, mount: Box::new(|api| api) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves what is made of the API's router instead of it alone.
    pub(crate) fn mount(self, mount: impl FnOnce(Router) -> Router + Send + 'static) -> Server {
        Server { mount: Box::new(mount), ..self }
    }

    /// Keys and certificate as they are in force, for others who serve with them.
    pub(crate) fn credentials(&self) -> ServerCredentials {
        ServerCredentials { keys: self.shared.keys.clone(), tls: self.tls.clone() }
    }

    /// Who changes the keys and the certificate while it runs.
    pub(crate) fn credential_reloader(&self) -> CredentialReloader {
        CredentialReloader { address: self.address, tls: self.tls.clone(), shared: self.shared.clone() }
    }

    /// Serves until `stopping` is set; then who waits for work is told that there is none, requests end, and so do
    /// connections, after a limited time in any case.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        let Server { listener, socket, tls, places, shared, mount, .. } = self;
        let router = mount(router(&shared));
        let connections = Connections::new(router, refuse_head, shared.timeouts, shared.stopping.clone());
        tokio::join!(
            accept_streams(listener, &tls, &places, &connections, &stopping),
            accept_locally(socket, &places, &connections, &stopping),
        );
        shared.stopping.cancel();
        connections.end().await;
    }
}

fn refuse_head(why: &'static str) -> Response {
    HttpRefusal::new("malformed", why).into_response()
}

/// Accepts connections to the socket in the file system, if there is one.
async fn accept_locally(
    socket: Option<Socket>,
    places: &Arc<Places>,
    connections: &Connections,
    stopping: &CancellationToken,
) {
    let Some(socket) = socket else { return };
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stopping.cancelled() => return,
        };
        match accepted {
            Ok(stream) => match places.take(None) {
                Some(place) => connections.open_local(stream, place),
                None => drop(stream),
            },
            Err(error) => wait_after(&error).await,
        }
    }
}
