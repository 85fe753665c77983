//! TLS to a server: the certificate is always verified, against the roots of the web or of a file.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;

use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio_postgres::tls::ChannelBinding;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::tls::TlsConnect;
use tokio_postgres::tls::TlsStream;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;
use crate::tls_connector::ClientStream;
use crate::tls_connector::tls_connector;

/// Encrypts connections.
#[derive(Clone)]
pub(crate) struct Encryption(TlsConnector);

impl Encryption {
    /// To servers whose certificate leads to a root of the web, or of `roots` if there is one: a PEM file.
    ///
    /// # Errors
    /// [`Misuse`] when the file cannot be read or holds no certificate.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Encryption, Misuse> {
        Ok(Encryption(tls_connector(roots)?))
    }
}

impl<S> MakeTlsConnect<S> for Encryption
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Stream = ClientStream;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        Ok(Handshake { connector: self.0.clone(), name: ServerName::try_from(host.to_owned())? })
    }
}

/// A handshake with one server.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Stream = ClientStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<ClientStream>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(ClientStream::over(self.connector.connect(self.name, stream).await?)) })
    }
}

impl TlsStream for ClientStream {
    /// Passwords are sent by SCRAM without binding them to the channel: its certificate is verified.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
