//! Connections to servers. With TLS, a certificate is always verified, against the roots of the web or of a file.

use std::io;
use std::io::IoSlice;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use hyper_util::client::legacy::connect::Connected;
use hyper_util::client::legacy::connect::Connection;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;

trait ClientPipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<P: AsyncRead + AsyncWrite + Send + Unpin> ClientPipe for P {}

/// A connection to a server, whatever carries it.
pub(crate) struct ClientStream(Box<dyn ClientPipe>);

impl ClientStream {
    /// A connection that something carries already.
    pub(crate) fn over(pipe: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> ClientStream {
        ClientStream(Box::new(pipe))
    }

    /// A connection over a socket, encrypted if there is something to do that with.
    ///
    /// # Errors
    /// What has gone wrong in the handshake, or that the host has no name that a certificate could have.
    pub(crate) async fn open(
        socket: TcpStream,
        tls: Option<&TlsConnector>,
        host: &str,
    ) -> io::Result<ClientStream> {
        socket.set_nodelay(true)?;
        let Some(tls) = tls else { return Ok(ClientStream::over(socket)) };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(ClientStream::over(tls.connect(name, socket).await?))
    }
}

impl Connection for ClientStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Connects to servers whose certificate leads to a root of the web, or to one of a PEM file if there is one.
///
/// # Errors
/// [`Misuse`] when the file cannot be read or holds no certificate that can be.
pub(crate) fn tls_connector(ca_file: Option<&Path>) -> Result<TlsConnector, Misuse> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Misuse::new("TLS", error.to_string()))?;
    let config = builder.with_root_certificates(roots(ca_file)?).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificates of a PEM file.
///
/// # Errors
/// [`Misuse`] when it cannot be read or holds none.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Misuse> {
    let wrong = |problem: String| Misuse::new("ca_file", format!("{}: {problem}", path.display()));
    let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    if all.is_empty() { Err(wrong("it holds no certificate".to_owned())) } else { Ok(all) }
}

/// What cannot be parsed is passed over: the bundles of some systems hold such certificates.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, Misuse> {
    let Some(path) = ca_file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(path)?);
    match roots.is_empty() {
        true => Err(Misuse::new("ca_file", format!("{}: no certificate in it can be read", path.display()))),
        false => Ok(roots),
    }
}
