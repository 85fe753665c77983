//! TLS to a server: the certificate is always verified, against the roots of the web or of a file.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio_postgres::tls::ChannelBinding;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::tls::TlsConnect;
use tokio_postgres::tls::TlsStream;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;
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
    type Stream = EncryptedStream<S>;
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
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, stream).await?;
            Ok(EncryptedStream(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(crate) struct EncryptedStream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    /// Passwords are sent by SCRAM without binding them to the channel: its certificate is verified.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
