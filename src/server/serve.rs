//! The accept loop, and what a connection is allowed.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::engine::Client;
use crate::limits;
use crate::server::host::Host;
use crate::server::host::Place;
use crate::server::pace::Outflow;
use crate::server::pace::Pace;
use crate::server::pace::Paced;
use crate::server::routes::router;
use crate::server::shared::House;
use crate::server::shared::Shared;

/// Where and how a server listens.
#[derive(Clone, Debug)]
pub(crate) struct ServerOptions {
    /// The address; port 0 takes any that is free.
    pub(crate) address: SocketAddr,
    /// How many connections may be open at once.
    pub(crate) connections_max: usize,
}

impl ServerOptions {
    pub(crate) fn new(address: SocketAddr) -> ServerOptions {
        ServerOptions { address, connections_max: limits::HTTP_CONNECTIONS_MAX }
    }
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub(crate) enum ServerError {
    /// The address cannot be had.
    #[error("listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
}

/// A server that listens.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    connections_max: usize,
    shared: Shared,
}

/// Listens and serves until `stopping` is set, and requests have ended.
pub(crate) async fn serve(
    options: ServerOptions,
    client: Client,
    place: Arc<dyn Place>,
    host: Arc<dyn Host>,
    stopping: CancellationToken,
) -> Result<(), ServerError> {
    Server::bind(options, client, place, host).await?.run(stopping).await;
    Ok(())
}

impl Server {
    /// Listens; nothing is answered before [`Server::run`].
    pub(crate) async fn bind(
        options: ServerOptions,
        client: Client,
        place: Arc<dyn Place>,
        host: Arc<dyn Host>,
    ) -> Result<Server, ServerError> {
        let ServerOptions { address, connections_max } = options;
        let failed = |error| ServerError::Bind { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address, connections_max, shared: Arc::new(House::new(client, place, host)) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopping` is set; then who waits for work is told that there is none, requests end, and so do
    /// connections, after a limited time in any case.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        let Server { listener, connections_max, shared, .. } = self;
        let places = Arc::new(Semaphore::new(connections_max));
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        let rooms = router(&shared);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopping.cancelled() => break,
            };
            let (stream, _) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accept a connection");
                    breathe().await;
                    continue;
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                turn_away(&stream);
                continue;
            };
            let _ = stream.set_nodelay(true);
            let connection = converse(stream, rooms.clone(), shared.stopping.clone(), place);
            let cut = cut.clone();
            connections.spawn(async move {
                tokio::select! {
                    () = connection => {}
                    () = cut.cancelled() => {}
                }
            });
        }
        drop(listener);
        shared.stopping.cancel();
        connections.close();
        if tokio::time::timeout(limits::HTTP_DRAIN_MAX, connections.wait()).await.is_err() {
            tracing::warn!(open = connections.len(), "close connections whose requests did not end");
            cut.cancel();
            connections.wait().await;
        }
    }
}

/// Lets a moment pass: accepting fails when files are used up, and would fail at once again.
async fn breathe() {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(Duration::from_millis(50), never).await;
}

/// Tells a connection for which there is no place to come back, if it takes that at once.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
}

/// Answers the requests of one connection.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    rooms: Router,
    stopping: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    let pace = Arc::new(Pace::default());
    let io = TokioIo::new(Paced::new(stream, pace.clone()));
    let service = service_fn(|request: Request<Incoming>| {
        pace.note_request();
        let (rooms, pace) = (rooms.clone(), pace.clone());
        async move {
            let Ok(response) = rooms.oneshot(request.map(Body::new)).await;
            Ok::<_, Infallible>(response.map(|body| Outflow::new(body, pace)))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(limits::HTTP_HEAD_BYTES_MAX);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "end a connection");
    }
}
