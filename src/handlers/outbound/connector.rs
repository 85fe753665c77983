//! Connects to the addresses that were checked, and to no other.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::error::Misuse;
use crate::handlers::outbound::stream::OutboundStream;
use crate::handlers::outbound::target::TargetUrl;
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

type Connecting = Pin<Box<dyn Future<Output = Result<TokioIo<OutboundStream>, ConnectError>> + Send>>;

impl OutboundConnector {
    /// A connector; whoever answers with TLS must have a certificate of one of the roots in the file, or of a public one.
    ///
    /// # Errors
    /// [`Misuse`] when the file holds no certificates.
    pub(super) fn new(target: Arc<TargetUrl>, ca_file: Option<&Path>) -> Result<OutboundConnector, Misuse> {
        let tls = target.is_tls().then(|| tls_connector(ca_file)).transpose()?;
        Ok(OutboundConnector { target, tls })
    }

    async fn connect(self) -> Result<TokioIo<OutboundStream>, ConnectError> {
        let host = self.target.host();
        let addresses = self.target.addresses().await.map_err(ConnectError)?;
        let mut failed = String::new();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return self.secured(stream).await.map(TokioIo::new),
                Err(error) => failed = format!("connect to {host} at {address}: {error}"),
            }
        }
        Err(ConnectError(failed))
    }

    async fn secured(&self, stream: TcpStream) -> Result<OutboundStream, ConnectError> {
        let host = self.target.host();
        let failed = |error: &dyn std::error::Error| ConnectError(format!("connect to {host}: {error}"));
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let Some(tls) = &self.tls else { return Ok(OutboundStream::Plain(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
        let stream = tls.connect(name, stream).await.map_err(|error| failed(&error))?;
        Ok(OutboundStream::Tls(Box::new(stream)))
    }
}

impl Service<Uri> for OutboundConnector {
    type Response = TokioIo<OutboundStream>;
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
