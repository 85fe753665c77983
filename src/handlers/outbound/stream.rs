//! A connection, with TLS or without.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use hyper_util::client::legacy::connect::Connected;
use hyper_util::client::legacy::connect::Connection;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection, with TLS or without.
pub(super) enum OutboundStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Does the same on either kind.
macro_rules! either {
    ($stream:expr, $inner:ident => $does:expr) => {
        match $stream.get_mut() {
            OutboundStream::Plain($inner) => $does,
            OutboundStream::Tls($inner) => $does,
        }
    };
}

impl AsyncRead for OutboundStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for OutboundStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            OutboundStream::Plain(stream) => stream.is_write_vectored(),
            OutboundStream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

impl Connection for OutboundStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
