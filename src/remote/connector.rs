//! Connections to a daemon: plain TCP, or TLS with the roots of the web or of a file.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;
use crate::limits;
use crate::tls_connector::ClientStream;
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

    async fn open(self, uri: Uri) -> io::Result<ClientStream> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let socket = TcpStream::connect((host.as_str(), port)).await?;
        ClientStream::open(socket, self.tls.as_ref(), &host).await
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
