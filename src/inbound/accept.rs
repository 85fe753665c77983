//! Accepting connections, as long as there is a place for them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::inbound::connection::Connections;
use crate::inbound::places::Places;

/// Listens at an address, and says at which; port 0 takes any that is free.
pub(crate) async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Accepts connections to the address.
pub(crate) async fn accept_streams(
    listener: TcpListener,
    tls: &ArcSwapOption<ServerConfig>,
    places: &Arc<Places>,
    connections: &Connections,
    stopping: &CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.cancelled() => return,
        };
        let tls = tls.load_full().map(TlsAcceptor::from);
        match accepted {
            Ok((stream, peer)) => match places.take(Some(peer.ip())) {
                Some(place) => connections.open(stream, tls, place),
                // A word in plain text would mean nothing to who expects TLS.
                None if tls.is_none() => turn_away(&stream),
                None => {}
            },
            Err(error) => wait_after(&error).await,
        }
    }
}

/// Accepting fails when files are used up, and would fail at once again.
pub(crate) async fn wait_after(error: &io::Error) {
    tracing::warn!(%error, "accept a connection");
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(Duration::from_millis(50), never).await;
}

/// Tells a connection for which there is no place to come back, if it takes that at once.
fn turn_away(stream: &tokio::net::TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
}
