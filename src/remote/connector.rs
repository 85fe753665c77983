//! Connections to a daemon: plain TCP, or TLS with the roots of the web or of a file.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use http::Uri;
use hyper_util::client::legacy::connect::Connected;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;
use crate::limits;
use crate::tls_connector::tls_connector;

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

    async fn open(self, uri: Uri) -> io::Result<RemoteSocket> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let tcp = TcpStream::connect((host.as_str(), port)).await?;
        tcp.set_nodelay(true)?;
        let Some(tls) = self.tls else { return Ok(RemoteSocket(Box::new(tcp))) };
        let name = ServerName::try_from(host).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(RemoteSocket(Box::new(tls.connect(name, tcp).await?)))
    }
}

impl tower::Service<Uri> for RemoteConnector {
    type Response = TokioIo<RemoteSocket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<RemoteSocket>>> + Send>>;

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

trait RemoteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> RemoteStream for S {}

/// A connection, whatever carries it.
pub(crate) struct RemoteSocket(Box<dyn RemoteStream>);

impl Connection for RemoteSocket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for RemoteSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for RemoteSocket {
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
