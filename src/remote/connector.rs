//! Connections to a daemon: plain TCP, or TLS with the roots of the web or of a file.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use http::Uri;
use hyper_util::client::legacy::connect::Connected;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;
use crate::limits;

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Option<TlsConnector>,
}

impl Connector {
    /// Connections without encryption.
    pub(crate) fn plain() -> Connector {
        Connector { tls: None }
    }

    /// Encrypted connections to servers whose certificate leads to a root of the web, or of `roots` if there is one: a
    /// PEM file.
    ///
    /// # Errors
    /// [`Misuse`] when the file cannot be read or holds no certificate.
    pub(crate) fn encrypted(roots: Option<&Path>) -> Result<Connector, Misuse> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Misuse::new("TLS", error.to_string()))?
            .with_root_certificates(read_roots(roots)?)
            .with_no_client_auth();
        Ok(Connector { tls: Some(TlsConnector::from(Arc::new(config))) })
    }

    async fn open(self, uri: Uri) -> io::Result<Socket> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let tcp = TcpStream::connect((host.as_str(), port)).await?;
        tcp.set_nodelay(true)?;
        let Some(tls) = self.tls else { return Ok(Socket(Box::new(tcp))) };
        let name = ServerName::try_from(host).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Socket(Box::new(tls.connect(name, tcp).await?)))
    }
}

fn read_roots(file: Option<&Path>) -> Result<RootCertStore, Misuse> {
    let Some(file) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let wrong = |problem: String| Misuse::new("CA file", format!("{}: {problem}", file.display()));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("it holds no certificate".to_owned())),
        false => Ok(roots),
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Socket>>> + Send>>;

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

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection, whatever carries it.
pub(crate) struct Socket(Box<dyn Stream>);

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
