//! Connects to the addresses that were checked, and to no other.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use http::Uri;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::error::Misuse;
use crate::handlers::outbound::target::TargetUrl;
use crate::tls_connector::ClientStream;
use crate::tls_connector::tls_connector;

/// Connects to one target.
#[derive(Clone)]
pub(super) struct OutboundConnector {
    target: Arc<TargetUrl>,
    tls: Option<TlsConnector>,
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
    pub(super) fn new(target: Arc<TargetUrl>, ca_file: Option<&Path>) -> Result<OutboundConnector, Misuse> {
        let tls = target.is_tls().then(|| tls_connector(ca_file)).transpose()?;
        Ok(OutboundConnector { target, tls })
    }

    async fn connect(self) -> Result<TokioIo<ClientStream>, ConnectError> {
        let host = self.target.host();
        let addresses = self.target.addresses().await.map_err(ConnectError)?;
        let mut failed = String::new();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(socket) => {
                    let opened = ClientStream::open(socket, self.tls.as_ref(), host).await;
                    let failed = |error| ConnectError(format!("connect to {host}: {error}"));
                    return opened.map(TokioIo::new).map_err(failed);
                }
                Err(error) => failed = format!("connect to {host} at {address}: {error}"),
            }
        }
        Err(ConnectError(failed))
    }
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
