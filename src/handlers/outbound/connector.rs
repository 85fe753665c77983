//! Connects to the addresses that were checked, and to no other.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::api::WireDuration;
use crate::error::Misuse;
use crate::handlers::outbound::target::TargetUrl;
use crate::tls_connector::ClientStream;
use crate::tls_connector::tls_connector;

/// The least time for an address, as long as there is that much: a share of little is too little for any.
const SHARE_MIN: Duration = Duration::from_secs(1);

/// Connects to one target.
#[derive(Clone)]
pub(super) struct OutboundConnector {
    target: Arc<TargetUrl>,
    tls: Option<TlsConnector>,
    /// How long a post may take, its connection included.
    timeout: Duration,
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct ConnectError(String);

type Connecting = Pin<Box<dyn Future<Output = Result<TokioIo<ClientStream>, ConnectError>> + Send>>;

impl OutboundConnector {
    /// A connector; whoever answers with TLS must have a certificate of one of the roots in the file, or of a public one.
    ///
    /// # Errors
    /// [`Misuse`] when the file holds no certificates.
    pub(super) fn new(
        target: Arc<TargetUrl>,
        ca_file: Option<&Path>,
        timeout: Duration,
    ) -> Result<OutboundConnector, Misuse> {
        let tls = target.is_tls().then(|| tls_connector(ca_file)).transpose()?;
        Ok(OutboundConnector { target, tls, timeout })
    }

    async fn connect(self) -> Result<TokioIo<ClientStream>, ConnectError> {
        let host = self.target.host();
        let addresses = self.target.addresses().await.map_err(ConnectError)?;
        let socket = first_to_answer(host, &addresses, self.timeout, TcpStream::connect).await?;
        let opened = ClientStream::open(socket, self.tls.as_ref(), host).await;
        opened.map(TokioIo::new).map_err(|error| ConnectError(format!("connect to {host}: {error}")))
    }
}

/// Connects to the first address that answers. Each has its share of the time that is left, so that one that never does leaves
/// some for the others, and what one that refuses does not need is theirs.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a network takes is real time, whatever an engine's clock says"
)]
async fn first_to_answer<S, C: Future<Output = io::Result<S>>>(
    host: &str,
    addresses: &[SocketAddr],
    timeout: Duration,
    connect: impl Fn(SocketAddr) -> C,
) -> Result<S, ConnectError> {
    let until = Instant::now() + timeout;
    let mut failed = String::new();
    for (tried, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = (left / untried).max(SHARE_MIN).min(left);
        let problem = match tokio::time::timeout(share, connect(*address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {}", WireDuration(whole_millis(share))),
        };
        failed = format!("connect to {host} at {address}: {problem}");
    }
    Err(ConnectError(failed))
}

/// A span as it is told: what the clock says is a little less than what was meant.
fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

impl Service<Uri> for OutboundConnector {
    type Response = TokioIo<ClientStream>;
    type Error = ConnectError;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    /// Connects to the target; a client of its own never asks for anything else.
    fn call(&mut self, _: Uri) -> Connecting {
        Box::pin(self.clone().connect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 80);
    const ALIVE: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 80);
    const MINUTE: Duration = Duration::from_secs(60);

    /// Connects to the second, and hears nothing of the first.
    async fn connect(address: SocketAddr) -> io::Result<SocketAddr> {
        if address == ALIVE { Ok(address) } else { std::future::pending().await }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_never_answers_leaves_time_for_the_next() {
        let connecting = first_to_answer("host", &[DEAD, ALIVE], MINUTE, connect);
        let connected = tokio::time::timeout(MINUTE * 3 / 4, connecting).await.expect("there is time left");
        assert_eq!(connected.unwrap(), ALIVE);
        let refused = first_to_answer("host", &[DEAD], MINUTE, connect).await.unwrap_err();
        assert_eq!(refused.to_string(), "connect to host at 192.0.2.1:80: no answer within 1m");
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_address_does_not_need_of_its_time_is_that_of_the_others_and_no_share_is_too_little() {
        let last_is_slow = async |address: SocketAddr| {
            tokio::time::advance(if address == ALIVE { MINUTE * 3 / 4 } else { Duration::ZERO }).await;
            if address == ALIVE {
                Ok(address)
            } else {
                Err(io::Error::from(io::ErrorKind::ConnectionRefused))
            }
        };
        assert_eq!(first_to_answer("host", &[DEAD, ALIVE], MINUTE, last_is_slow).await.unwrap(), ALIVE);
        let second = Duration::from_secs(1);
        let first_is_slow = async |address| {
            tokio::time::advance(second * 9 / 10).await;
            Ok::<_, io::Error>(address)
        };
        assert_eq!(first_to_answer("host", &[ALIVE, DEAD], second, first_is_slow).await.unwrap(), ALIVE);
        let refused = first_to_answer("host", &[DEAD], second / 2, connect).await.unwrap_err();
        assert_eq!(refused.to_string(), "connect to host at 192.0.2.1:80: no answer within 500ms");
    }
}
