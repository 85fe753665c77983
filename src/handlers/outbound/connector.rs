//! Connects to the addresses that were checked, and to no other.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::definition::certificates;
use crate::error::Misuse;
use crate::handlers::outbound::stream::Stream;
use crate::handlers::outbound::target::Target;

/// Connects to one target.
#[derive(Clone)]
pub(super) struct Connector {
    target: Arc<Target>,
    tls: Option<TlsConnector>,
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Unconnected(String);

type Connecting = Pin<Box<dyn Future<Output = Result<TokioIo<Stream>, Unconnected>> + Send>>;

impl Connector {
    /// A connector; whoever answers with TLS must have a certificate of one of the roots in the file, or of a public one.
    ///
    /// # Errors
    /// [`Misuse`] when the file holds no certificates.
    pub(super) fn new(target: Arc<Target>, ca_file: Option<&Path>) -> Result<Connector, Misuse> {
        let tls = target.is_tls().then(|| tls(ca_file)).transpose()?;
        Ok(Connector { target, tls })
    }

    async fn connect(self) -> Result<TokioIo<Stream>, Unconnected> {
        let host = self.target.host();
        let addresses = self.target.addresses().await.map_err(Unconnected)?;
        let mut failed = String::new();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return self.secured(stream).await.map(TokioIo::new),
                Err(error) => failed = format!("connect to {host} at {address}: {error}"),
            }
        }
        Err(Unconnected(failed))
    }

    async fn secured(&self, stream: TcpStream) -> Result<Stream, Unconnected> {
        let host = self.target.host();
        let failed = |error: &dyn std::error::Error| Unconnected(format!("talk with {host}: {error}"));
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
        let stream = tls.connect(name, stream).await.map_err(|error| failed(&error))?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = Unconnected;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unconnected>> {
        Poll::Ready(Ok(()))
    }

    /// Connects to the target; a client of its own never asks for anything else.
    fn call(&mut self, _: Uri) -> Connecting {
        Box::pin(self.clone().connect())
    }
}

fn tls(ca_file: Option<&Path>) -> Result<TlsConnector, Misuse> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            roots.add_parsable_certificates(certificates(path)?);
            if roots.is_empty() {
                let problem = format!("{}: no certificate in it can be read", path.display());
                return Err(Misuse::new("ca_file", problem));
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Misuse::new("TLS", error.to_string()))?;
    Ok(TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
}
