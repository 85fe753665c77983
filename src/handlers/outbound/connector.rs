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
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::api::WireDuration;
use crate::error::Misuse;
use crate::handlers::outbound::target::TargetUrl;
use crate::tls_connector::ClientStream;
use crate::tls_connector::tls_connector;

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

/// Connects to the first address that answers. Each has its share of the time, so that one that never does leaves some for the
/// others.
async fn first_to_answer<S, C: Future<Output = io::Result<S>>>(
    host: &str,
    addresses: &[SocketAddr],
    timeout: Duration,
    connect: impl Fn(SocketAddr) -> C,
) -> Result<S, ConnectError> {
    let share = timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut failed = String::new();
    for address in addresses {
        let problem = match tokio::time::timeout(share, connect(*address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {}", WireDuration(share)),
        };
        failed = format!("connect to {host} at {address}: {problem}");
    }
    Err(ConnectError(failed))
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
}
