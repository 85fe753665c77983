//! Connections to a daemon: plain TCP, or TLS with the roots of the web or of a file.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Uri;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use socket2::TcpKeepalive;
use tokio::net::TcpStream;
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;
use crate::limits;
use crate::tls_connector::ClientStream;
use crate::tls_connector::tls_connector;

/// How long a connection may be silent before the daemon's machine is asked whether it is there.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// How long it is waited before that is asked again.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// How often that is asked in vain before the connection is broken: half a minute after the last that was heard.
const PROBES: u32 = 3;

/// Opens connections.
#[derive(Clone)]
pub(crate) struct RemoteConnector {
    tls: Option<TlsConnector>,
}

impl RemoteConnector {
    /// Connections without encryption.
    pub(crate) fn plain() -> RemoteConnector {
        RemoteConnector { tls: None }
    }

    /// Encrypted connections to servers whose certificate leads to a root of the web, or of `roots` if there is one: a
    /// PEM file.
    ///
    /// # Errors
    /// [`Misuse`] when the file cannot be read or holds no certificate.
    pub(crate) fn encrypted(roots: Option<&Path>) -> Result<RemoteConnector, Misuse> {
        Ok(RemoteConnector { tls: Some(tls_connector(roots)?) })
    }

    async fn open(self, uri: Uri) -> io::Result<ClientStream> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let socket = connected(&host, port).await?;
        ClientStream::open(socket, self.tls.as_ref(), &host).await
    }
}

/// A socket that breaks when the daemon's machine vanishes: some requests wait for their answer as long as it takes.
async fn connected(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> =
        lookup_host((host, port)).await?.take(limits::REMOTE_ADDRESSES_MAX).collect();
    let socket = first_to_connect(&addresses, TcpStream::connect).await?;
    let probes =
        TcpKeepalive::new().with_time(SILENCE_MAX).with_interval(PROBE_INTERVAL).with_retries(PROBES);
    let options = SockRef::from(&socket);
    options.set_tcp_keepalive(&probes)?;
    // Linux does not ask while something that was sent is unacknowledged, which breaks the connection only after many minutes.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    options.set_tcp_user_timeout(Some(SILENCE_MAX + PROBE_INTERVAL * PROBES))?;
    Ok(socket)
}

/// Connects to the first address that answers. Each is tried beside those before it once these have refused or taken a moment,
/// so that one that never answers takes no time of the others.
async fn first_to_connect<S, C: Future<Output = io::Result<S>>>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> C,
) -> io::Result<S> {
    let mut untried = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        attempts.extend(untried.next().map(|address| connect(*address)));
        let ended = match untried.len() {
            0 => Ok(attempts.next().await),
            _ => timeout(limits::REMOTE_ADDRESS_STAGGER, attempts.next()).await,
        };
        match ended {
            Ok(Some(Ok(socket))) => return Ok(socket),
            Ok(Some(Err(error))) => failed = error,
            Ok(None) => return Err(failed),
            // The next is tried beside it.
            Err(_) => {}
        }
    }
}

impl tower::Service<Uri> for RemoteConnector {
    type Response = TokioIo<ClientStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<ClientStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let open = self.clone().open(uri);
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time");
            timeout(limits::REMOTE_CONNECT_MAX, open).await.map_err(late)?.map(TokioIo::new)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    // Only the client of NATS brings a clock of tokio's that can be moved.
    #[cfg(feature = "cluster")]
    #[tokio::test(start_paused = true)]
    async fn an_address_that_never_answers_takes_no_time_of_the_next() {
        async fn connect(address: SocketAddr) -> io::Result<u16> {
            match address.port() {
                1 => std::future::pending().await,
                2 => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
                port => Ok(port),
            }
        }
        let addresses = |ports: &[u16]| -> Vec<SocketAddr> {
            ports.iter().map(|port| SocketAddr::from(([192, 0, 2, 1], *port))).collect()
        };
        for ports in [&[1, 3][..], &[1, 2, 3], &[2, 1, 1, 3], &[3, 1]] {
            let connecting = timeout(limits::REMOTE_CONNECT_MAX / 2, async {
                first_to_connect(&addresses(ports), connect).await
            });
            assert_eq!(connecting.await.expect("there is time left").unwrap(), 3, "{ports:?}");
        }
        let refused = first_to_connect(&addresses(&[2, 2]), connect).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(first_to_connect(&[], connect).await.is_err(), "a name without an address is nowhere");
    }

    #[tokio::test]
    async fn a_machine_that_vanishes_is_missed_within_half_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = connected("127.0.0.1", listener.local_addr().unwrap().port()).await.unwrap();
        let options = SockRef::from(&socket);
        assert!(options.keepalive().unwrap(), "it is asked whether it is there");
        let asked = options.tcp_keepalive_interval().unwrap() * options.tcp_keepalive_retries().unwrap();
        assert_eq!(options.tcp_keepalive_time().unwrap() + asked, Duration::from_secs(30));
    }

    #[cfg(any(target_os = "android", target_os = "linux"))]
    #[tokio::test]
    async fn a_machine_that_vanishes_while_it_is_sent_something_is_missed_as_soon() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = connected("127.0.0.1", listener.local_addr().unwrap().port()).await.unwrap();
        let unacknowledged = SockRef::from(&socket).tcp_user_timeout().unwrap();
        assert_eq!(unacknowledged, Some(Duration::from_secs(30)));
    }
}
