//! Accepting connections, as long as there is a place for them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::inbound::connection::Connections;
use crate::inbound::places::Places;
use crate::limits;
use crate::mutex::Mutex;

/// Listens at an address, and says at which; port 0 takes any that is free.
pub(crate) async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Whether others could come in from other machines without a key, or read what comes.
pub(crate) fn is_unprotected(address: SocketAddr, has_keys: bool, has_tls: bool) -> bool {
    let is_reachable = !address.ip().is_loopback();
    is_reachable && (!has_keys || !has_tls)
}

/// Accepts connections to the address.
pub(crate) async fn accept_streams(
    listener: TcpListener,
    tls: &ArcSwapOption<ServerConfig>,
    places: &Arc<Places>,
    connections: &Connections,
    stopping: &CancellationToken,
) {
    let open = |stream, peer: SocketAddr| {
        let tls = tls.load_full().map(TlsAcceptor::from);
        match places.take(Some(peer.ip())) {
            Some(place) => connections.open(stream, tls, place),
            // A word in plain text would mean nothing to who expects TLS.
            None if tls.is_none() => turn_away(&stream),
            None => {}
        }
    };
    accept_each(&listener, stopping, open).await;
}

/// Passes on each connection that comes, and from where, until `stopping` is set.
pub(crate) async fn accept_each(
    listener: &TcpListener,
    stopping: &CancellationToken,
    open: impl Fn(TcpStream, SocketAddr),
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => open(stream, peer),
            Err(error) => wait_after(&error).await,
        }
    }
}

/// Accepting fails when files are used up, and would fail at once again.
pub(crate) async fn wait_after(error: &io::Error) {
    static COMPLAINTS: Complaints = Complaints::new();
    if let Some(unlogged) = COMPLAINTS.note_now() {
        tracing::warn!(%error, unlogged, "connections cannot be accepted; are there file handles left?");
    }
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(Duration::from_millis(50), never).await;
}

/// How often it was complained lately: what goes wrong for every connection would fill the log, and with it the disk.
pub(crate) struct Complaints {
    last: Mutex<LastComplaint>,
}

struct LastComplaint {
    at: Option<Duration>,
    unlogged: u64,
}

impl Complaints {
    pub(crate) const fn new() -> Complaints {
        Complaints { last: Mutex::new(LastComplaint { at: None, unlogged: 0 }) }
    }

    /// Notes a complaint by the clock of the system, as [`Complaints::note`].
    pub(crate) fn note_now(&self) -> Option<u64> {
        static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::default);
        self.note(CLOCK.elapsed())
    }

    /// Notes a complaint; it is to be told if none was for a second, with how many were not told since.
    fn note(&self, elapsed: Duration) -> Option<u64> {
        let mut last = self.last.lock();
        if last.at.is_some_and(|at| elapsed.saturating_sub(at) < limits::COMPLAINTS_EVERY) {
            last.unlogged += 1;
            return None;
        }
        last.at = Some(elapsed);
        Some(std::mem::take(&mut last.unlogged))
    }
}

/// Tells a connection for which there is no place to come back, if it takes that at once.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_errors_are_told_once_a_second() {
        let complaints = Complaints::new();
        let at = |ms| complaints.note(Duration::from_millis(ms));
        assert_eq!((at(0), at(50), at(999)), (Some(0), None, None));
        assert_eq!((at(1_000), at(1_050)), (Some(2), None));
        assert_eq!(at(60_000), Some(1));
    }
}
